"""Azure ML's spelling of places, names and references stays at the edge; test_schema_keys.py tests the same for its
schema."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from shared.jobs.command import LAUNCHER

ROOT = Path(__file__).resolve().parents[2]
CODE = ("shared", "functions", "cli", "local", "trainers", "infra", ".ci", "function_app.py", "trainyard.py")

# Azure ML's addresses (azureml:, azureml://), references (${{inputs.x}}), optional parts ($[[...]]), and the names of
# its properties (azureml.git.commit).
SPELLINGS = re.compile(r"""(?<![\w.])azureml:(?![\s\])}]|$)|["']azureml\.|\$\{\{|\$\[\[|\$\\\{\\\{""", re.M)

# The modules that read or write Azure ML's forms.
EDGE = {
    "shared/adapters/azureml/": "speaks to Azure ML",
    "shared/jobs/readers/": "reads Azure ML's job files and writes their texts",
    "shared/grants/guest.py": "reads which data a program's job names, as the program wrote them",
    "cli/files/job_form.py": "reads and writes job files, and may import nothing of shared",
    "cli/files/git.py": "writes the properties of a job file that say which commit its code is",
}


def files() -> Iterator[Path]:
    for place in CODE:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def spellings(text: str) -> list[str]:
    return [match[0] for match in SPELLINGS.finditer(text)]


def test_only_the_edge_spells_as_azure_ml() -> None:
    """No module except the readers, the writer and the adapters contains Azure ML's spelling, not even in a
    sentence."""
    inside = [path for path in files() if not name(path).startswith(tuple(EDGE))]
    assert inside
    assert {name(path): found for path in inside if (found := spellings(path.read_text("utf-8")))} == {}


def texts(path: Path) -> Iterator[str]:
    """Every string of the module, except docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_nobody_looks_for_the_launcher_in_a_command() -> None:
    """The launcher's name is written once; all other code asks the command whether it is elastic."""
    inside = [path for path in files() if name(path).startswith(("shared/", "functions/"))]
    found = [name(path) for path in inside if any(LAUNCHER in text for text in texts(path))]
    assert found == ["shared/jobs/command.py"]


def test_a_spelling_is_found() -> None:
    """An address, a registered name, a reference and a property are found; a mapping's key or an attribute is not."""
    assert spellings('f"azureml://x"; "azureml:a:1"; "${{inputs.x}}"; "azureml.git.commit"') == [
        "azureml:", "azureml:", "${{", '"azureml.',
    ]  # fmt: skip
    assert spellings("if session.profile.azureml:\n    azureml: str\nazureml.get(1)\n{azureml}") == []
