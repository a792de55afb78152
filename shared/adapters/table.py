"""One Azure table: reads, and writes that happen together or not at all."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from azure.core.exceptions import HttpResponseError

from shared.adapters import rows
from shared.adapters.records import Row
from shared.adapters.rows import Operation
from shared.adapters.translation import code_of, reason_of, status_of, translated
from shared.adapters.wire import Wire
from shared.kernel.errors import Changed, Impossible

_CONTINUED = ("PartitionKey", "RowKey")  # what a service's token is made of


@dataclass(frozen=True)
class Ask:
    """An OData filter with its @parameters, and the columns wanted."""

    query: str
    parameters: dict[str, Any]
    columns: list[str] | None

    def text(self, limit: int | None, token: dict[str, str]) -> str:
        """The query of the address."""
        words = (rows.quoted(self.parameters[w[1:]]) if w.startswith("@") else w for w in self.query.split(" "))
        asked = {"$filter": " ".join(words)}
        if limit:
            asked["$top"] = str(limit)
        if self.columns:
            asked["$select"] = ",".join(self.columns)
        return urlencode(asked | {f"Next{name}": value for name, value in token.items()}, quote_via=quote)


class RowMissing(Changed):
    """The write number `index` of a transaction found no row."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class Table:
    """A table that is made by the first write that misses it; to reads a missing table is an empty one."""

    def __init__(self, service: Wire, name: str) -> None:
        self._service = service
        self._name = name

    def get(self, partition: str, key: str, columns: list[str] | None = None) -> Row | None:
        """The row with all or some columns, or None."""
        query = urlencode({"$select": ",".join(columns)}, quote_via=quote) if columns else ""
        with translated(f"could not read table {self._name}"):
            try:
                found = self._service.send("GET", rows.row_path(self._name, partition, key), rows.READ, query=query)
            except HttpResponseError as exc:
                if status_of(exc) == 404:
                    return None
                raise
        return rows.from_json(json.loads(found.body))

    def query(
        self, partition: str, low: str, high: str, limit: int | None = None, columns: list[str] | None = None
    ) -> Iterator[Row]:
        """The rows with low <= key < high, by key, in pages of `limit` (1,000 if None), with all or some columns."""
        query = "PartitionKey eq @partition and RowKey ge @low and RowKey lt @high"
        yield from self.all(Ask(query, {"partition": partition, "low": low, "high": high}, columns), limit)

    def all(self, ask: Ask, limit: int | None = None) -> Iterator[Row]:
        """All rows that are asked for, in pages of `limit` (1,000 if None)."""
        token: dict[str, str] | None = {}
        while token is not None:
            found, token = self._page(ask, limit, token)
            yield from found

    def page(self, ask: Ask, limit: int, token: str) -> tuple[list[Row], str]:
        """Up to `limit` rows in one request, and the service's token of what follows, '' at the end.

        The service gives fewer than `limit`, even none, when it has searched for some seconds. The token may be that
        of `after_row`, too, for a query of rows from @low on.
        """
        begin, follow = _read_token(token)
        if begin:
            ask = replace_(ask, parameters=ask.parameters | {"low": max(begin, ask.parameters["low"])})
        found, following = self._page(ask, limit, follow or {})
        return found, _write_token(following)

    def _page(self, ask: Ask, limit: int | None, token: dict[str, str]) -> tuple[list[Row], dict[str, str] | None]:
        with translated(f"could not read table {self._name}"):
            try:
                found = self._service.send("GET", f"/{self._name}()", rows.READ, query=ask.text(limit, token))
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise
                return [], None
        following = {name: found.headers.get(f"x-ms-continuation-Next{name}", "") for name in _CONTINUED}
        given = {name: value for name, value in following.items() if value}
        return [rows.from_json(row) for row in json.loads(found.body)["value"]], given or None

    def write(self, *operations: Operation) -> list[str]:
        """Make these writes to one partition, all or none, and return the rows' new etags ('' for a deleted one).

        Raises Changed if a row to create is there or one to replace has another etag, RowMissing if it isn't there.
        """
        with translated(f"could not write table {self._name}"):
            try:
                return self._submit(operations)
            except HttpResponseError as exc:
                if code_of(exc) != "TableNotFound":
                    raise
            self._make()
            return self._submit(operations)

    def _make(self) -> None:
        body = json.dumps({"TableName": self._name}).encode()
        headers = {**rows.READ, "Content-Type": "application/json", "Prefer": "return-no-content"}
        try:
            self._service.send("POST", "/Tables", headers, body)
        except HttpResponseError as exc:
            if code_of(exc) != "TableAlreadyExists":
                raise

    def _submit(self, operations: tuple[Operation, ...]) -> list[str]:
        try:
            if len(operations) == 1:
                return [self._alone(operations[0])]
            headers, body = rows.batch(self._service.url, self._name, operations)
            return rows.etags(self._service.send("POST", "/$batch", headers, body))
        except HttpResponseError as exc:
            if status_of(exc) == 404 and code_of(exc) != "TableNotFound":
                number = re.match(r"(\d+):", exc.message)  # a transaction says which of its operations it was
                raise RowMissing(reason_of(exc), int(number[1]) if number else 0) from exc
            raise

    def _alone(self, one: Operation) -> str:
        """One write without a transaction, which costs three times as much. Returns the new etag."""
        return self._service.send(one.method, one.path(self._name), one.headers(), one.body()).headers.get("ETag", "")


def _write_token(token: dict[str, str] | None) -> str:
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=") if token else ""


def after_row(row: Row) -> str:
    """The token of a page that begins behind this row."""
    return _write_token({"After": str(row["RowKey"])})


def _read_token(token: str) -> tuple[str, dict[str, str] | None]:
    """The key to begin at, or the service's token. Whatever they say, the query that they go with is ours."""
    if not token:
        return "", None
    no_token = Impossible("`continue` is no token that came with a page. Begin without one.", "bad_token")
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError as exc:
        raise no_token from exc
    if isinstance(found, dict) and set(found) == {"After"}:
        return f"{found['After']}\x20", None  # the next key
    if not isinstance(found, dict) or set(found) != {"PartitionKey", "RowKey"}:
        raise no_token
    return "", found


def kind(name: str) -> tuple[str, str]:
    """The range of the keys that begin with `name!`."""
    return f"{name}!", f'{name}"'


def etag(row: Row) -> str:
    return str(row[rows.ETAG])


def written_at(row: Row) -> datetime:
    """When the row was written last, by the service's clock; the row must have been asked for with its Timestamp."""
    return datetime.fromisoformat(row[rows.WRITTEN])


def create(row: Row) -> Operation:
    return Operation("POST", row)


def put(row: Row) -> Operation:
    """Write the row over whatever is there."""
    return Operation("PUT", row)


def replace(row: Row, etag: str) -> Operation:
    return Operation("PUT", row, etag)


def merge(row: Row, etag: str) -> Operation:
    """Write these columns and leave the others."""
    return Operation("PATCH", row, etag)


def add(row: Row) -> Operation:
    """Write these columns and leave the others of the row, which need not be there."""
    return Operation("PATCH", row)


def delete(partition: str, key: str, etag: str | None = None) -> Operation:
    return Operation("DELETE", {"PartitionKey": partition, "RowKey": key}, etag or "*")
