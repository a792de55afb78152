"""Models, versions and histories, in Azure Table Storage: one partition, so a change is one transaction.

key                           row
m!<model>                     the model with its aliases; its etag guards every change
v!<model>!<inverted number>   a version, newest first
h!<model>!<inverted order>    a line of the history, newest first
k!<SHA-256>                   a public key with which models were signed
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import from_row, readable, some_columns, to_row
from shared.adapters.tables.table import Table
from shared.kernel.versioned import Stored
from shared.models.model import Change, Model, Version
from shared.models.ports import Write
from shared.models.signing_key import SigningKey

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_PARTITION = "model"
_LAST = 10**10 - 1


class TableModels:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "models")

    def get(self, name: str) -> Stored[Model] | None:
        row = self._table.get(_PARTITION, _model(name))
        return Stored(from_row(Model, row), table.etag(row)) if row else None

    def all(self) -> list[Model]:
        return list(readable(Model, self._table.query(_PARTITION, *table.kind("m"))))

    def write(self, before: Stored[Model] | None, write: Write) -> None:
        row = _row(_model(write.model.name), write.model)
        operations = [table.replace(row, before.etag) if before else table.create(row)]
        operations += [table.create(_row(_numbered("h", each.model, each.order), each)) for each in write.changes]
        if write.version:
            operations.append(table.put(_row(_version(write.version), write.version)))
        self._table.write(*operations)

    def version(self, name: str, number: int) -> Version | None:
        row = self._table.get(_PARTITION, _numbered("v", name, number))
        return from_row(Version, row) if row else None

    def versions(self, name: str, limit: int = 100) -> list[Version]:
        return list(islice((v for v in self._range("v", name, Version) if v.let_go_at is None), limit))

    def kept(self) -> Iterator[Version]:
        rows = readable(Version, self._table.query(_PARTITION, *table.kind("v")))
        return (version for version in rows if version.let_go_at is None)

    def set_asset(self, version: Version, asset: str) -> None:
        key = {"PartitionKey": _PARTITION, "RowKey": _version(version)}
        self._table.write(table.add(key | some_columns(Version, {"asset": asset})))

    def history(self, name: str, limit: int = 100) -> list[Change]:
        return list(islice(self._range("h", name, Change), limit))

    def signing_keys(self) -> list[SigningKey]:
        return list(readable(SigningKey, self._table.query(_PARTITION, *table.kind("k"))))

    def put_signing_key(self, key: SigningKey) -> None:
        self._table.write(table.put(_row(f"k!{key.sha256}", key)))

    def _range(self, kind: str, name: str, record: type[Any]) -> Iterator[Any]:
        start = f"{kind}!{keys.token(name)}"
        return readable(record, self._table.query(_PARTITION, f"{start}!", f'{start}"'))


def _row(key: str, record: Any) -> dict[str, Any]:
    return {"PartitionKey": _PARTITION, "RowKey": key, **to_row(record)}


def _model(name: str) -> str:
    return f"m!{keys.token(name)}"


def _version(version: Version) -> str:
    return _numbered("v", version.model, version.number)


def _numbered(kind: str, name: str, number: int) -> str:
    return f"{kind}!{keys.token(name)}!{_LAST - number:010d}"
