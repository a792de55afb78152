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


def removal(record: model.Removal) -> Json:
    return plain_fields(record)


def going(expiry: _Going) -> Json:
    return {"what": str(expiry.what), "name": expiry.name, "at": expiry.at.isoformat(), "why": expiry.why}


def usage(used: _Usage) -> Json:
    holders = [
        {"kind": kind, "name": name, "bytes": size, "files": used.files[kind, name]}
        for (kind, name), size in used.holders.most_common(MOST_SHOWN)
    ]
    return {"kinds": dict(used.kinds.most_common()), "holders": holders, "complete": used.complete}
