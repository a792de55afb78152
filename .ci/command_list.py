"""Generate cli/command_list.py: the commands with modules and first sentences, for code that must not import them
all."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import typer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cli import commands  # noqa: E402
from cli.session import groups  # noqa: E402

FILE = ROOT / "cli" / "command_list.py"
HEAD = '''"""Each command with its module and the first sentence of its help; and each group's sentence.

Made by .ci/generate.py from the commands; do not edit. They are known before anything is installed or imported.
"""
'''


def text() -> str:
    top: Any = typer.main.get_command(commands.load())
    registered = commands.load().registered_commands
    rows = [_row(each.name, commands.family_of(each), _sentence(top.commands[each.name].help)) for each in registered]
    families = [f"    {json.dumps(name)}: {json.dumps(top.commands[name].help)}," for name in groups]
    return "\n".join([HEAD, "COMMANDS = {", *rows, "}", "", "GROUPS = {", *families, "}", ""])


def _row(name: str | None, module: str, sentence: str) -> str:
    row = f"    {json.dumps(name)}: ({json.dumps(module)}, {json.dumps(sentence)}),"
    if len(row) <= 120:
        return row
    return f"    {json.dumps(name)}: (\n        {json.dumps(module)},\n        {json.dumps(sentence)},\n    ),"


def _sentence(help_text: str) -> str:
    return " ".join(inspect.cleandoc(help_text).split("\n\n")[0].split())
