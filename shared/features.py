"""The one list of features: a folder each, and a line here.

A feature is what Trainyard does beside taking a run from a request to its archive. Modules of these names in its folder
declare what it adds: feature.py (parts of a run, reactions and more: shared/runs/features.py), messages.py, and
operations.py for the HTTP API. Who gathers such declarations asks for the modules by name, since features are built on
what asks. Without the line and the folder the rest works as before.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

FEATURES = (
    "shared.deadlines",
    "shared.sweeps",
)


def modules(name: str) -> list[ModuleType]:
    """The features' modules of this name, in the order of the list; a feature may lack one."""
    return [import_module(f"{folder}.{name}") for folder in FEATURES if find_spec(f"{folder}.{name}")]
