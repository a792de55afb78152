"""The kinds of data, each with its check and its options. The declaration of a data set names one kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import columns, listing
from .data import Data
from .findings import Severity
from .names import split_of
from .of_arrays import check_cifar, check_idx
from .of_boxes import check as check_boxes
from .of_images import check as check_images
from .of_tables import check_csv, check_parquet
from .of_text import check_text

DECLARATION = "data.json"  # in a trainer's folder


class Kind(NamedTuple):
    """A kind of data. `options` are the keys of a declaration beside `kind`, each with its type or types."""

    check: Callable[[Data], None]
    options: Mapping[str, Any] = {}


def check_files(data: Data) -> None:
    """Check files of any kind by the file list alone."""
    listing.empty_files(data, Severity.WARN)
    splits = {file.path: split_of(file.path) or "all" for file in data.files}
    for split in sorted(set(splits.values())):
        data.card.count(split, {"files": data.number(path for path, each in splits.items() if each == split)})
    listing.duplicates(data, splits)


_TABLE = {"columns": (list, dict), "required": list, "additionalProperties": bool, "rows": int}
KINDS = {
    "files": Kind(check_files),
    "idx": Kind(check_idx),
    "image_folder": Kind(check_images, {"splits": list, "classes": list, "images": int}),
    "detection": Kind(check_boxes, {"classes": list}),
    "cifar": Kind(check_cifar),
    "text": Kind(check_text),
    "csv": Kind(check_csv, {**_TABLE, "delimiter": str}),
    "parquet": Kind(check_parquet, _TABLE),
}


def problem(declared: object) -> str:
    """Return the problem with a declaration, or ''."""
    if not isinstance(declared, dict) or declared.get("kind") not in KINDS:
        return f"expected a mapping with kind, one of {', '.join(KINDS)}, found {str(declared)[:80]}"
    options = KINDS[declared["kind"]].options
    for key, value in declared.items():
        if key != "kind" and (said := _option(declared["kind"], options, str(key), value)):
            return said
    if isinstance(closed := declared.get("columns"), dict) and (lacking := _undeclared(declared, closed)):
        return f"required names {lacking[:80]!r}, which is not a column; columns: {', '.join(map(str, closed))}"
    return ""


def _option(kind: str, options: Mapping[str, Any], key: str, value: object) -> str:
    if key not in options:
        return f"{key!r} is not an option of {kind}; options: {', '.join(options) or 'none'}"
    types = options[key] if isinstance(options[key], tuple) else (options[key],)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{key} is {str(value)[:80]!r}; it must be a {' or '.join(each.__name__ for each in types)}"
    if key == "columns":
        return columns.problem(value)
    if isinstance(value, list) and not all(isinstance(each, str) and each for each in value):
        return f"{key} is {str(value)[:80]!r}; it must be a list of names"
    if key == "delimiter" and len(str(value)) != 1:
        return f"delimiter is {str(value)[:80]!r}; it must be one character"
    return f"{key} is {value}; it must not be negative" if isinstance(value, int) and value < 0 else ""


def _undeclared(declared: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    return next((name for name in declared.get("required", ()) if name not in known), "")


def checker(declared: Mapping[str, Any]) -> Callable[[Data], None]:
    """Return the check for a valid declaration; a declaration without a kind gets the check of any files."""
    return KINDS[declared.get("kind") or "files"].check


def declared_by(trainer: Path) -> dict[str, Any]:
    """Return the declaration in a trainer's folder, or {} if there is none."""
    path = trainer / DECLARATION
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
