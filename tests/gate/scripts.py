"""Loads the scripts of .ci, which is not a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """Import the script .ci/<name>.py as a module, without running it."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec
    assert spec.loader
    if str(ROOT / ".ci") not in sys.path:
        sys.path.append(str(ROOT / ".ci"))  # scripts import each other
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
