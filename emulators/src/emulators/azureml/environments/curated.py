"""Microsoft's curated environments: which of them this machine can build, and how its builds differ.

An environment whose published definition is locked here is the same as in Azure. Any other name of a known framework
gets the framework's lock, and the job's log has the differences. All other names are refused.

https://learn.microsoft.com/azure/machine-learning/resource-curated-environments
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulators.azureml.environments.model import NotHere, Recipe

# Locked versions of Microsoft's environments, by name: the requirements of their published definitions, as resolved by
# `uv pip compile --universal`. The .in file has the definition. Azure has the first of these versions of Python.
# https://github.com/Azure/azureml-assets/tree/main/assets/training/general/environments
FOLDER = Path(__file__).parent / "curated"
LOCKS = {file.stem: tuple(file.read_text("utf-8").split("\n")[:-1]) for file in sorted(FOLDER.glob("*.txt"))}
LOCKED_FOR = ("3.10", "3.11")
LATER_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))
# Azure ML's own environments have both. azureml-mlflow 1.62 allows MLflow up to 3.15.0, and an image has the newest
# version at its build. From 3.14 on, mlflow.sklearn writes skops, which no published definition installs, and
# mlflow.pytorch requires an example of the input. The published jobs rely on the earlier defaults. Images of earlier
# years have an MLflow before 2.17, whose autolog and log_model ask for nothing that Azure ML lacks (logged models).
MLFLOW = ("mlflow-skinny<3.14", "azureml-mlflow")


@dataclass(frozen=True)
class Framework:
    """A framework, recognized by a word in environments' names. The numbers in a name are versions of `package`.
    `locks` have the packages, the oldest first; without a lock, the current `packages` are installed."""

    word: str
    package: str = ""
    locks: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    def asked(self, name: str) -> str:
        """Return the version in a name, or ''."""
        found = re.search(rf"{self.word}-(\d+(?:\.\d+)?)", name)
        return found[1] if found else ""

    def lock(self, name: str) -> str:
        """Return the oldest lock that is not older than the version in the name, otherwise the newest lock."""
        if not (asked := self.asked(name)):
            return self.locks[-1]
        fitting = (lock for lock in self.locks if _numbers(versions(lock)[self.package]) >= _numbers(asked))
        return next(fitting, self.locks[-1])


FRAMEWORKS = (
    Framework("sklearn", "scikit-learn", ("sklearn-1.1", "sklearn-1.5")),
    Framework("lightgbm", "lightgbm", ("lightgbm-2021", "lightgbm-3.3")),
    Framework("xgboost", "xgboost", ("lightgbm-3.3",)),
    Framework("acft", packages=("torch", "transformers", "datasets", "evaluate", "accelerate", *MLFLOW)),
    Framework("pytorch", "torch", ("acpt-pytorch-2.8-cuda12.6",)),
    Framework("tensorflow", "tensorflow", ("tensorflow-2.16-cuda12",)),
    # mldesigner/_constants.py names the packages of both: CustomizedEnvMldesigner and CustomizedEnvMldesignerMinimal.
    Framework("mldesigner-minimal", packages=("mldesigner",)),
    Framework("mldesigner", packages=("mldesigner", "azure-ai-ml", *MLFLOW)),
    Framework("minimal"),
    Framework("local"),
)
OTHER_API = re.compile(r"tensorflow-[01]\.")  # programs for these versions don't run with the lock's version


@dataclass(frozen=True)
class Curated:
    """How this machine builds an environment. `differences` are empty if it is the same as in Azure. `refused` is
    the reason if it can't be built."""

    recipe: Recipe = field(default_factory=Recipe)
    lock: str = ""
    differences: tuple[str, ...] = ()
    refused: str = ""


def curated(name: str) -> Recipe:
    """Return the recipe of one of Microsoft's environments, by its name with or without `AzureML-`. Raises NotHere
    for a name that can't be built here."""
    made = matched(name)
    if made.refused:
        raise NotHere(made.refused)
    return made.recipe


def matched(name: str) -> Curated:
    """Return how this machine builds the environment of this name."""
    plain = name.lower().removeprefix("azureml-")
    if plain in LOCKS:
        return Curated(Recipe(LOCKS[plain], LOCKED_FOR[0], or_python=LOCKED_FOR[1:]), plain)
    framework = next((each for each in FRAMEWORKS if each.word in plain), None)
    if framework is None or OTHER_API.search(plain):
        known = ", ".join(each.word for each in FRAMEWORKS)
        words = f"Environment {name!r}: of Azure ML's own environments this machine can make those of {known}"
        return Curated(refused=f"{words}{', but TensorFlow from 2.0 on' if framework else ''}.")
    if not framework.locks:
        return _unlocked(name, plain, framework)
    lock, differences = framework.lock(plain), tuple(_differences(plain, framework))
    note = f"{name} has no lock of its own here. It is made of the lock of {lock}: {'; '.join(differences)}."
    return Curated(Recipe(LOCKS[lock], LOCKED_FOR[0], notes=(note,), or_python=LOCKED_FOR[1:]), lock, differences)


def _unlocked(name: str, plain: str, framework: Framework) -> Curated:
    python = _python(plain)
    later = tuple(version for version in LATER_PYTHONS if _minor(version) > _minor(python)) if python else ()
    if not framework.packages:
        old = python and _minor(python) < _minor(LOCKED_FOR[0])
        differences = (f"a later Python where the machine has no {python}",) if old else ()
        return Curated(Recipe((), python, or_python=later), "", differences)
    names = ", ".join(package for package in framework.packages if package not in MLFLOW)
    differences = (f"{names} of today, without what else the image has",)
    note = f"{name}: there is no lock of its packages here, so they are those of today."
    return Curated(Recipe(framework.packages, python, notes=(note,), or_python=later), "", differences)


def _differences(plain: str, framework: Framework) -> Iterator[str]:
    """Yield the differences between the framework's lock and the numbers in the name."""
    asked, version = framework.asked(plain), versions(framework.lock(plain))[framework.package]
    if asked and not f"{version}.".startswith(f"{asked}."):
        yield f"{framework.package} {version} instead of {asked}"
    if (python := _python(plain)) and python not in LOCKED_FOR:
        yield f"Python {' or '.join(LOCKED_FOR)} instead of {python}"
    yield "other versions of the other packages"


def versions(lock: str) -> Mapping[str, str]:
    """Return the versions of a lock's packages, by name."""
    pins = (line.partition(";")[0].strip().partition("==") for line in LOCKS[lock])
    return {package: version for package, _, version in pins if version}


def _python(plain: str) -> str:
    """Return the Python version in a name, such as 3.8 in py38 and py3.8, or ''."""
    found = re.search(r"py(3)\.?(\d{1,2})\b", plain)
    return f"{found[1]}.{found[2]}" if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])


def _minor(version: str) -> int:
    return int(version.partition(".")[2])
