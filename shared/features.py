"""The list of features. Each feature is one folder, and one line of this list.

A feature is what Trainyard does besides taking a run from a request to its archive. These modules in a feature's folder
declare what the feature adds: feature.py (parts of a run, reactions and more: shared/runs/features.py), messages.py,
and operations.py for the HTTP API. The code that gathers the declarations imports the modules by name, because features
are built on that code. Trainyard works without a feature once its line and its folder are deleted.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

FEATURES = (
    "shared.pipelines",
    "shared.elastic",
    "shared.deadlines",
    "shared.sweeps",
    "shared.usage",
    "shared.diagnosis",
    "shared.data_checks",
    "shared.grants",
    "shared.agents",
)


@cache
def modules(name: str, within: str = "shared") -> tuple[ModuleType, ...]:
    """Return the modules of this name, in the order of FEATURES. A feature without such a module is skipped.

    `within` is the package that contains the features' folders, such as shared.adapters.
    """
    folders = (feature.replace("shared", within, 1) for feature in FEATURES)
    names = (f"{each}.{name}" for each in folders if find_spec(each) and find_spec(f"{each}.{name}"))
    return tuple(map(import_module, names))
