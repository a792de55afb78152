"""The kinds of data, each with its check and its options. The declaration of a data set names one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import listing
from .data import Data
from .findings import Severity
from .names import split_of
from .of_arrays import check_cifar, check_idx
from .of_boxes import check as check_boxes
from .of_images import check as check_images
from .of_text import check_csv, check_parquet, check_text

DECLARATION = "data.json"  # in a trainer's folder


class Kind(NamedTuple):
    """`options` are the keys of a declaration beside `kind`, each with its type."""

    check: Callable[[Data], None]
    options: Mapping[str, type] = {}


def check_files(data: Data) -> None:
    """Check files of any kind: by the list alone."""
    listing.empty_files(data, Severity.WARN)
    splits = {file.path: split_of(file.path) or "all" for file in data.files}
    for split in sorted(set(splits.values())):
        data.card.count(split, {"files": sum(each == split for each in splits.values())})
    listing.duplicates(data, splits)


KINDS = {
    "files": Kind(check_files),
    "idx": Kind(check_idx),
    "image_folder": Kind(check_images),
    "detection": Kind(check_boxes),
    "cifar": Kind(check_cifar),
    "text": Kind(check_text),
    "csv": Kind(check_csv, {"columns": list, "delimiter": str, "rows": int}),
    "parquet": Kind(check_parquet, {"columns": list, "rows": int}),
}


def problem(declared: object) -> str:
    """Return what is wrong with a declaration, or ''."""
    if not isinstance(declared, dict) or declared.get("kind") not in KINDS:
        return f"expected a mapping with kind, one of {', '.join(KINDS)}, found {str(declared)[:80]}"
    options = KINDS[declared["kind"]].options
    for key, value in declared.items():
        if key == "kind":
            continue
        if key not in options:
            return f"{key!r} is no option of {declared['kind']}; options: {', '.join(options) or 'none'}"
        if not isinstance(value, options[key]) or isinstance(value, bool):
            return f"{key} is {str(value)[:80]!r}; it must be a {options[key].__name__}"
    return ""


def checker(declared: Mapping[str, Any]) -> Callable[[Data], None]:
    """Return the check of a declaration that has no problem; that of any files, if it names no kind."""
    return KINDS[declared.get("kind") or "files"].check


def declared_by(trainer: Path) -> dict[str, Any]:
    """Return the declaration in a trainer's folder, {} if there is none."""
    path = trainer / DECLARATION
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}
