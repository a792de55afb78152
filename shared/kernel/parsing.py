"""The only place where bytes from outside become our values: JSON and YAML within limits, and typed values from them.

`read_json` and `read_yaml` return plain values (mappings with text keys, lists, text, finite numbers, booleans, None)
without deep nesting or duplicate keys, so that every later use (a table row, an answer, a job for Azure ML) can write
and read them. Everything else raises BadInput, which names the problem and its place.

msgspec caches its information about a class on the class, and does so before the information is complete. A second
thread that converts to the class at that moment crashes the whole process (SIGSEGV; msgspec 0.22,
`DataclassInfo_Convert`). The same holds for a Struct (`StructInfo_Convert`) and for a schema, which also builds this
information. So one thread at a time builds it, before any value is converted. tests/shared/kernel/msgspec_race.py
reproduces the crash.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import unquote

import yaml

from shared.kernel.errors import BadInput, Impossible

if TYPE_CHECKING:
    import msgspec

DEEPEST = 30  # levels of mappings and lists; the deepest job of Azure ML has about ten
BODY_LIMIT = 512 * 1024  # bytes; a run's record holds a job of some 300 KiB
LARGEST = 2**63 - 1  # an Int64, the largest whole number that tables and Azure ML's services hold

T = TypeVar("T")
Lines = dict[str, int]  # line number (from 1) of each key, by the key's path, such as `limits.timeout`

_decoders: dict[object, msgspec.json.Decoder[Any]] = {}
_preparing = RLock()


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """Convert the value to this type. Unless `strict`, texts become numbers and booleans.

    Raises msgspec.ValidationError.
    """
    import msgspec  # here and below: not at a cold start

    _decoder(kind)
    return msgspec.convert(value, kind, strict=strict)


def decode(text: str | bytes, kind: type[T]) -> T:
    """Decode JSON as a value of this type. Raises msgspec.DecodeError and UnicodeError."""
    return cast("T", _decoder(kind).decode(text))


def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    import msgspec

    if kind not in _decoders:
        with _preparing:
            _decoders[kind] = msgspec.json.Decoder(cast("type[Any]", kind))
    return _decoders[kind]


def schemas(kinds: Iterable[Any], ref_template: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return the JSON schemas of these types, and of every class in these types."""
    import msgspec

    with _preparing:
        return msgspec.json.schema_components(list(kinds), ref_template=ref_template)


def read_body(body: bytes, model: type[T]) -> T:
    """Decode the JSON body as this model. Raises BadInput."""
    if len(body) > BODY_LIMIT:
        raise BadInput(f"The body has {len(body)} bytes, the limit is {BODY_LIMIT}. Upload data to storage instead.")
    return _fit(read_json(body, "The body"), model, "The body")


def read_query(params: Mapping[str, str], model: type[T]) -> T:
    """Convert the query's texts to this model. Unknown parameters are ignored: `code` belongs to the host."""
    return _fit(dict(params), model, "The query", strict=False)


def _fit(value: object, model: type[T], what: str, strict: bool = True) -> T:
    import msgspec

    try:
        return convert(value, model, strict=strict)
    except msgspec.ValidationError as exc:
        from shared.kernel.misfits import sentence  # read only for a bad value

        raise BadInput(sentence(str(exc), value, what)) from exc


def read_key(text: str | None) -> str | None:
    """Return the Idempotency-Key header. Raises BadInput for a key that is too long or not printable ASCII."""
    if text is not None and not re.fullmatch(r"[ -~]{1,128}", text):
        raise BadInput("Idempotency-Key must have 1 to 128 printable ASCII characters.")
    return text


def read_json(data: bytes, what: str) -> Any:
    """Decode JSON from bytes. The sentence of an error begins with `what`."""
    try:
        value = json.loads(data, object_pairs_hook=_single, parse_constant=_no_constant)
    except _Refused as exc:
        raise BadInput(f"{what} {exc}") from exc
    except RecursionError as exc:
        raise BadInput(f"{what} is nested more than {DEEPEST} deep.") from exc
    except ValueError as exc:  # bad JSON, bad UTF-8, or a number of more digits than Python converts
        raise BadInput(f"{what} is not valid JSON: {exc}.") from exc
    return plain(value, what)


def read_yaml(data: bytes, what: str) -> tuple[Any, Lines]:
    """Decode YAML (or JSON) from bytes, and return the value with the line of each key.

    Aliases are refused, because a few lines of aliases expand to gigabytes. Duplicate keys are refused, too.
    """
    try:
        text = data.decode("utf-8-sig")
        _check_events(yaml.parse(text, yaml.SafeLoader), what)
        node = yaml.compose(text, yaml.SafeLoader)
        lines = dict(_lines(node, what)) if isinstance(node, yaml.MappingNode) else {}
        value = yaml.safe_load(text)
    except UnicodeDecodeError as exc:
        raise BadInput(f"{what} is not UTF-8 text: byte {exc.start} can't be read.") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise BadInput(f"{what} line {line}: not valid YAML: {exc.problem}.") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise BadInput(f"{what} is not valid YAML: {exc}.") from exc
    return plain(value, what), lines


def plain(value: Any, what: str) -> Any:
    """Return a plain value. Raises Impossible, a BadInput, with the path of a part of another type."""
    if fault := next(_faults(value, "", 1), None):
        path, why = fault
        raise Impossible(f"{what}{f': {path[:200]}' if path else ''} {why}", "unfit_value")
    return value


def _faults(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEEPEST:
        yield path, f"is nested more than {DEEPEST} deep."
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                yield path, f"has the key {key!r}; put it in quotes."
            yield from _text_fault(key, f"{path}.{key}".lstrip("."))
            yield from _faults(item, f"{path}.{key}".lstrip("."), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", depth + 1)
    else:
        yield from _scalar_fault(value, path)


def _scalar_fault(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"is {value}; use a finite number."
    elif isinstance(value, int) and abs(value) > LARGEST:
        yield path, f"is a whole number of more than 63 bits; the largest is {LARGEST}."
    elif value is not None and not isinstance(value, str | int | float):
        yield path, f"is neither text nor number: {str(value)[:80]!r}. Put it in quotes."
    else:
        yield from _text_fault(value, path)


def _text_fault(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and ("\0" in value or any("\ud800" <= char <= "\udfff" for char in value)):
        yield path, "contains a character that can't be stored: NUL or half of a surrogate pair."


class _Refused(Exception):
    """Refused JSON, although Python accepts the text."""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Refused(f"has the key {next(key for key in keys if keys.count(key) > 1)[:80]!r} twice; keep one.")
    return members


def _no_constant(text: str) -> Any:
    raise _Refused(f"contains {text}, which is not a JSON number.")


def _check_events(events: Iterable[Any], what: str) -> None:
    depth = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise BadInput(
                f"{what} line {line}: YAML aliases (*{event.anchor}) are not allowed; write the values themselves."
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise BadInput(f"{what} line {line} is nested more than {DEEPEST} deep.")


def _lines(node: yaml.MappingNode, what: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for key, value in node.value:
        path, line = f"{prefix}{key.value}", key.start_mark.line + 1
        if str(key.value) in seen:
            raise BadInput(f"{what} line {line}: the key {path!r} is there twice; keep one.")
        seen.add(str(key.value))
        yield path, line
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, what, f"{path}.")


def read_time(text: str) -> datetime:
    """Parse an RFC 3339 time or a date, in UTC unless the text has an offset. Raises Impossible."""
    try:
        at = datetime.fromisoformat(text.upper())
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise Impossible(f"since is {text[:40]!r}; write a time like 2026-01-31T08:00:00Z.", "bad_time") from exc


def one_line(encoded: str) -> str:
    """Decode a percent-encoded header or metadata value. Return '' if the text has characters that are not
    printable.
    """
    text = unquote(encoded).strip()
    return text if text.isprintable() else ""
