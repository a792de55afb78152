"""The one place where bytes from outside become values of ours: JSON and YAML, within limits, and typed ones of them.

What `read_json` and `read_yaml` give is plain (mappings with text keys, lists, text, finite numbers, booleans, None),
not deep and not doubled, so that whatever is done with it later (a table row, an answer, a job for Azure ML) can be
written and read. Everything else raises BadInput, which says what it is, and where.

msgspec keeps what it knows of a class with the class, and puts it there before it is complete. A second thread that
converts to the class in that moment ends the whole process (SIGSEGV; msgspec 0.22, `DataclassInfo_Convert`). So what it
knows is put together by one thread at a time, before a value is converted.
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

DEEPEST = 30  # levels of mappings and lists; Azure ML's own deepest job has about ten
BODY_LIMIT = 512 * 1024  # bytes; a run's record holds a job of some 300 KiB
LARGEST = 2**63 - 1  # an Int64, the largest whole number that tables and Azure ML's services hold

T = TypeVar("T")
Lines = dict[str, int]  # the line (from 1) of each key by its path, `limits.timeout`

_decoders: dict[object, msgspec.json.Decoder[Any]] = {}
_preparing = RLock()


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """The value as one of this type; not `strict`: texts become numbers and truth values. Raises
    msgspec.ValidationError."""
    import msgspec  # here and below: not at a cold start

    _decoder(kind)
    return msgspec.convert(value, kind, strict=strict)


def decode(text: str | bytes, kind: type[T]) -> T:
    """JSON as a value of this type. Raises msgspec.DecodeError, and UnicodeError."""
    return cast("T", _decoder(kind).decode(text))


def _decoder(kind: object) -> msgspec.json.Decoder[Any]:
    import msgspec

    if kind not in _decoders:
        with _preparing:
            _decoders[kind] = msgspec.json.Decoder(cast("type[Any]", kind))
    return _decoders[kind]


def read_body(body: bytes, model: type[T]) -> T:
    """The body as JSON of this model."""
    if len(body) > BODY_LIMIT:
        raise BadInput(f"The body has {len(body)} bytes, the limit is {BODY_LIMIT}. Put data into storage instead.")
    return _fit(read_json(body, "The body"), model, "The body")


def read_query(params: Mapping[str, str], model: type[T]) -> T:
    """The query's texts as this model. Parameters that it doesn't know are left alone: `code` is the host's."""
    return _fit(dict(params), model, "The query", strict=False)


def _fit(value: object, model: type[T], what: str, strict: bool = True) -> T:
    import msgspec

    try:
        return convert(value, model, strict=strict)
    except msgspec.ValidationError as exc:
        raise BadInput(f"{what} does not fit: {exc}.") from exc


def read_key(text: str | None) -> str | None:
    """The Idempotency-Key header."""
    if text is not None and not re.fullmatch(r"[ -~]{1,128}", text):
        raise BadInput("Idempotency-Key must have 1 to 128 printable ASCII characters.")
    return text


def read_json(data: bytes, what: str) -> Any:
    """The JSON in these bytes. `what` begins the sentence of an error."""
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
    """The YAML (or JSON) in these bytes, and the line of each key.

    Aliases are refused, because a few lines of them expand to gigabytes, and so are keys that stand twice.
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
    """The value, if all of it is plain. Raises Impossible, which is a BadInput, with the path of what isn't."""
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
        yield path, "holds a character that can't be stored: NUL or half of a surrogate pair."


class _Refused(Exception):
    """Valid JSON for Python, but not for us."""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Refused(f"has the key {next(key for key in keys if keys.count(key) > 1)[:80]!r} twice; keep one.")
    return members


def _no_constant(text: str) -> Any:
    raise _Refused(f"holds {text}, which is not a JSON number.")


def _check_events(events: Iterable[Any], what: str) -> None:
    depth = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise BadInput(f"{what} line {line}: YAML aliases (*{event.anchor}) are not taken; write the values out.")
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
            raise BadInput(f"{what} line {line}: the key {path!r} stands twice; keep one.")
        seen.add(str(key.value))
        yield path, line
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, what, f"{path}.")


def read_time(text: str) -> datetime:
    """A time of RFC 3339, or a date; in UTC unless it says otherwise."""
    try:
        at = datetime.fromisoformat(text.upper())
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise Impossible(f"since is {text[:40]!r}; write a time like 2026-01-31T08:00:00Z.", "bad_time") from exc


def one_line(encoded: str) -> str:
    """The text of a percent-encoded header or metadata, '' if it is more than printable characters."""
    text = unquote(encoded).strip()
    return text if text.isprintable() else ""
