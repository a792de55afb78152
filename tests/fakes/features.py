"""The tests' additions for single features: a module with the feature's name in a package of the tests."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from shared.features import FEATURES


@cache  # a world asks at each message
def of_features(package: str) -> tuple[ModuleType, ...]:
    """Return this package's modules that have the name of a feature, in the order of FEATURES."""
    names = [feature.replace("shared", package, 1) for feature in FEATURES]
    return tuple(import_module(name) for name in names if find_spec(name))


# An archive's files about the run's data; a feature writes the card
DATA_FILES = ["data.card.json", "data.json.gz"] if "shared.data_checks" in FEATURES else ["data.json.gz"]
