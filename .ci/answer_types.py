"""Generate schemas/answers.d.ts: TypeScript types of the API's answers, with which `tsc` checks the page's views.

`AnswerOf<["runs", string, "live"]>` is the answer of `GET runs/{run}/live`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from shared.api import openapi  # noqa: E402

FILE = ROOT / "schemas" / "answers.d.ts"
HEAD = "// Types of the API's answers, made by .ci/generate.py from the operations' declarations.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def text() -> str:
    document = openapi.document()
    gets = {path: each["get"] for path, each in document["paths"].items() if "get" in each}
    answers = {path: found for path, get in gets.items() if (found := _answer(get))}
    components = document["components"]["schemas"]
    types = [f"export type {name} = {_type(components[name])};" for name in sorted(_reached(answers, components))]
    return "\n".join((HEAD, *types, "", _answer_of(answers)))


def _answer(get: dict[str, Any]) -> dict[str, Any] | None:
    content = get["responses"].get("200", {}).get("content", {})
    schema: dict[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


def _answer_of(answers: dict[str, dict[str, Any]]) -> str:
    """Return the type that finds an answer by the parts of its path. Paths without parameters come first."""
    ordered = sorted(answers, key=lambda path: (path.count("{"), path))
    lines = [f"  P extends readonly [{_parts(path)}] ? {_type(answers[path])} :" for path in ordered]
    return "\n".join(("export type AnswerOf<P> =", *lines, "  any;", ""))


def _parts(path: str) -> str:
    parts = path.strip("/").split("/")
    return ", ".join("string | number" if part.startswith("{") else json.dumps(part) for part in parts)


def _reached(answers: dict[str, Any], components: dict[str, Any]) -> set[str]:
    """Return the names of the types that the answers consist of."""
    reached, left = set[str](), _names(answers)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left |= _names(components[name])
    return reached


def _names(schema: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema)))


def _type(schema: dict[str, Any]) -> str:
    """Return the TypeScript type of a JSON Schema; `any` for a schema without a type."""
    if ref := schema.get("$ref"):
        return str(ref).rsplit("/", 1)[1]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(each) for each in options))
    if values := schema.get("enum"):
        return " | ".join(json.dumps(value) for value in values)
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema)
    return PLAIN.get(str(kind), "any")


def _array(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    return f"({_type(schema.get('items') or {})})[]"


def _object(schema: dict[str, Any]) -> str:
    """Return the type of an object. All declared fields are required, because the API writes defaults too."""
    if fields := schema.get("properties"):
        return "{ " + " ".join(f"{json.dumps(name)}: {_type(each)};" for name, each in fields.items()) + " }"
    more = schema.get("additionalProperties")
    return f"Record<string, {_type(more) if isinstance(more, dict) else 'any'}>"
