"""docs/cli.md, the packaging, and the permitted imports of the command line."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from cli import command_list, commands
from cli.session import COMMON, groups, program
from shared.notices.model import NoticeKind

ROOT = Path(__file__).resolve().parents[2]
TOP: dict[str, Any] = typer.main.get_command(commands.load()).commands  # type: ignore[attr-defined]
COMMANDS: dict[str, Any] = {name: c for name, c in TOP.items() if not hasattr(c, "commands")} | {
    f"{family} {name}": c
    for family, group in TOP.items()
    if hasattr(group, "commands")
    for name, c in group.commands.items()
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_complete(name: str) -> None:
    """Each command has --json, --url and --profile, help for each argument, and an Example."""
    command = COMMANDS[name]
    assert {param.name for param in command.params} >= set(COMMON)
    assert [param.name for param in command.params if not getattr(param, "help", None)] == []
    assert f"Example: {program()} {name}" in command.help


def test_every_kind_of_notice_is_offered() -> None:
    """The help of `notify add --on` names every kind except the test, which is requested by hand."""
    option = next(param for param in COMMANDS["notify add"].params if param.name == "on")
    assert set(re.findall(r"[a-z]+", option.help.partition(".")[0])) - {"or"} == set(NoticeKind) - {NoticeKind.TEST}


def test_every_command_lies_where_it_is_looked_for() -> None:
    """Each command is in the module that the list of commands names, because only that module is imported."""
    found = {each.name: each.callback.__module__ for each in commands.load().registered_commands if each.callback}
    assert found == {name: f"cli.commands.{module}" for name, (module, _) in command_list.COMMANDS.items()}
    grouped = {
        (name, each.callback.__module__)
        for name, group in groups.items()
        for each in group.registered_commands
        if each.callback
    }
    assert grouped == {(name, f"cli.commands.{name}") for name in command_list.GROUPS}


def test_a_command_imports_its_own_family_alone() -> None:
    """A command imports neither the other families nor the keyring, which would double its start time."""
    code = "import sys; from cli import commands; commands.load(['clusters']); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    modules = set(said.stdout.split())
    assert "cli.commands.clusters" in modules
    assert modules & {"cli.commands.batchai", "cli.commands.fetch", "cli.commands.models", "keyring"} == set()


def imported(path: Path) -> set[str]:
    """The packages that a file imports at its own import; imports inside functions do not count."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {""}


def test_its_dependencies_are_light() -> None:
    """At import the command line needs only the packages of pyproject.toml; the rest are extras, imported on use."""
    found = set().union(*(imported(path) for path in (ROOT / "cli").rglob("*.py")))
    needed = {re.match(r"[\w-]+", line)[0].replace("pyyaml", "yaml") for line in PROJECT["project"]["dependencies"]}  # type: ignore[index]
    assert found == needed


def test_every_module_is_installed() -> None:
    """The packages in pyproject.toml are all packages of cli/, under their installed names."""
    packages = {p.parent.relative_to(ROOT).as_posix() for p in (ROOT / "cli").rglob("__init__.py")}
    installed = {
        name.replace("trainyard_cli", "cli").replace(".", "/") for name in PROJECT["tool"]["setuptools"]["packages"]
    }
    assert installed == packages | {"trainyard_data_checks"}


def test_every_command_says_what_it_prints() -> None:
    """schemas/cli.json has each command; a command that declares nothing has no schema."""
    schemas = json.loads((ROOT / "schemas" / "cli.json").read_text("utf-8"))["$defs"]
    assert {name.replace(" ", "-") for name in COMMANDS} <= schemas.keys()
