"""Values of a REST body, checked against Microsoft's OpenAPI documents. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json, seconds

INT32 = 2**31 - 1
LONGEST_SECONDS = 10_675_199 * 86_400  # days of the longest TimeSpan of .NET, which ARM reads durations into


def int32(body: Json, key: str, default: int, least: int) -> int:
    """Return a number of `format: int32`, or the default if it is missing or null. Raises BadRequest for a text, a
    float or a boolean."""
    value = body.get(key)
    value = default if value is None else value
    if type(value) is not int or not least <= value <= INT32:
        raise BadRequest(f"{key} is {value!r:.80}; it must be a whole number of at least {least}, at most {INT32}.")
    return value


def duration(body: Json, key: str, section: str = "") -> float | None:
    """Return the seconds of a text with `format: duration`, or None if it is missing or null."""
    value = body.get(key)
    if value is None:
        return None
    try:
        found = seconds(value) if isinstance(value, str) else None
    except ValueError as error:
        raise BadRequest(f"{section}{key}: {error}.") from None
    if found is None or found > LONGEST_SECONDS:
        raise BadRequest(f"{section}{key} is {value!r:.80}; it must be an ISO 8601 duration such as PT1H30M.")
    return found


def text(body: Json, key: str) -> str:
    """Return a required text. Raises BadRequest for a missing or empty text."""
    value = body.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRequest(f"The properties need a {key!r}: a non-empty string, not {value!r:.80}.")
    return value


def optional_text(body: Json, key: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise BadRequest(f"{key} is {value!r:.80}; it must be a string.")
    return value


def mapping(body: Json, key: str) -> Json:
    """Return an object, or an empty one if it is missing or null. Raises BadRequest for any other value."""
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{key!r} must be an object, not {type(value).__name__}.")
    return value


def texts(body: Json, key: str) -> dict[str, Any]:
    """Return an object whose values are texts or null."""
    found = mapping(body, key)
    for name in found:
        optional_text(found, name)
    return found


def flag(body: Json, key: str) -> bool:
    """Return whether the value is true; False if missing or null. Raises BadRequest for any other value."""
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"{key} is {value!r:.80}; it must be true or false.")
    return bool(value)


def choice(value: str, key: str, choices: Iterable[str]) -> str:
    """Return an allowed value unchanged. Raises BadRequest for any other value."""
    if value not in (known := list(choices)):
        raise BadRequest(f"{key} {value!r:.80}; choose {among(known)}.")
    return value
