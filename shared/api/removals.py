"""Answers about removals, retention and space."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.api.encode import model_of, plain_fields
from shared.removals import model
from shared.removals.decide import Going as _Going
from shared.removals.model import What
from shared.removals.usage import Usage as _Usage

Json = dict[str, Any]
MOST_SHOWN = 50

Removal = model_of(__name__, model.Removal, {})


class Going(Struct):
    """What retention will let go, when at the earliest, and why."""

    what: What
    name: str
    at: datetime
    why: str


class Holder(Struct):
    kind: str
    name: str
    bytes: int
    files: int


class Usage(Struct):
    kinds: Annotated[dict[str, int], Meta(description="Bytes of drops, archives, checkpoints, copies and logs.")]
    holders: Annotated[list[Holder], Meta(description="What takes most, up to 50.")]
    complete: Annotated[bool, Meta(description="False if there was no time to count all.")]


def removal(found: model.Removal) -> Json:
    return plain_fields(found)


def going(found: _Going) -> Json:
    return {"what": str(found.what), "name": found.name, "at": found.at.isoformat(), "why": found.why}


def usage(found: _Usage) -> Json:
    holders = [
        {"kind": kind, "name": name, "bytes": size, "files": found.files[kind, name]}
        for (kind, name), size in found.holders.most_common(MOST_SHOWN)
    ]
    return {"kinds": dict(found.kinds.most_common()), "holders": holders, "complete": found.complete}
