"""A declared resource, and Azure's ids of resources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from emulators.arm.functions import Json
from emulators.arm.syntax import BicepError


@dataclass(frozen=True)
class Resource:
    """`kind` is the type as written. `scope` is the id of the resource that an extension resource applies to,
    otherwise ''."""

    kind: str
    api_version: str
    name: str
    id: str
    body: Json = field(repr=False)
    scope: str = ""
    file: str = ""

    @property
    def properties(self) -> Json:
        found: Json = self.body.get("properties", {})
        return found

    @property
    def last_name(self) -> str:
        return self.name.rpartition("/")[2]


def resource_id(base: str, kind: str, name: str) -> str:
    """Return the id of a resource, in which types and names alternate."""
    if kind.lower() == "microsoft.resources/resourcegroups":
        return f"{base}/resourceGroups/{name}"
    provider, *types = kind.split("/")
    names = name.split("/")
    if len(types) != len(names):
        raise BicepError(f"{kind} has {len(types)} levels, its name {name!r} {len(names)}; is a parent missing?")
    return f"{base}/providers/{provider}/" + "/".join(f"{a}/{b}" for a, b in zip(types, names, strict=True))


def parents(resource_id: str) -> Iterator[str]:
    """Yield the id itself and the ids of the resource's parents. A role on any of these ids applies to the resource."""
    words = resource_id.strip("/").split("/")
    while len(words) >= 2:
        yield "/" + "/".join(words)
        words = words[:-2]
        if words[-2:-1] == ["providers"]:
            words = words[:-2]
