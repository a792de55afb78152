"""docs/cli.md, made from the commands themselves: `python -m cli.docs` writes it, and a test keeps it current."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from .commands import GROUPS, ORDER
from .errors import EXIT_CODES
from .session import COMMON, app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

HEAD = """<!-- Made by `python -m cli.docs` from the commands' own help. Do not edit: a test holds it against them. -->
# The command line

In a clone, `python3 trainyard.py <command>`. On a machine that only uses a deployment, `pip install .` of this
repository gives the command `trainyard`, with light dependencies: no Azure ML, no PyTorch. Extras: `drop` to upload to
a deployment's storage account and to sign in with Entra ID, `keyring` to keep keys in the system's keyring, `png` to
write curves to a file; such as `pip install '.[drop,keyring,png]'`.

It speaks HTTP to one Trainyard, in this order: `--url`, `--profile`, `TRAINYARD_URL`, `TRAINYARD_PROFILE`, the local
cloud if it is up, the deployment of the last `login`. `TRAINYARD_CLOUD` names the folder of a local cloud's state if it
is another than `.trainyard/cloud`.

`drop` alone needs more than the API: it writes blobs. For the local cloud it uses that cloud's connection string. For a
deployment it needs `--account-url` (here or at `login`), the extra `drop`, and whoever is signed in (`az login`) needs
the role Storage Blob Data Contributor on the account. `admin smoke` needs it too.

Tab completes commands, options, and the names of runs, drops, trainers, routes, clusters and the like, in bash, zsh and
fish. Put `eval "$(trainyard completion bash)"` into ~/.bashrc, `eval "$(trainyard completion zsh)"` into ~/.zshrc, or
`trainyard completion fish | source` into ~/.config/fish/config.fish. In a clone, `python3 trainyard.py completion bash`
(or zsh, fish) in its place also makes the command `trainyard`, for every folder.

Every command takes these:

{common}

With `--json` a command prints one JSON document, `logs` and `evict` one a line.
[schemas/cli.json](../schemas/cli.json) has the JSON Schema of each, under `$defs`; fields may come, and none goes
without a line in the changelog.

Results go to standard output, all else to standard error. Exit codes:

{codes}
"""


def page() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    codes = _table("code", "meaning", ((str(code), words) for code, words in EXIT_CODES.items()))
    common = _table("option", "", _options(group.commands[ORDER[0]], COMMON))
    head = HEAD.format(common=common, codes=codes)
    sections = [_section(name, group.commands[name]) for name in ORDER]
    for family, names in GROUPS.items():
        sections += [_section(f"{family} {name}", group.commands[family].commands[name]) for name in names]
    return head + "".join(f"\n{section}" for section in sections)


def _section(name: str, command: Any) -> str:
    words, _, example = inspect.cleandoc(command.help).replace("\b\n", "").partition("Example: ")
    arguments = " ".join(_metavar(p) for p in command.params if p.param_type_name == "argument")
    usage = f"python3 trainyard.py {name} [OPTIONS] {arguments}".rstrip()
    own = _table("argument or option", "", _options(command, [p.name for p in command.params if p.name not in COMMON]))
    parts = [f"## {name}", words.strip(), f"```text\n{usage}\n```", f"Example: `{example.strip()}`", own]
    return "\n\n".join(part for part in parts if part) + "\n"


def _options(command: Any, names: Any) -> Iterator[tuple[str, str]]:
    for param in command.params:
        if param.name not in names:
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


def _table(first: str, second: str, rows: Iterator[tuple[str, str]]) -> str:
    lines = [f"| {a} | {b} |".replace("RUN|DROP", r"RUN\|DROP").replace("<", r"\<") for a, b in rows]
    return "\n".join([f"| {first} | {second} |".replace("  |", " |"), "|---|---|", *lines]) if lines else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
