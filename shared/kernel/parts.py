"""Records made of parts: a dataclass whose fields may be dataclasses, each for one concern.

The fields of a part are columns of the record, under their own names or the names that `column` gives. So answers and
writes stay flat, however the fields are grouped. In tables, a part with a column of its own is one value.

A feature adds a part that the record does not know: one typed value, in one column. The feature's folder declares the
part with `FeaturePart`; the record holds such values by their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Generic, TypeVar, get_type_hints

R = TypeVar("R")
P = TypeVar("P")


@dataclass(frozen=True)
class Column:
    """A column: the place of its value in the record (`part` is '' for the record itself), its type and its default.

    The command line and the page show the value under the `label`, if there is one; lists do so if it is `listed`.
    """

    name: str
    part: str
    field: str
    hint: Any
    default: Any = MISSING
    label: str = ""
    listed: bool = False

    def of(self, record: Any) -> Any:
        """Return this column's value in a record."""
        return getattr(getattr(record, self.part) if self.part else record, self.field)


@dataclass(frozen=True)
class OneColumn:
    """A part that is one column of the record's table, as JSON: its column, its place in the record and its type.

    The previous version had the part's `fields` as columns. It may have written them last, so they are read first, and
    still written (docs/development.md, "Two versions at once").
    """

    column: str
    field: str
    kind: type[Any]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """How answers show a part: the type of the field, and a function from the record to the field's value."""

    model: Any
    say: Callable[[Any], Any]


@dataclass(frozen=True)
class Cell:
    """What rows of lists show of a part: a field's name and type, and a function from the record to its value."""

    name: str
    model: Any
    say: Callable[[Any], Any]


@dataclass(frozen=True)
class FeaturePart(Generic[P]):
    """What a feature adds to a record: a value of type `kind`, shown under `name`, in the column `column` or `name`.

    The previous version had the value's fields as columns of the record. `was_there` decides from these old columns
    whether a row has the value. Such a row is read from its old columns, which may be newer than the new column, and
    the old columns are still written (docs/development.md, "Two versions at once").
    """

    name: str
    kind: type[P]
    column: str = ""  # set where `name` is the name of an old column
    hidden: tuple[str, ...] = ()  # fields that answers leave out
    view: View | None = None  # None: answers show the fields of the part, or null
    cell: Cell | None = None  # None: rows of lists have nothing of the part, and do not read its column
    was_there: Callable[[Mapping[str, Any]], bool] | None = None  # None for a part without old columns
    in_rows: bool = False  # whether the rows of lists read the part

    @property
    def in_column(self) -> str:
        return self.column or self.name

    def old_columns(self) -> dict[str, Column]:
        """Return the columns in which the previous version had the value."""
        return columns(self.kind) if self.was_there else {}


@dataclass(frozen=True)
class FeatureStore(Generic[P]):
    """The key of a feature's own store of type P: `ports.store(key)` returns the store.

    `stores(clients, workspace)` of `shared/adapters/<feature>/stores.py` builds the stores of the feature, by
    their names.
    """

    name: str


def part(kind: type[Any], required: bool = False, column: str = "") -> Any:
    """A field for a part of this kind. Unless `required`, every field of the part has a default.

    With `column`, the part takes this one column of a table.
    """
    metadata = {"part": kind, "one_column": column}
    return field(metadata=metadata) if required else field(default_factory=kind, metadata=metadata)


def column(name: str, default: Any = MISSING, factory: Any = MISSING) -> Any:
    """A field of a part whose column has a different name."""
    return field(default=default, default_factory=factory, metadata={"column": name})


def labeled(label: str, default: Any, *, listed: bool = False) -> Any:
    """A field that the command line and the page show under this label, unless the value is empty.

    If the field is `listed`, lists have a column for it, unless all of its values are empty.
    """
    return field(default=default, metadata={"label": label, "listed": listed})


def of_features() -> Any:
    """A field for the features' values, by type."""
    return field(default_factory=dict, metadata={"features": True})


_columns_of: dict[type[Any], dict[str, Column]] = {}


def columns(kind: type[Any]) -> dict[str, Column]:
    """Return the columns of a record class by name, in the order of declaration."""
    if kind not in _columns_of:
        _columns_of[kind] = {each.name: each for each in _columns(kind, "")}
    return _columns_of[kind]


def _columns(kind: type[Any], within: str) -> list[Column]:
    column_list: list[Column] = []
    hints = get_type_hints(kind)
    for each in fields(kind):
        if "features" in each.metadata:
            continue
        if inner := each.metadata.get("part"):
            column_list += _columns(inner, each.name)
            continue
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        name, said = each.metadata.get("column", each.name), each.metadata
        label, listed = said.get("label", ""), said.get("listed", False)
        column_list.append(Column(name, within, each.name, hints[each.name], default, label, listed))
    return column_list


def one_columns(kind: Any) -> tuple[OneColumn, ...]:
    """Return the parts of a record class with one column each."""
    return _one_columns(kind)


@cache
def _one_columns(kind: Any) -> tuple[OneColumn, ...]:
    return tuple(
        OneColumn(name, each.name, inner, tuple(columns(inner)))
        for each in fields(kind)
        if (name := each.metadata.get("one_column")) and (inner := each.metadata["part"])
    )


def table_columns(kind: type[Any]) -> list[str]:
    """Return the names of the columns that a record class has in a table, without those of older versions."""
    parts = one_columns(kind)
    inner = {name for each in parts for name in each.fields}
    return [*(name for name in columns(kind) if name not in inner), *(each.column for each in parts)]


def flat(record: Any) -> dict[str, Any]:
    """Return the values of a record by column name."""
    return {name: each.of(record) for name, each in columns(type(record)).items()}


def difference(before: R, after: R) -> dict[str, Any]:
    """Return the columns, with their new values, in which `after` differs from `before`."""
    pairs = ((name, each.of(before), each.of(after)) for name, each in columns(type(after)).items())
    return {name: new for name, old, new in pairs if old is not new and old != new}


def from_columns(kind: type[R], values: Mapping[str, Any]) -> R:
    """Build a record from these columns, with defaults for the rest. Raises TypeError for an unknown column."""
    grouped, inner = in_parts(kind, values), _inner(kind)  # type: ignore[arg-type]
    own = grouped.pop("", {})
    return kind(**own, **{name: inner[name](**its) for name, its in grouped.items()})


@cache
def _inner(kind: Any) -> dict[str, type[Any]]:
    """Return the types of a record's parts, by field."""
    return {each.name: each.metadata["part"] for each in fields(kind) if "part" in each.metadata}


def in_parts(kind: type[Any], values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Group the values of columns by part, under the names of their fields. Raises TypeError for an unknown column."""
    columns_by_name = columns(kind)
    if unknown := values.keys() - columns_by_name.keys():
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        place = columns_by_name[name]
        grouped.setdefault(place.part, {})[place.field] = value
    return grouped
