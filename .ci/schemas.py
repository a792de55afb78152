"""Generate schemas/cli.json: a JSON Schema for the output of each command with --json, from the commands'
declarations."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, get_args, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cli import commands  # noqa: E402
from cli.results import Printed  # noqa: E402
from cli.session import groups  # noqa: E402
from shared.api.registry import OPERATIONS  # noqa: E402
from shared.api.signature import signature  # noqa: E402
from shared.kernel import parsing  # noqa: E402

FILE = ROOT / "schemas" / "cli.json"


def document() -> dict[str, Any]:
    """Return one schema for each command, under its name in $defs, beside the types that they share."""
    printed = dict(sorted(_printed()))
    wanted = {name: _types(each) for name, each in printed.items()}
    every = [each for types in wanted.values() for each in types]
    schemas, components = parsing.schemas(every, "#/$defs/{name}")
    found = iter(schemas)
    described = {
        name.replace(" ", "-"): _any_of(name, printed[name].each_line, [next(found) for _ in types])
        for name, types in wanted.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What Trainyard's commands print with --json",
        "description": "That of a command is #/$defs/<command>, such as #/$defs/data-log. New fields may come.",
        "$defs": {**described, **dict(sorted(components.items()))},
    }


def _printed() -> Iterator[tuple[str, Printed]]:
    """Return each command's name with its declaration."""
    for family, group in {"": commands.load(), **groups}.items():
        for each in group.registered_commands:
            if each.callback:
                yield f"{family} {each.name}".strip(), each.callback.printed  # type: ignore[attr-defined]


def _types(printed: Printed) -> list[Any]:
    types = [kind for answer in printed.answers for kind in _kinds(answer)]
    return list({repr(each): each for each in types}.values())


def _kinds(answer: Any) -> list[Any]:
    """Return the type itself, or the types of an operation's successful answers: "GET runs", or a part of one: "GET
    runs > runs"."""
    if not isinstance(answer, str):
        return [answer]
    operation, *fields = answer.split(" > ")
    found = next(each for each in OPERATIONS if f"{each.method} {each.path}" == operation)
    models = [model for model in signature(found).answers.values() if model is not None]
    return [reduce(_field, fields, model) for model in models]


def _field(model: Any, name: str) -> Any:
    """Return the type of a field of the model, or of the model that a list holds."""
    return get_type_hints(get_args(model)[0] if get_args(model) else model)[name]


def _any_of(command: str, each_line: bool, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    words = f"trainyard {command} --json" + (", each line" if each_line else "")
    return {"title": words, **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})}


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
