"""Reproduce a segmentation fault in msgspec 0.22 for a report upstream, or show that our guard prevents the fault.

    python tests/shared/kernel/msgspec_race.py --unguarded --class struct --first schema --then convert

A thread makes msgspec build its information about a class, for the first time. msgspec puts this information on the
class (`StructInfo_Convert`, `DataclassInfo_Convert`) before it has the types of all fields: here a type is evaluated
slowly. A second thread that converts to the class finds the incomplete information, and reads NULL.
"""

# No `from __future__ import annotations`: msgspec must evaluate the one annotation that is a string.
import argparse
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

inside, asked, about = threading.Event(), threading.Event(), threading.Event()


def slow() -> type:
    """Return the type of a field; the first thread waits here while the second one converts."""
    inside.set()
    asked.wait(30)
    return int


@dataclass
class PlainInner:
    number: "slow()" = 0  # type: ignore[valid-type]


@dataclass
class Plain:
    inner: PlainInner = field(default_factory=PlainInner)
    text: str = ""


class StructInner(msgspec.Struct):
    number: "slow()" = 0  # type: ignore[valid-type]


class Struct(msgspec.Struct):
    inner: StructInner = msgspec.field(default_factory=StructInner)
    text: str = ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--unguarded", action="store_true")
    parser.add_argument("--class", dest="kind", choices=("struct", "dataclass"), default="struct")
    parser.add_argument("--first", choices=("convert", "decode", "schema"), default="convert")
    parser.add_argument("--then", choices=("convert", "decode", "schema"), default="convert")
    given = parser.parse_args()
    calls = _unguarded() if given.unguarded else _guarded()
    kind: Any = Struct if given.kind == "struct" else Plain
    first = threading.Thread(target=calls[given.first], args=(kind,))
    first.start()
    inside.wait()

    def meet() -> None:
        about.set()
        print(calls[given.then](kind))

    second = threading.Thread(target=meet)
    second.start()
    about.wait()
    second.join(0.5)  # without the guard, the process crashes here
    asked.set()
    first.join()
    second.join()


def _unguarded() -> dict[str, Any]:
    return {
        "convert": lambda kind: msgspec.convert({"text": "a"}, kind),
        "decode": lambda kind: msgspec.json.decode('{"text": "a"}', type=kind),
        "schema": lambda kind: msgspec.json.schema_components([kind])[0],
    }


def _guarded() -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from shared.kernel import parsing

    return {
        "convert": lambda kind: parsing.convert({"text": "a"}, kind),
        "decode": lambda kind: parsing.decode('{"text": "a"}', kind),
        "schema": lambda kind: parsing.schemas([kind], "#/{name}")[0],
    }


if __name__ == "__main__":
    main()
