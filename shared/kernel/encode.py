"""Build response models from the declarations of records, and encode records as JSON."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from shared.kernel.parts import FeaturePart, columns, flat

Json = dict[str, Any]


def model_of(module: str, record: type[Any], also: dict[str, Any], skip: tuple[str, ...] = (), name: str = "") -> Any:
    """Response model: the record's fields minus `skip`, plus `also`. `module` is the module that declares the model."""
    field_types = {name: each.hint for name, each in columns(record).items() if name not in skip}
    return msgspec.defstruct(name or f"{record.__name__}Answer", [*(field_types | also).items()], module=module)


def plain_fields(record: Any, skip: tuple[str, ...] = ()) -> Json:
    return {name: plain(value) for name, value in flat(record).items() if name not in skip}


def plain_part(record: Any, part: FeaturePart[Any]) -> Any:
    """Return a feature's part of the record as answers show it; None if the record lacks the part."""
    if part.view:
        return part.view.say(record)
    value = record.feature(part.kind)
    return None if value is None else plain_fields(value, part.hidden)


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, StrEnum) else value
