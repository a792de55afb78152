"""Checks a folder or an archive: `python -m data_checks FOLDER --kind image_folder`, in trainers/.

Prints the findings and the card as JSON. The exit status is 1 if the data is refused.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from .check import Task, check
from .findings import Severity
from .kinds import KINDS
from .source import Folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=list(KINDS), default="files")
    arguments = parser.parse_args()
    result = check(Folder(arguments.folder), Task({"kind": arguments.kind}))
    print(json.dumps(asdict(result), indent=2))
    return int(result.verdict is Severity.REFUSE)


if __name__ == "__main__":
    sys.exit(main())
