"""Write the files that are generated from declarations: cli/command_list.py, docs/cli.md, docs/api.md,
docs/security.md, schemas/cli.json, schemas/answers.d.ts, and the names of the queues in
shared/messages/declared.py and infra/modules/storage.bicep.

.trainyard/venv/bin/python .ci/generate.py

Tests compare the committed files with what this makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import answer_types
import api_docs
import command_list
import queue_names

import schemas
from cli import docs


def made() -> dict[Path, str]:
    """Return the content of each generated file."""
    return {
        command_list.FILE: command_list.text(),
        docs.PAGE: docs.page(),
        schemas.FILE: schemas.text(),
        answer_types.FILE: answer_types.text(),
        **api_docs.pages(),
        **queue_names.pages(),
    }


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, "utf-8")
