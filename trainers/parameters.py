"""The flags of a trainer, from the trainer's parameters.json.

parameters.json is a JSON Schema. It is the only place that declares each parameter's type, range, default and help
text. Trainyard checks job files and requests against it before a job starts, and the web page builds a form from it.
`batch_size` becomes the flag --batch-size. A parameter with the pattern ^auto$ may be left to the trainer; its setting
is then None.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

AUTO = "^auto$"
BOUNDS = (
    ("minimum", operator.ge, "at least"),
    ("exclusiveMinimum", operator.gt, "above"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMaximum", operator.lt, "below"),
)
_WORDS = {"true": True, "false": False}


def add_arguments(parser: argparse.ArgumentParser, file: Path, skip: tuple[str, ...] = ()) -> None:
    """Add a flag for each parameter of the file, except the parameters in `skip`, added by other modules."""
    for name, schema in json.loads(file.read_text("utf-8"))["properties"].items():
        if name not in skip:
            _add(parser, name, schema)


def _add(parser: argparse.ArgumentParser, name: str, schema: dict[str, Any]) -> None:
    flag = "--" + name.replace("_", "-")
    default = schema["default"]
    shown = str(default).lower() if isinstance(default, bool) else f"{default:g}" if _is_number(default) else default
    words = f"{schema['description']} (default: {shown})".replace("%", "%%")
    if schema["type"] == "boolean":
        parser.add_argument(flag, type=_boolean, nargs="?", const=True, default=default, help=words, metavar="BOOL")
        parser.add_argument(f"--no-{flag[2:]}", dest=name, action="store_false", help=argparse.SUPPRESS)
        return
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    metavar = {"integer": "N", "number": "X", "string": "NAME"}[kind]
    aliases = schema.get("x-aliases", [])
    start = None if schema.get("pattern") == AUTO and default == "auto" else default
    parser.add_argument(
        flag,
        *aliases,
        dest=name,
        type=_reader(kind, schema),
        choices=schema.get("enum"),
        default=start,
        help=words if "enum" not in schema else f"{words}; one of {', '.join(schema['enum'])}",
        metavar=metavar,
    )


def positive(text: str) -> int:
    """Convert a flag's text to a positive integer."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _reader(kind: str, schema: dict[str, Any]) -> Callable[[str], Any]:
    """Return the function from a flag's text to the value. The function raises an error with the range."""

    def read(text: str) -> Any:
        if schema.get("pattern") == AUTO and text == "auto":
            return None
        number = _integer(text) if kind == "integer" else float(text)
        if fault := out_of_range(number, schema):
            raise argparse.ArgumentTypeError(fault)
        return number

    read.__name__ = "whole number" if kind == "integer" else kind  # argparse: invalid <name> value
    return str if kind == "string" else read


def out_of_range(number: float, schema: dict[str, Any]) -> str:
    """Return why the schema does not allow the number, or '' if it does."""
    for key, fits, words in BOUNDS:
        if key in schema and not fits(number, schema[key]):
            return f"must be {words} {schema[key]:g}, not {number:g}"
    return "" if math.isfinite(number) else f"must be a number, not {number}"


def _integer(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _boolean(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}")
    return _WORDS[text.lower()]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
