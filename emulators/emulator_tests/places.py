"""Where files that these tests download are kept, and the variables that enable comparisons."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "src"
# Microsoft's published specifications; tests that need them are skipped without them.
SPECS = Path(os.environ.get("EMULATORS_SPECS") or PROJECT.parents[1] / "shared" / "specs")
# Packages and environments that are fetched once, for all runs.
CACHE = Path(os.environ.get("EMULATORS_TEST_CACHE") or Path.home() / ".azure-emulators" / "tests")


def asked_for(name: str) -> str:
    """Return the variable EMULATORS_<name>, or the same variable with an embedding project's prefix."""
    found = [value for key, value in sorted(os.environ.items()) if key.endswith(f"_{name}") and value]
    return os.environ.get(f"EMULATORS_{name}") or next(iter(found), "")
