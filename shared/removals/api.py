"""Answers about removals, retention and space."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.jobs.ports import WorkspacePorts
from shared.kernel.drop_key import DropKey
from shared.kernel.encode import model_of, plain_fields
from shared.kernel.person import Person
from shared.removals import model, remove, retention
from shared.removals import usage as space
from shared.removals.decide import PlannedRemoval
from shared.removals.ports import RemovalPorts, Removals
from shared.runs.intake.request import RunName

Json = dict[str, Any]
MOST_SHOWN = 50

_SKIPS = ("reach",)
RemovalAnswer = model_of(__name__, model.Removal, {}, _SKIPS)


class Holder(Struct):
    kind: str
    name: str
    bytes: int
    files: int


class UsageAnswer(Struct):
    kinds: Annotated[dict[str, int], Meta(description="Bytes of drops, archives, checkpoints, copies and logs.")]
    holders: Annotated[list[Holder], Meta(description="The largest holders, up to 50.")]
    complete: Annotated[bool, Meta(description="False if the time did not suffice to count everything.")]


def remove_run(ports: RemovalPorts, removals: Removals, run: RunName, by: Person) -> Annotated[Json, RemovalAnswer]:
    return plain_fields(remove.remove_run(ports, removals, run, remove.RemovalRequest(by)), _SKIPS)


def remove_drop(
    ports: RemovalPorts, removals: Removals, route: str, name: str, by: Person
) -> Annotated[Json, RemovalAnswer]:
    return plain_fields(remove.remove_drop(ports, removals, DropKey(route, name), remove.RemovalRequest(by)), _SKIPS)


def list_removals(removals: Removals) -> Annotated[list[Json], list[RemovalAnswer]]:
    return [plain_fields(each, _SKIPS) for each in removals.newest()]


def get_retention(ports: RemovalPorts) -> Annotated[list[Json], list[PlannedRemoval]]:
    return [
        {"what": str(each.what), "name": each.name, "at": each.at.isoformat(), "why": each.why}
        for each in retention.plan(ports)
    ]


def get_usage(ports: WorkspacePorts) -> Annotated[Json, UsageAnswer]:
    used = space.usage(ports.jobs, ports.blobs)
    holders = [
        {"kind": kind, "name": name, "bytes": size, "files": used.files[kind, name]}
        for (kind, name), size in used.holders.most_common(MOST_SHOWN)
    ]
    return {"kinds": dict(used.kinds.most_common()), "holders": holders, "complete": used.complete}
