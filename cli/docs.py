"""The generator of docs/cli.md from the commands. .ci/generate.py writes the file."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from .commands import load
from .errors import EXIT_CODES
from .session import COMMON, program

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

OFTEN = 3  # a row that this many commands share is shown once, at the top of the page

HEAD = """<!-- made by .ci/generate.py from the commands' own help; do not edit -->
# The command line

Every command with its options, as `--help` shows them. In a clone, type `python3 trainyard.py <command>`. On a
machine that only uses a deployment, run `pip install .` in this repository: it installs the command `trainyard`
alone, without Azure ML and PyTorch. Its extras, as in `pip install '.[drop,keyring,png]'`: `drop` uploads to a
deployment's storage account and signs in with Entra ID, `keyring` keeps keys in the system's keyring, `parquet` lets
`drop --check` read all values of Parquet files, `png` writes curves to a file.

The command line speaks HTTP to one Trainyard: the first of `--url`, `--profile`, `TRAINYARD_URL`,
`TRAINYARD_PROFILE`, the local cloud if it is up, and the deployment of the last `login`. `TRAINYARD_CLOUD` names
the folder of a local cloud's state if it is not `.trainyard/cloud`.

`drop` and `admin smoke` also write blobs. For a deployment, both need `--account-url` (here or at `login`), the extra
`drop`, and the role Storage Blob Data Contributor on the account for the signed-in user (`az login`).

[completion](#completion) makes Tab complete commands, options, and names, such as those of runs, drops and trainers.

Every command takes these options:

{common}

With `--json` a command prints one JSON document; `logs` and `evict` print one document on each line.
[schemas/cli.json](../schemas/cli.json) has the JSON Schema of each, under `$defs`. New fields may appear; the
changelog names every field that is removed.

Results go to standard output, everything else to standard error. Exit codes:

{codes}

## Arguments and options of many commands
Where the list of a command says "above", it means these. Square brackets mark an optional argument.

{often}
"""


def page() -> str:
    """Return the text of docs/cli.md."""
    group: Any = typer.main.get_command(load())
    commands = {name: each for name, each in group.commands.items() if not hasattr(each, "commands")}
    for family, each in group.commands.items():
        commands |= {f"{family} {name}": member for name, member in getattr(each, "commands", {}).items()}
    often = _often(commands.values())
    codes = _table("code", "meaning", ((str(code), words) for code, words in EXIT_CODES.items()))
    common = _list(row for row in _options(next(iter(commands.values())), COMMON))
    head = HEAD.format(common=common, codes=codes, often=_list(often))
    return head + "".join(f"\n{_section(name, command, often)}" for name, command in commands.items())


def _often(commands: Iterable[Any]) -> list[tuple[str, str]]:
    """Return the rows shared by at least OFTEN commands, sorted. An option with two meanings among these rows is left
    to its commands.
    """
    counts = Counter(row for command in commands for row in set(_options(command)))
    rows = [row for row, count in counts.items() if count >= OFTEN]
    meanings = Counter(option for option, _ in rows)
    return sorted(row for row in rows if meanings[row[0]] == 1)


def _section(name: str, command: Any, often: Container[tuple[str, str]]) -> str:
    words, *examples = inspect.cleandoc(command.help).replace("\b\n", "").split(f"Example: {program()} ")
    rows = list(_options(command))
    above = ", ".join(option for option, _ in (row for row in rows if row in often))
    own = [_list(row for row in rows if row not in often), f"- {above}: above" if above else ""]
    parts = [
        f"## {name}",
        words.strip(),
        *(f"Example: `python3 trainyard.py {' '.join(example.split())}`" for example in examples),
        "\n".join(part for part in own if part),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _options(command: Any, names: Container[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield an (option, help) row for each parameter of the command: its own parameters, or the parameters in
    `names`.
    """
    for param in command.params:
        if param.name in COMMON if names is None else param.name not in names:
            continue
        if param.param_type_name == "argument":
            yield f"`{_metavar(param)}`", param.help
        else:
            value = "" if param.is_flag else f" {_metavar(param)}"
            default = f" Default: {param.default}." if param.default and not param.is_flag else ""
            yield ", ".join(f"`{opt}{value}`" for opt in param.opts), f"{param.help}{default}"


def _metavar(param: Any) -> str:
    name = str(param.metavar or param.name.upper())
    if param.param_type_name != "argument":
        return name
    several = f"{name}..." if param.nargs == -1 and not name.endswith("...") else name
    return several if param.required else f"[{several}]"


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {option}: {words}".replace("<", r"\<") for option, words in rows)


def _table(first: str, second: str, rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| {a} | {b} |".replace("RUN|DROP", r"RUN\|DROP").replace("<", r"\<") for a, b in rows]
    return "\n".join([f"| {first} | {second} |".replace("  |", " |"), "|---|---|", *lines]) if lines else ""
