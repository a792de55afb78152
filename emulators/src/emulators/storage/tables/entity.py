"""An entity in the table service's format: typed properties in JSON, and Azure's limits on them.

https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
https://learn.microsoft.com/rest/api/storageservices/payload-format-for-table-service-operations
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from emulators.storage.common.errors import StorageError, invalid_input

Json = dict[str, Any]
Check = Callable[[str, Any], tuple[Any, int, bool]]

TYPE = "@odata.type"
SYSTEM = ("PartitionKey", "RowKey", "Timestamp")
ENTITY_BYTES, PROPERTY_BYTES, KEY_BYTES = 2**20, 2**16, 2**10
MOST_PROPERTIES = 252  # in addition to the three system properties
LONGEST_NAME = 255
TICKS = 10_000_000  # the service's clock counts tenths of microseconds
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MOMENT = datetime(1601, 1, 1, tzinfo=UTC)
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,7})\d*)?)?(Z|[+-]\d\d:\d\d)?",
)
UNSAFE_KEY = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NAME = re.compile(r"[^\W\d]\w*")


def checked_key(name: str, value: Any) -> str:
    """Return a PartitionKey or RowKey. Raises StorageError for a value that Azure refuses."""
    if not isinstance(value, str):
        sentence = "The values are not specified for all properties in the entity."
        raise StorageError(400, "PropertiesNeedValue", f"{sentence} {name} must be text.")
    if UNSAFE_KEY.search(value):
        message = f"The '{name}' parameter of value '{value}' is out of range."
        raise StorageError(400, "OutOfRangeInput", message)
    if _utf16(value) > KEY_BYTES:
        raise StorageError(400, "KeyValueTooLarge", "The key value must be at most 1 KiB.")
    return value


def checked_properties(document: Mapping[str, Any], keys_bytes: int) -> Json:
    """Return the properties of a body in their stored form, with a type where JSON does not imply the type.

    Nulls, keys, Timestamp and OData's annotations are left out. `keys_bytes` is the size of both keys in bytes. Raises
    StorageError for a value that does not fit its type, or that exceeds a limit.
    """
    stored: Json = {}
    size, count = 4 + keys_bytes, 0
    for name, value in document.items():
        if "@" in name or name.startswith("odata.") or name in SYSTEM or value is None:
            continue
        _check_name(name)
        kind = document.get(name + TYPE) or _kind_of(name, value)
        value, bytes_of_value, shown = _checked(name, kind, value)
        if shown:
            stored[name + TYPE] = kind
        stored[name] = value
        size += 8 + _utf16(name) + bytes_of_value
        count += 1
    if count > MOST_PROPERTIES:
        raise StorageError(400, "TooManyProperties", "The entity contains more properties than allowed.")
    if size > ENTITY_BYTES:
        raise entity_too_large()
    return stored


def entity_too_large() -> StorageError:
    return StorageError(400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")


def size_of(properties: Mapping[str, Any], partition: str, row: str) -> int:
    """Return the size of a stored entity by Azure's formula."""
    size = 4 + _utf16(partition) + _utf16(row)
    for name, value in properties.items():
        if not name.endswith(TYPE):
            kind = properties.get(name + TYPE) or _kind_of(name, value)
            size += 8 + _utf16(name) + _checked(name, kind, value)[1]
    return size


def utf16(*texts: str) -> int:
    return sum(map(_utf16, texts))


def ticks_of(text: str) -> int:
    """Convert an Edm.DateTime to ticks since 1970. Raises ValueError."""
    match = MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time as in ISO 8601")
    day, clock, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or 'Z'}")
    if moment < FIRST_MOMENT:
        raise ValueError(f"{text!r} is before 1601")
    return (moment - EPOCH) // timedelta(seconds=1) * TICKS + int((fraction or "0").ljust(7, "0"))


def moment_of(ticks: int, digits: int = 7) -> str:
    """Format ticks as ISO 8601. The service's own times always have seven digits."""
    seconds, fraction = divmod(ticks, TICKS)
    text = _to_the_second(seconds)
    tail = f".{fraction:07d}" if digits else f".{fraction:07d}".rstrip("0").rstrip(".")
    return f"{text}{tail}Z"


def etag_of(ticks: int) -> str:
    return f"W/\"datetime'{moment_of(ticks).replace(':', '%3A')}'\""


@lru_cache(maxsize=1024)
def _to_the_second(seconds: int) -> str:
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def _utf16(text: str) -> int:
    return 2 * len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass"))


def _check_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise StorageError(400, "PropertyNameTooLong", f"The property name exceeds {LONGEST_NAME} characters.")
    if not NAME.fullmatch(name):
        raise StorageError(400, "PropertyNameInvalid", f"The property name {name!r} is invalid.")


def _kind_of(name: str, value: Any) -> str:
    match value:
        case bool():
            return "Edm.Boolean"
        case int():
            return "Edm.Int32"
        case float():
            return "Edm.Double"
        case str():
            return "Edm.String"
    raise _wrong(name, "a property", value)


def _checked(name: str, kind: str, value: Any) -> tuple[Any, int, bool]:
    """Return the value in its stored form, its size in bytes, and whether its type must be stored too."""
    try:
        return _CHECKS[kind](name, value)
    except (ValueError, TypeError, OverflowError):
        raise _wrong(name, kind, value) from None
    except KeyError:
        raise invalid_input(f"The type {kind!r} of {name!r} is unknown; there are: {', '.join(_CHECKS)}.") from None


def _wrong(name: str, kind: str, value: Any) -> StorageError:
    return invalid_input(f"An error occurred while processing this request. {name!r} is {value!r:.100}, no {kind}.")


def _string(name: str, value: Any) -> tuple[Any, int, bool]:
    if not isinstance(value, str):
        raise TypeError
    size = _utf16(value)
    if size > PROPERTY_BYTES:
        raise _property_too_large(name)
    return value, 4 + size, False


def _binary(name: str, value: Any) -> tuple[Any, int, bool]:
    try:
        size = len(base64.b64decode(value, validate=True))
    except binascii.Error as error:
        raise ValueError from error
    if size > PROPERTY_BYTES:
        raise _property_too_large(name)
    return value, 4 + size, True


def _whole(bits: int) -> Check:
    def check(_: str, value: Any) -> tuple[Any, int, bool]:
        if isinstance(value, bool | float):
            raise TypeError
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError
        return (number, 4, False) if bits == 32 else (str(number), 8, True)  # JSON numbers do not have 64 bits

    return check


def _double(_: str, value: Any) -> tuple[Any, int, bool]:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number) and not (isinstance(value, str) and value[-1].isalpha()):
        raise ValueError  # beyond the range of a double
    if math.isfinite(number):
        return number, 8, False
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity", 8, True


def _boolean(_: str, value: Any) -> tuple[Any, int, bool]:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if not isinstance(value, bool):
        raise TypeError
    return value, 1, False


def _datetime(_: str, value: Any) -> tuple[Any, int, bool]:
    return moment_of(ticks_of(value), digits=0), 8, True


def _guid(_: str, value: Any) -> tuple[Any, int, bool]:
    if not isinstance(value, str):
        raise TypeError
    return str(uuid.UUID(value)), 16, True


def _property_too_large(name: str) -> StorageError:
    message = (
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
        f"encoded and the maximum number of characters should be 32K or less. The property is {name!r}."
    )
    return StorageError(400, "PropertyValueTooLarge", message)


_CHECKS = {
    "Edm.String": _string,
    "Edm.Binary": _binary,
    "Edm.Int32": _whole(32),
    "Edm.Int64": _whole(64),
    "Edm.Double": _double,
    "Edm.Boolean": _boolean,
    "Edm.DateTime": _datetime,
    "Edm.Guid": _guid,
}
