"""Convert records to table rows and back, from their declarations: each field of a dataclass is a column, and so is
each field of its parts (shared/kernel/parts.py). A part with a column of its own is one value of JSON.

The rows are readable in any storage browser: times are ISO 8601 in UTC with microseconds, None is '', a job is JSON in
Azure ML's own schema, and everything else that is neither text nor number is JSON. A column holds at most 32,768 UTF-16
units, so long JSON continues in the columns request_2, request_3, ... up to the first that is not full. A new field
needs a default, because older rows lack its column.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, replace
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args

import msgspec

from shared.adapters.azureml.document import document
from shared.jobs.readers.azureml import read_job
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadInput
from shared.kernel.parsing import convert, decode
from shared.kernel.parts import (
    Column,
    FeaturePart,
    OneColumn,
    columns,
    difference,
    flat,
    from_columns,
    one_columns,
)

log = logging.getLogger(__name__)

R = TypeVar("R")
Row = dict[str, Any]
Parts = tuple[FeaturePart[Any], ...]  # the parts that features may add to the record

_LIMIT = 32_000  # characters of JSON per column; JSON is written in ASCII, so these are UTF-16 units
_JSON_LIMIT = 10 * _LIMIT  # a row may take 1 MiB, a transaction of two copies 4 MiB
_TEXT_LIMIT = 8_000  # characters of a sentence for people; a longer one is cut


def to_row(record: Any, skip: tuple[str, ...] = (), parts: Parts = ()) -> Row:
    """Return all columns of a record, and of the parts that features added to it."""
    values = ((name, value) for name, value in flat(record).items() if name not in skip)
    row = {column: cell for name, value in values for column, cell in _cells(name, value)}
    return row | one_column_cells(record) | part_cells(record, parts)


def one_column_cells(record: Any, before: Any = None) -> Row:
    """Return the parts of a record that take one column each: those that differ from `before` or, without `before`,
    from their defaults.
    """
    row: Row = {}
    for each in one_columns(type(record)):
        if (value := getattr(record, each.field)) != (getattr(before, each.field) if before else each.kind()):
            row |= dict(_cells(each.column, value))
    return row


def part_cells(record: Any, parts: Parts) -> Row:
    """Return the columns of the parts that features added to a record, and the columns that the previous version had
    for them.
    """
    row: Row = {}
    for each in parts:
        if (value := record.features.get(each.kind)) is not None:
            row |= dict(_cells(each.in_column, value))
            old_values = ((name, column.of(value)) for name, column in each.old_columns().items())
            row |= {column: cell for name, old in old_values for column, cell in _cells(name, old)}
    return row


def changed_columns(before: Any, after: Any, parts: Parts = ()) -> Row:
    """Return the columns in which `after` differs from `before`, and the columns of the differing parts."""
    changed = tuple(each for each in parts if after.features.get(each.kind) != before.features.get(each.kind))
    own = some_columns(type(after), difference(before, after)) | one_column_cells(after, before)
    return own | part_cells(after, changed)


def some_columns(kind: type[Any], changes: Mapping[str, Any]) -> Row:
    """Return the columns of some fields. Raises TypeError for an unknown field."""
    if unknown := set(changes) - columns(kind).keys():
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
    return {column: cell for name, value in changes.items() for column, cell in _cells(name, value)}


def column_names(kind: type[Any], skip: tuple[str, ...] = (), parts: Parts = ()) -> list[str]:
    """Return the columns of a record without the skipped fields; for long JSON the first four columns."""
    hints = {name: each.hint for name, each in columns(kind).items() if name not in skip}
    hints |= {each.column: each.kind for each in one_columns(kind) if not set(skip).intersection(each.fields)}
    for part in parts:
        hints |= {part.in_column: part.kind, **{name: each.hint for name, each in part.old_columns().items()}}
    names = ([name] if _is_scalar(hint) else [_part(name, n) for n in range(1, 5)] for name, hint in hints.items())
    return [name for some in names for name in some]


def from_row(kind: type[R], row: Mapping[str, Any], parts: Parts = (), **other_values: Any) -> R:
    """Return the record of a row; `other_values` are fields without columns. Raises BadInput with the bad column's
    name.
    """
    wanted = columns(kind)
    record = from_columns(kind, {**_values(wanted, row, other_values), **other_values})
    alone = (each for each in one_columns(kind) if each.column in row and _is_alone(each, row))
    changes: dict[str, Any] = {each.field: _checked(each.kind, each.column, row) for each in alone}
    if added := {each.kind: value for each in parts if (value := _part_value(each, row)) is not None}:
        changes["features"] = added
    return replace(record, **changes) if changes else record  # type: ignore[type-var]


def _is_alone(part: OneColumn, row: Mapping[str, Any]) -> bool:
    """Return whether the row has the column of the part, and none of the columns of the previous version."""
    return bool(row.get(part.column)) and all(row.get(name) in (None, "") for name in part.fields)


def _part_value(part: FeaturePart[Any], row: Mapping[str, Any]) -> Any:
    """Return the feature's addition to the record of this row, read from the old columns if the row has them."""
    if part.was_there and part.was_there(row):
        return from_columns(part.kind, _values(part.old_columns(), row))
    return _checked(part.kind, part.in_column, row) if row.get(part.in_column) else None


def _values(wanted: Mapping[str, Column], row: Mapping[str, Any], skip: Collection[str] = ()) -> dict[str, Any]:
    """Return the values of the wanted columns that the row has. A column without a default must be there."""
    names = [name for name in row if name in wanted and name not in skip]  # a row of a list has a third of the columns
    missing = [
        name for name, each in wanted.items() if each.default is MISSING and name not in row and name not in skip
    ]
    return {name: _checked(wanted[name].hint, name, row) for name in (*names, *missing)}


def _checked(hint: Any, name: str, row: Mapping[str, Any]) -> Any:
    try:
        cell = row[name]
        if type(cell) is hint:  # most cells: a list of runs has thousands
            return cell
        return _value(hint, name, row)
    except (KeyError, ValueError, TypeError, msgspec.DecodeError, msgspec.ValidationError) as exc:
        raise BadInput(f"Column {name} can't be read: {type(exc).__name__}: {str(exc)[:200]}.") from exc


def readable(kind: type[R], rows: Iterable[Mapping[str, Any]]) -> Iterator[R]:
    """Yield the records of these rows. An unreadable row is skipped, so that it stops no list and no timer."""
    for row in rows:
        try:
            yield from_row(kind, row)
        except BadInput as exc:
            log.warning("%s %s is left out: %s", kind.__name__.lower(), row.get("RowKey"), exc)


@cache
def _is_scalar(hint: Any) -> bool:
    kinds = [kind for kind in (get_args(hint) if isinstance(hint, UnionType) else (hint,)) if kind is not NoneType]
    return all(isinstance(kind, type) and issubclass(kind, str | int | float | datetime) for kind in kinds)


@cache
def _is_optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _cells(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value is None:
        yield name, ""
    elif isinstance(value, datetime):
        yield name, iso(value)
    elif isinstance(value, str):
        yield name, value if len(value) <= _TEXT_LIMIT else f"{value[:_TEXT_LIMIT]} (cut)"
    elif isinstance(value, bool):
        yield name, value
    elif isinstance(value, int):
        yield name, (value, "Edm.Int64")  # the SDK writes a bare int as 32 bits
    elif isinstance(value, float):
        yield name, value
    else:
        yield from _json_cells(name, value)


def _json_cells(name: str, value: Any) -> Iterator[tuple[str, str]]:
    plain = document(value) if isinstance(value, JobSpec) else msgspec.to_builtins(value, builtin_types=(datetime,))
    text = json.dumps(plain, default=iso)
    if len(text) > _JSON_LIMIT:
        raise BadInput(f"{name} takes {len(text)} characters as JSON; the record has room for {_JSON_LIMIT}.")
    for number in range(len(text) // _LIMIT + 1):
        yield _part(name, number + 1), text[number * _LIMIT : (number + 1) * _LIMIT]


def _value(hint: Any, name: str, row: Mapping[str, Any]) -> Any:
    cell = row[name]
    if not _is_scalar(hint):
        text = cell if type(cell) is str and len(cell) < _LIMIT else _text(name, row)
        if hint is JobSpec:
            return read_job(json.loads(text)) if text else JobSpec()
        return decode(text, hint) if text else None
    if not isinstance(cell, str):
        cell = getattr(cell, "value", cell)  # the SDK's EntityProperty
    elif cell == "" and _is_optional(hint):
        return None
    return convert(cell, hint, strict=False)


def _text(name: str, row: Mapping[str, Any]) -> str:
    text = str(row.get(name, ""))
    for number in itertools.count(2):
        if len(text) < (number - 1) * _LIMIT:
            break
        text += str(row.get(_part(name, number), ""))
    return text


def _part(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
