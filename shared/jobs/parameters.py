"""A job's parameters: the literal inputs that a run may set, each with type, range, default and help. Pure.

A trainer describes its parameters in parameters.json beside its job.yaml, and a template in <name>.parameters.json
beside the template. The description is a JSON Schema limited to KEYWORDS. An input without a description has only the
type of its default. Numbers given as text ("1e-3", which YAML reads as text) are converted before they are compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shared.jobs.problem import Problem
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadSetting
from shared.kernel.suggest import did_you_mean, there_are

if TYPE_CHECKING:
    from shared.jobs.search import Sweep

Schema = dict[str, Any]
Parameters = Mapping[str, Schema]  # by name, in display order

# Azure ML inserts literal inputs and file paths unchanged into the command, and a shell reads the command. Texts that
# match PLAIN need no quotes.
MOST_UNKNOWN = 50  # names; more are rejected without explaining each
PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./][A-Za-z0-9_@%+=:,./-]*")
AUTO = "^auto$"  # the pattern of a parameter whose value the trainer may choose
TYPES = ("integer", "number", "string", "boolean")
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
DOWNLOADS = "x-downloads"  # see downloads.py
KEYWORDS = {"type", "description", "default", "enum", "pattern", "x-aliases", DOWNLOADS, *BOUNDS}


def parameters(template: JobSpec, described: Mapping[str, Any], where: str) -> dict[str, Schema]:
    """The template's literal inputs with their descriptions. Raises BadSetting for an invalid default."""
    literals = template.values
    if unknown := set(described) - set(literals):
        raise BadSetting(
            f"{where}: {there_are(unknown)} are not literal inputs of the job; it has {there_are(literals)}."
        )
    for name, schema in described.items():
        _check_schema(f"{where}: {name}", schema)
    schemas = {name: {**described.get(name, _guessed(value)), "default": value} for name, value in literals.items()}
    for name, schema in schemas.items():
        if name in described and (fault := fault_of(schema, converted(schema, schema["default"]))):
            raise BadSetting(f"{where}: the default of {name} {fault}")
    return {name: schemas[name] for name in [*described, *(n for n in schemas if n not in described)]}


def _check_schema(where: str, schema: Any) -> None:
    kinds = _kinds(schema) if isinstance(schema, dict) else ()
    if not kinds or not set(kinds) <= set(TYPES) or not set(schema) <= KEYWORDS:
        raise BadSetting(f"{where} must have a type from {', '.join(TYPES)}, and keywords from {there_are(KEYWORDS)}.")
    if not isinstance(schema.get("description"), str):
        raise BadSetting(f"{where} must have a description.")
    if not all(_is_download(value) for value in schema.get(DOWNLOADS, {}).values()):
        raise BadSetting(f"{where}: {DOWNLOADS} needs the texts from (https://...), cached and instead for each value.")


def _is_download(value: Any) -> bool:
    keys = {"from", "cached", "instead"}
    is_whole = isinstance(value, dict) and set(value) == keys and all(isinstance(each, str) for each in value.values())
    return is_whole and value["from"].startswith("https://")


def _guessed(default: Any) -> Schema:
    if isinstance(default, bool):
        return {"type": "boolean"}
    return {"type": "number"} if isinstance(default, int | float) else {"type": "string"}


def _kinds(schema: Schema) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(map(str, kinds))


def wrong_parameters(
    schemas: Parameters, written: Mapping[str, Any], requested: Mapping[str, Any]
) -> Iterator[Problem]:
    """Problems of parameters: unknown, with an invalid value, or read by a shell as more than one word."""
    for at, values in (("inputs", written), ("parameters", requested)):
        yield from unknown_names(schemas, values, at)
        yield from bad_values(schemas, values, at)
    yield from unquoted(requested)


def unfit_space(schemas: Parameters, sweep: Sweep | None) -> Iterator[Problem]:
    """Problems of a search space: unknown parameters, and values that a parameter does not allow."""
    space = sweep.space if sweep else {}
    yield from unknown_names(schemas, space, "sweep")
    for name, parameter in space.items():
        for value in parameter.ends:
            yield from bad_values(schemas, {name: value}, "sweep")
            yield from unquoted({name: value})


def unquoted(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of texts with several words for a shell."""
    for name, value in values.items():
        if isinstance(value, str) and not PLAIN.fullmatch(value):
            yield Problem(
                f"parameters.{name}",
                f"is {value[:80]!r}. It becomes part of a command, so it may only have letters, digits and "
                "_ @ % + = : , . / - only, and must not begin with a dash.",
                "bad_parameter",
            )


def unknown_names(schemas: Parameters, names: Mapping[str, Any], at: str) -> Iterator[Problem]:
    """A problem for each unknown name; a single problem for very many names."""
    unknown = [name for name in names if name not in schemas]
    if len(unknown) > MOST_UNKNOWN:
        words = f"has {len(unknown):,} names that are not parameters, such as {unknown[0][:80]!r}."
        yield Problem(at, f"{words} There are: {there_are(schemas)}.", "unknown_parameter")
        return
    for name in unknown:
        words = f"is not a parameter.{did_you_mean(name, schemas)} There are: {there_are(schemas)}."
        yield Problem(f"{at}.{name}", words, "unknown_parameter")


def bad_values(schemas: Parameters, values: Mapping[str, Any], at: str) -> Iterator[Problem]:
    """A problem for each value forbidden by the parameter."""
    for name, value in values.items():
        if name in schemas and (fault := fault_of(schemas[name], converted(schemas[name], value))):
            yield Problem(f"{at}.{name}", fault, "bad_parameter")


def all_converted(schemas: Parameters, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, with numbers and switches converted from text."""
    return {name: converted(schemas[name], value) if name in schemas else value for name, value in inputs.items()}


def converted(schema: Schema, value: Any) -> Any:
    """The value in the parameter's type; unchanged without a type."""
    kinds = _kinds(schema)
    if kinds[:1] == ("boolean",) and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kinds[:1] == ("string",) and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not {"integer", "number"} & set(kinds):
        return value
    number = _number(value)
    if number is None:
        return value
    return int(number) if "integer" in kinds and float(number).is_integer() else number


def _number(value: Any) -> float | int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > 40 or "_" in value:
        return None
    try:
        number = int(value) if value.strip().lstrip("+-").isdigit() else float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def fault_of(schema: Schema, value: Any) -> str:
    """The problem of a converted value, as the end of a sentence that starts with the parameter's name; '' if valid."""
    shown, kinds = repr(value)[:80], _kinds(schema)
    if isinstance(value, str) and schema.get("pattern") == AUTO and value == "auto":
        return ""
    if choices := schema.get("enum"):
        if value in choices:
            return ""
        return f"is {shown}.{did_you_mean(str(value), map(str, choices))} Choose from {there_are(map(str, choices))}."
    if not _has_type(kinds, schema, value):
        return f"is {shown}; use {describe(schema)}."
    if isinstance(value, int | float) and not isinstance(value, bool) and not _in_range(schema, value):
        return f"is {shown}; use {describe(schema)}."
    return ""


def _has_type(kinds: tuple[str, ...], schema: Schema, value: Any) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int):
        return bool({"integer", "number"} & set(kinds))
    if isinstance(value, float):
        return "number" in kinds and math.isfinite(value)
    return isinstance(value, str) and "string" in kinds and schema.get("pattern") != AUTO


def _in_range(schema: Schema, number: float) -> bool:
    return (
        number >= schema.get("minimum", number)
        and number <= schema.get("maximum", number)
        and ("exclusiveMinimum" not in schema or number > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or number < schema["exclusiveMaximum"])
    )


def describe(schema: Schema) -> str:
    """The allowed values, in words: `a whole number from 1`, `a number above 0 and below 1`, `auto or ...`."""
    kinds = _kinds(schema)
    if choices := schema.get("enum"):
        return f"one of {there_are(map(str, choices))}"
    if "boolean" in kinds:
        return "true or false"
    if not {"integer", "number"} & set(kinds):
        return "text"
    kind = "a whole number" if "integer" in kinds else "a number"
    low = _bound(schema, "minimum", "from") or _bound(schema, "exclusiveMinimum", "above")
    to, below = _bound(schema, "maximum", "to"), _bound(schema, "exclusiveMaximum", "below")
    words = f"{kind}{low}{to or (f' and{below}' if low and below else below)}"
    return f"{words}, or auto" if schema.get("pattern") == AUTO else words


def _bound(schema: Schema, key: str, word: str) -> str:
    return f" {word} {schema[key]:g}" if key in schema else ""
