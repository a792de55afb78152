"""Registries: assets that several workspaces share. Registries are read-only for clients.

Their content comes from files (see registry_files). One registry always exists: `azureml`, Microsoft's own, with its
curated environments. https://learn.microsoft.com/azure/machine-learning/concept-machine-learning-registries-mlops
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emulators.azureml.environments.curated import curated
from emulators.azureml.environments.model import NotHere
from emulators.azureml.kernel.errors import ArmError, NotFound, among
from emulators.azureml.kernel.models import Asset, Json
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.workspace.assets import NEWEST, Assets
from emulators.azureml.workspace.store import Store

MICROSOFT = "azureml"
# Microsoft's curated environments in lists. Any other name of such a framework is found when it is requested.
# https://learn.microsoft.com/azure/machine-learning/resource-curated-environments
LISTED = (
    "acft-hf-nlp-gpu", "acpt-pytorch-2.2-cuda12.1", "lightgbm-3.3", "minimal-py311-inference", "sklearn-1.5",
    "tensorflow-2.16-cuda12", "xgboost-1.5",
)  # fmt: skip
FIRST = "1"  # Microsoft's versions are unknown here: each has the same packages


@dataclass(frozen=True)
class Written:
    """A version of an asset that a registry's file defines."""

    kind: str
    name: str
    version: str
    properties: Json


@dataclass
class Registry:
    """One registry. `problems` maps each unreadable file to the reason."""

    name: str
    assets: Assets
    problems: dict[str, str] = field(default_factory=dict)


class Registries:
    """Registries by name. Names are case-insensitive, as in Azure."""

    def __init__(self) -> None:
        self._all: dict[str, Registry] = {}
        self.replace({}, {})

    def replace(self, content: Mapping[str, Iterable[Written]], problems: Mapping[str, dict[str, str]]) -> None:
        """Replace all registries except Microsoft's. Assets that can't be added become problems."""
        made = {}
        for name in {MICROSOFT, *content, *problems}:
            registry = Registry(name, _empty(name), dict(problems.get(name, {})))
            listed = map(_curated, LISTED) if name == MICROSOFT else ()
            for wanted in (*listed, *content.get(name, ())):
                _put(registry, wanted)
            made[name.lower()] = registry
        self._all = made

    def names(self) -> list[str]:
        return sorted(registry.name for registry in self._all.values())

    def get(self, name: str) -> Registry:
        """Return the registry of this name. Raises NotFound."""
        if found := self._all.get(name.lower()):
            return found
        raise NotFound(
            f"There is no registry {name!r} on this machine; there are: {among(self.names())}. A folder of that name "
            "among the registries' files makes one."
        )

    def find(self, wanted: AssetRef) -> Asset:
        """Return the version of a reference. Raises NotFound, with the unreadable files."""
        registry = self.get(wanted.registry)
        try:
            return registry.assets.get(wanted.kind, wanted.name, wanted.version)
        except NotFound as error:
            if registry.name == MICROSOFT and wanted.kind == "environments":
                return of_microsoft(wanted)
            unread = "; ".join(f"{file}: {why}" for file, why in registry.problems.items())
            raise NotFound(f"{error.message}{f' Not read: {unread}' if unread else ''}") from error


def _empty(registry: str) -> Assets:
    return Assets(Store(Path(":memory:")), registry)  # nothing is stored, because the files have everything


def _put(registry: Registry, wanted: Written) -> None:
    try:
        registry.assets.put(wanted.kind, wanted.name, wanted.version, wanted.properties)
    except ArmError as error:
        registry.problems[f"{wanted.kind}/{wanted.name}:{wanted.version}"] = error.message
    except (TypeError, ValueError) as error:  # YAML has values that JSON lacks: dates, sets, circles
        registry.problems[f"{wanted.kind}/{wanted.name}:{wanted.version}"] = f"As JSON: {error}."


def _curated(name: str, version: str = FIRST) -> Written:
    image = f"mcr.microsoft.com/azureml/curated/{name.removeprefix('AzureML-')}:{version}"
    return Written("environments", name, version, {"image": image, "osType": "Linux", "description": "Curated."})


def of_microsoft(wanted: AssetRef) -> Asset:
    """Return a curated environment, which every workspace also has. Raises NotFound if this machine can't make the
    framework."""
    try:
        curated(wanted.name)
    except NotHere as error:
        raise NotFound(error.message) from error
    made = _curated(wanted.name, FIRST if wanted.version in NEWEST else wanted.version)
    assets = _empty(MICROSOFT)
    return assets.put(made.kind, made.name, made.version, made.properties)[0]
