"""One Azure table: reads, and writes in transactions."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError

from shared.adapters.tables.records import Row
from shared.adapters.translation import code_of, reason_of, status_of, translated
from shared.kernel.errors import Changed, Impossible

if TYPE_CHECKING:
    from azure.data.tables import TableEntity, TableServiceClient

Operation = tuple[str, Row] | tuple[str, Row, dict[str, Any]]


@dataclass(frozen=True)
class Ask:
    """An OData filter with its @parameters, and the columns to return."""

    query: str
    parameters: dict[str, Any]
    columns: list[str] | None


class RowMissing(Changed):
    """Write number `index` of a transaction found no row."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class Table:
    """The first write to a missing table creates it; a read treats a missing table as empty."""

    def __init__(self, service: TableServiceClient, name: str) -> None:
        self._service = service
        self._client = service.get_table_client(name)
        self._name = name

    def get(self, partition: str, key: str, columns: list[str] | None = None) -> TableEntity | None:
        """Return the row with all or some columns, or None."""
        with translated(f"could not read table {self._name}"):
            try:
                return self._client.get_entity(partition, key, select=columns)
            except HttpResponseError as exc:
                if status_of(exc) == 404:
                    return None
                raise

    def query(
        self, partition: str, low: str, high: str, limit: int | None = None, columns: list[str] | None = None
    ) -> Iterator[Row]:
        """Yield the rows with low <= key < high, by key, in pages of `limit` (1,000 if None), with all or some
        columns.
        """
        query = "PartitionKey eq @partition and RowKey ge @low and RowKey lt @high"
        yield from self.all(Ask(query, {"partition": partition, "low": low, "high": high}, columns), limit)

    def all(self, ask: Ask, limit: int | None = None) -> Iterator[TableEntity]:
        """Yield the matching rows, in pages of `limit` (1,000 if None)."""
        with translated(f"could not read table {self._name}"):
            try:
                yield from self._client.query_entities(
                    ask.query, parameters=ask.parameters, results_per_page=limit, select=ask.columns
                )
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise

    def page(self, ask: Ask, limit: int, token: str) -> tuple[list[Row], str]:
        """Return up to `limit` rows in one request, and the service's token for the next page, '' at the end.

        The service may return fewer rows than `limit`, even none, after it has searched for some seconds. The token may
        also come from `after_row`, for a query of rows from @low on.
        """
        begin, follow = _read_token(token)
        if begin:
            ask = replace_(ask, parameters=ask.parameters | {"low": max(begin, ask.parameters["low"])})
        with translated(f"could not read table {self._name}"):
            try:
                # The SDK declares the token as text, but it is a mapping.
                pages: Any = self._client.query_entities(
                    ask.query, parameters=ask.parameters, select=ask.columns, results_per_page=limit
                ).by_page(cast("str", follow))
                rows: list[Row] = list(next(pages, ()))
            except HttpResponseError as exc:
                if status_of(exc) != 404:
                    raise
                return [], ""
        return rows, _write_token(pages.continuation_token)

    def write(self, *operations: Operation) -> list[str]:
        """Write to one partition in one transaction. Return the rows' new etags ('' for a deleted row).

        Raises Changed if a row to create exists or a row to replace has another etag, RowMissing if it does not exist.
        """
        with translated(f"could not write table {self._name}"):
            try:
                return self._submit(operations)
            except HttpResponseError as exc:
                if code_of(exc) != "TableNotFound":
                    raise
            self._service.create_table_if_not_exists(self._name)
            return self._submit(operations)

    def _submit(self, operations: tuple[Operation, ...]) -> list[str]:
        try:
            if len(operations) == 1 and operations[0][0] != "delete":  # the SDK's delete hides that the row was missing
                try:
                    return [self._alone(*operations[0])]
                except HttpResponseError as exc:
                    if status_of(exc) != 404:  # otherwise a transaction shows whether the row or the table is missing
                        raise
            results = self._client.submit_transaction(operations)
        except HttpResponseError as exc:
            if status_of(exc) == 404 and code_of(exc) != "TableNotFound":
                raise RowMissing(reason_of(exc), getattr(exc, "index", 0)) from exc
            raise
        return [str(result.get("etag", "")) for result in results]

    def _alone(self, kind: str, row: Row, options: dict[str, Any] | None = None) -> str:
        """Make one write without a transaction, which would cost three times as much. Return the new etag."""
        calls: dict[str, Any] = {
            "create": self._client.create_entity,
            "upsert": self._client.upsert_entity,
            "update": self._client.update_entity,
        }
        return str(calls[kind](row, **(options or {})).get("etag", ""))


def _write_token(token: dict[str, str] | None) -> str:
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=") if token else ""


def after_row(row: Row) -> str:
    """Return the token of the page after this row."""
    return _write_token({"After": str(row["RowKey"])})


def _read_token(token: str) -> tuple[str, dict[str, str] | None]:
    """Return the key to start at, or the service's token. Neither can change which query is sent."""
    if not token:
        return "", None
    no_token = Impossible("`continue` is not a token that came with a page. Begin without one.", "bad_token")
    try:
        token_fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError as exc:
        raise no_token from exc
    if isinstance(token_fields, dict) and set(token_fields) == {"After"}:
        return f"{token_fields['After']}\x20", None  # the next key
    if not isinstance(token_fields, dict) or set(token_fields) != {"PartitionKey", "RowKey"}:
        raise no_token
    return "", token_fields


def kind(name: str) -> tuple[str, str]:
    """Return the range of the keys that start with `name!`."""
    return f"{name}!", f'{name}"'


def etag(row: TableEntity) -> str:
    return str(row.metadata["etag"])


def written_at(row: Row) -> datetime:
    """Return when the row was last written, by the service's clock. The row must have been read with its Timestamp."""
    return cast("datetime", cast("TableEntity", row).metadata["timestamp"])


def create(row: Row) -> Operation:
    return ("create", row)


def put(row: Row) -> Operation:
    """Write the whole row, overwriting an existing row."""
    return ("upsert", row, {"mode": "replace"})


def replace(row: Row, etag: str) -> Operation:
    return ("update", row, {"mode": "replace", **_if(etag)})


def merge(row: Row, etag: str) -> Operation:
    """Write these columns of an existing row. The other columns stay."""
    return ("update", row, {"mode": "merge", **_if(etag)})


def add(row: Row) -> Operation:
    """Write these columns and keep the row's other columns. A missing row is created."""
    return ("upsert", row, {"mode": "merge"})


def delete(partition: str, key: str, etag: str | None = None) -> Operation:
    return ("delete", {"PartitionKey": partition, "RowKey": key}, _if(etag) if etag else {})


def _if(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}
