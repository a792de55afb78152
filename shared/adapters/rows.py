"""Rows as the table service reads and writes them: JSON, and transactions as a multipart body.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from shared.adapters.records import Row
from shared.adapters.wire import Answer, error

ETAG, WRITTEN = "odata.etag", "Timestamp"
VERSION = "2019-02-02"  # of the service, as the SDK asks for it
READ = {"Accept": "application/json;odata=minimalmetadata", "DataServiceVersion": "3.0"}
# JSON holds no line ends, so no body can hold a line like these.
_BATCH, _CHANGES = "batch_trainyard", "changeset_trainyard"
_TYPE, _NUMBERS = "@odata.type", {"Edm.Int64": int, "Edm.Double": float}
_PART = re.compile(rb"^HTTP/1\.1 (\d{3}).*?\r?\n(.*?)(?:\r?\n\r?\n(.*?))?(?=^--)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Operation:
    """One write. `etag`: of the row that is to be there, '*' for any; '' writes whether or not one is there."""

    method: str  # POST makes a row, PUT writes all of it, PATCH some columns, DELETE takes it away
    row: Row
    etag: str = ""

    def path(self, table: str) -> str:
        return f"/{table}" if self.method == "POST" else row_path(table, self.row["PartitionKey"], self.row["RowKey"])

    def headers(self) -> dict[str, str]:
        made = {**READ, "Content-Type": "application/json"}
        if self.method == "POST":
            made["Prefer"] = "return-no-content"
        return made | ({"If-Match": self.etag} if self.etag else {})

    def body(self) -> bytes:
        return b"" if self.method == "DELETE" else to_json(self.row)


def row_path(table: str, partition: str, key: str) -> str:
    return f"/{table}(PartitionKey='{_key(partition)}',RowKey='{_key(key)}')"


def quoted(value: str | datetime) -> str:
    """A text or a time in a filter."""
    if isinstance(value, datetime):
        return f"datetime'{value.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z'"
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def _key(text: str) -> str:
    return quote(text.replace("'", "''"), safe="")


def to_json(row: Row) -> bytes:
    body: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, tuple):
            body[name], body[name + _TYPE] = str(value[0]), value[1]
        elif isinstance(value, float):
            body[name], body[name + _TYPE] = value if math.isfinite(value) else _named(value), "Edm.Double"
        else:
            body[name] = value
    return json.dumps(body, separators=(",", ":")).encode()


def _named(value: float) -> str:
    """NaN, or an infinity, as OData calls it."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(found: Mapping[str, Any]) -> Row:
    """The columns that have a value, and the row's etag."""
    row = {name: value for name, value in found.items() if value is not None and not name.endswith(_TYPE)}
    for name, value in row.items():
        if (kind := found.get(name + _TYPE)) in _NUMBERS:
            row[name] = _NUMBERS[kind](value)
    return row


def batch(url: str, table: str, operations: Iterable[Operation]) -> tuple[dict[str, str], bytes]:
    """Headers and body of a transaction."""
    lines = [f"--{_BATCH}", f"Content-Type: multipart/mixed; boundary={_CHANGES}", ""]
    for number, operation in enumerate(operations):
        lines += [f"--{_CHANGES}", "Content-Type: application/http", "Content-Transfer-Encoding: binary"]
        lines += [f"Content-ID: {number}", "", f"{operation.method} {url}{operation.path(table)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in operation.headers().items()]
        lines += ["", operation.body().decode()]
    lines += [f"--{_CHANGES}--", f"--{_BATCH}--", ""]
    return {"Content-Type": f"multipart/mixed; boundary={_BATCH}"}, "\r\n".join(lines).encode()


def etags(answer: Answer) -> list[str]:
    """The etags of a transaction's rows, '' for one that is gone. Raises HttpResponseError for a refused one."""
    found = []
    for status, head, body in _PART.findall(answer.body):
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head.decode().splitlines())
        }
        if int(status) >= 400:
            raise error(int(status), headers, body)
        found.append(headers.get("etag", ""))
    return found
