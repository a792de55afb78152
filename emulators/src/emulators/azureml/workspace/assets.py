"""Assets of a workspace: data, models, environments, components and code, in versions under a name.

A version's description, tags and archived state may change, but its content never does. So running a job again by name
and version runs the same content.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from emulators.azureml.bodies import asset_body
from emulators.azureml.kernel.errors import Conflict, NotFound
from emulators.azureml.kernel.models import Asset, Json, Shelf, timestamp
from emulators.azureml.workspace.store import Store

LATEST = "latest"  # the only label that Azure ML itself maintains
NEWEST = frozenset({LATEST, "azureml_default"})  # the SDK's label for a component without a version


# The word for one asset of each kind that `az ml WORD create` registers.
CREATED = {"components": "component", "data": "data", "environments": "environment", "models": "model"}


class Assets:
    """The versions and the names of assets of the workspace, or of a registry, in memory and in the store."""

    def __init__(self, store: Store, registry: str = "") -> None:
        self._store = store
        self._registry = registry
        self._made = 0  # orders versions created within one tick of the clock
        self._versions: defaultdict[tuple[str, str], dict[str, Asset]] = defaultdict(dict)
        self._shelves = {(s.kind, s.name): s for s in (Shelf(**body) for body in store.all("shelves"))}
        for body in store.all("assets"):
            self._enter(Asset(**body))

    def get(self, kind: str, name: str, version: str) -> Asset:
        """Return a version or, with `latest`, the newest version that is not archived. Raises NotFound."""
        found = self._versions.get((kind, name), {}).get(version)
        if found is None and version in NEWEST:
            found = next(iter(self.versions(kind, name)), None)
        if found is None:
            place = f"{kind} of registry {self._registry!r}" if self._registry else f"the workspace's {kind}"
            raise NotFound(f"No version {version} of {name!r} among {place}{self._cure(kind, name)}.")
        return found

    def _cure(self, kind: str, name: str) -> str:
        """Return the rest of a sentence about a missing version: the versions that exist, or how to register one."""
        if there := [asset.version for asset in self.versions(kind, name)][:5]:
            return f"; there are: {', '.join(there)}"
        if self._registry or kind not in CREATED:
            return ""
        return f"; register it first, for example with az ml {CREATED[kind]} create"

    def has(self, kind: str, name: str, version: str) -> bool:
        try:
            return bool(self.get(kind, name, version))
        except NotFound:
            return False

    def names(self, kind: str) -> list[str]:
        """Return the assets as `name:version`, for error messages."""
        return [f"{asset.name}:{asset.version}" for asset in self._all(kind)]

    def put(self, kind: str, name: str, version: str, properties: Json) -> tuple[Asset, bool]:
        """Create a version, or change the mutable properties of an existing version. The flag is True for a new
        version.

        Raises Conflict if the version exists with other content.
        """
        wanted = asset_body.checked(kind, name, version, properties)
        old = self._versions.get((kind, name), {}).get(version)
        if old:
            _check_same(old, wanted)
            wanted = {**old.properties, **wanted}
        self._made += 1
        asset = Asset(kind, name, version, wanted, old.created if old else timestamp(), old.made if old else self._made)
        self._store.put("assets", asset.key, dataclasses.asdict(asset))
        self._enter(asset)
        return asset, old is None

    def delete(self, kind: str, name: str, version: str) -> bool:
        """Delete a version. Deleting the last version also deletes the name. Returns whether the version existed."""
        found = self._versions.get((kind, name), {})
        gone = found.pop(version, None)
        if gone:
            self._store.delete("assets", gone.key)
        return gone is not None

    def versions(self, kind: str, name: str, archived: bool | None = False) -> list[Asset]:
        """Return the versions of a name, newest first. `archived` selects archived (True), other (False) or all
        versions (None)."""
        found = self._versions.get((kind, name), {}).values()
        return sorted(
            (asset for asset in found if archived is None or asset.archived is archived),
            key=lambda asset: (asset.created, asset.made),
            reverse=True,
        )

    def with_hash(self, digest: str) -> list[Asset]:
        """Return the code assets with this hash, under any name, because the SDK asks under a random name."""
        return [a for a in self._all("codes") if a.properties["properties"].get("hash_sha256") == digest]

    # Names

    def shelf(self, kind: str, name: str) -> Shelf:
        """Return the record of an asset's name. Raises NotFound."""
        versions = self.versions(kind, name, archived=None)
        if made := self._shelves.get((kind, name)):
            return made
        if not versions:
            raise NotFound(f"There is no {name!r} among the workspace's {kind}.")
        body = asset_body.shelf(kind, {"dataType": versions[0].properties.get("dataType")})
        return Shelf(kind, name, body, versions[-1].created)

    def put_shelf(self, kind: str, name: str, properties: Json) -> tuple[Shelf, bool]:
        """Create the record of an asset's name, or replace its properties. The flag is True for a new name."""
        try:
            old: Shelf | None = self.shelf(kind, name)
        except NotFound:
            old = None
        body = asset_body.shelf(kind, {**(old.properties if old else {}), **properties})
        made = Shelf(kind, name, body, old.created if old else timestamp())
        self._shelves[kind, name] = made
        self._store.put("shelves", f"{kind}/{name}", dataclasses.asdict(made))
        return made, old is None

    def delete_shelf(self, kind: str, name: str) -> bool:
        """Delete an asset's name with all its versions. Returns whether the name existed."""
        gone = [self.delete(kind, name, version) for version in list(self._versions.get((kind, name), {}))]
        self._store.delete("shelves", f"{kind}/{name}")
        return self._shelves.pop((kind, name), None) is not None or any(gone)

    def shelves(self, kind: str, archived: bool | None = False) -> list[Shelf]:
        """Return the records of all names of a kind. Names with only anonymous versions are left out."""
        names = dict.fromkeys(asset.name for asset in self._all(kind) if not asset.properties.get("isAnonymous"))
        names |= dict.fromkeys(name for k, name in self._shelves if k == kind)
        return [s for s in (self.shelf(kind, name) for name in names) if archived is None or s.archived is archived]

    def next_version(self, kind: str, name: str) -> str:
        numbers = [int(v) for v in self._versions.get((kind, name), {}) if v.isascii() and v.isdigit()]
        return str(max(numbers, default=0) + 1)

    def _all(self, kind: str) -> Iterator[Asset]:
        return (asset for (k, _), found in self._versions.items() if k == kind for asset in found.values())

    def _enter(self, asset: Asset) -> None:
        self._made = max(self._made, asset.made)
        self._versions[asset.kind, asset.name][asset.version] = asset


def _check_same(old: Asset, wanted: Json) -> None:
    before, after = asset_body.content(old.kind, old.properties), asset_body.content(old.kind, wanted)
    if differing := [key for key in before if after[key] not in (before[key], "null")]:
        raise Conflict(
            f"Version {old.version} of {old.name!r} exists among the {old.kind} with another {differing[0]}. What a "
            "version holds never changes: choose another version or name."
        )
