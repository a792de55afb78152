"""The change in a request. Its URL and headers are parsed first, to authorize the request, and its body after that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from emulators.serving import parse_json
from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError, invalid_input, missing_header, not_served
from emulators.storage.common.naming import checked_name
from emulators.storage.common.rights import Right
from emulators.storage.tables.entity import TYPE, Json, checked_key, checked_properties, utf16
from emulators.storage.tables.store import Failed, Write

MOST_OPERATIONS = 100
TABLE_NAME = re.compile(r"(?i:(?!tables$))[A-Za-z][A-Za-z0-9]*")
ENTITY = re.compile(r"(\w+)\(PartitionKey='((?:[^']|'')*)',\s*RowKey='((?:[^']|'')*)'\)")
KEYED = re.compile(r"[^/]+/.*\(.*\)")  # something with a key below a table
ETAG = re.compile(r'\*|[Ww]/"[^"]*"')  # Table Storage has no strong etags
KINDS = {"PUT": "replace", "MERGE": "merge", "PATCH": "merge", "DELETE": "delete"}


@dataclass(frozen=True)
class Aim:
    """The kind and the target of a change. `keys` is None if the body has the keys."""

    kind: str
    table: str
    keys: tuple[str, str] | None
    etag: str | None

    @property
    def right(self) -> Right:
        return Right("o", (letters(self),), self.table)


def letters(change: Aim | Write) -> str:
    """Return the permissions that a signature needs for the change."""
    return {"insert": "a", "delete": "d"}.get(change.kind) or ("u" if change.etag else "au")


def aim(call: Call) -> Aim:
    """Return the kind and target of a request's change. Raises StorageError, 400 and 405."""
    method = call.headers.get("X-HTTP-Method", call.method) if call.method == "POST" else call.method
    resource, etag = call.resource, call.headers.get("If-Match")
    if method == "POST":
        return Aim("insert", checked_table(table_of(resource)), None, None)
    if etag is not None and not ETAG.fullmatch(etag):
        raise invalid_input(f"The etag value {etag!r:.80} specified in one of the request headers is not valid.")
    match, kind = ENTITY.fullmatch(resource), KINDS.get(method)
    if kind and KEYED.fullmatch(resource):
        return Aim(kind, checked_table(table_of(resource)), None, etag)
    if match is None or kind is None:
        if "(" in resource:
            checked_table(resource.partition("(")[0])
        raise not_served(call.method, call.path)
    if kind == "delete" and etag is None:
        raise missing_header("If-Match")
    partition = checked_key("PartitionKey", unquoted(match[2]))
    return Aim(kind, checked_table(match[1]), (partition, checked_key("RowKey", unquoted(match[3]))), etag)


def write(aimed: Aim, call: Call) -> Write:
    """Return the change, completed from the request's body. Raises StorageError, 400."""
    if aimed.keys is None and aimed.kind != "insert":
        sentence = "The number of keys specified in the URI does not match number of key properties for the resource"
        raise invalid_input(f"{sentence} {aimed.table}.")
    if aimed.kind == "delete" and aimed.keys:
        return Write(aimed.kind, aimed.table, *aimed.keys, {}, aimed.etag)
    properties = document(call)
    keys = aimed.keys or (
        own_key("PartitionKey", properties),
        own_key("RowKey", properties),
    )
    return Write(aimed.kind, aimed.table, *keys, checked_properties(properties, utf16(*keys)), aimed.etag)


def own_key(name: str, properties: Json) -> str:
    """Return the key in the body. Raises StorageError, 400, unless it is a string."""
    if properties.get(name + TYPE) not in (None, "Edm.String"):
        raise invalid_input(f"{name} is text, so its type can be Edm.String alone.")
    return checked_key(name, properties.get(name))


def numbered(index: int, operation: Call) -> Write:
    """Return the change of one operation of a batch. Raises Failed, with the operation's number."""
    if index >= MOST_OPERATIONS:
        message = f"The batch request operation exceeds the maximum {MOST_OPERATIONS} changes per change set."
        raise Failed(index, invalid_input(message))
    try:
        return write(aim(operation), operation)
    except StorageError as error:
        raise Failed(index, error) from error


def check_group(writes: list[Write]) -> None:
    """Raise Failed unless all writes are to one table and partition, and no entity occurs twice."""
    seen = set()
    for index, one in enumerate(writes):
        if (one.table.lower(), one.partition) != (writes[0].table.lower(), writes[0].partition):
            message = "All commands in a batch must operate on same entity group."
            raise Failed(index, StorageError(400, "CommandsInBatchActOnDifferentPartitions", message))
        if one.row in seen:
            message = (
                "The batch request contains multiple changes with same row key. An entity can appear only once in a "
                "batch request."
            )
            raise Failed(index, StorageError(400, "InvalidDuplicateRow", message))
        seen.add(one.row)


def document(call: Call) -> Json:
    """Return the body. Raises StorageError, 400, unless it is a JSON object."""
    try:
        found = parse_json(call.body)
    except ValueError:
        raise invalid_input("The body is not JSON.") from None
    if not isinstance(found, dict):
        raise invalid_input("The body must be a JSON object.")
    return found


def table_of(resource: str) -> str:
    return resource.partition("/")[0].removesuffix("()")


def checked_table(name: Any) -> str:
    """Return the name of a table. Raises StorageError for a name that Azure does not allow."""
    return checked_name(name if isinstance(name, str) else "", TABLE_NAME)


def unquoted(key: str) -> str:
    return key.replace("''", "'")
