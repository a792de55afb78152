"""The JSON answers of the table service, at the three levels of metadata that a client may accept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from emulators.storage.common.calls import Answer, Call
from emulators.storage.tables.entity import TYPE, Json, moment_of
from emulators.storage.tables.store import Entity

PREFERENCES = ("return-content", "return-no-content")
LEVELS = ("nometadata", "fullmetadata", "minimalmetadata")


@dataclass(frozen=True)
class Format:
    """The format that a request accepts. Answers include the types of properties unless the level is `nometadata`."""

    level: str
    endpoint: str
    prefers: str = ""

    @classmethod
    def of(cls, call: Call, endpoint: str) -> Format:
        accept = (call.text("$format") or call.headers.get("Accept", "")).lower()
        return cls(
            next((level for level in LEVELS if level in accept), "minimalmetadata"),
            endpoint,
            call.headers.get("Prefer", ""),
        )

    def created(self, body: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a creation, with the created resource unless the client prefers no content."""
        if self.prefers in PREFERENCES:
            headers = {**headers, "Preference-Applied": self.prefers}
        if self.prefers == "return-no-content":
            return Answer(204, headers=headers)
        return Answer(201, body.encode(), {**self._content_type(), **headers})

    def place(self, name: str) -> dict[str, str]:
        """Return the headers with the URL of a created resource."""
        address = f"{self.endpoint}/{name}"
        return {"Location": address, "DataServiceId": address}

    def table(self, name: str) -> str:
        return json.dumps(self._metadata("Tables/@Element") | self._table(name))

    def one_table(self, name: str) -> Answer:
        return Answer(200, self.table(name).encode(), self._content_type())

    def tables(self, names: Sequence[str], headers: Mapping[str, str]) -> Answer:
        body = self._metadata("Tables") | {"value": [self._table(name) for name in names]}
        return Answer(200, json.dumps(body).encode(), {**self._content_type(), **headers})

    def entity(self, table: str, entity: Entity, selected: frozenset[str] | None) -> Answer:
        body = self.one(table, entity, selected)
        return Answer(200, body.encode(), {**self._content_type(), "ETag": entity.etag})

    def one(self, table: str, entity: Entity, selected: frozenset[str] | None = None) -> str:
        head = json.dumps(self._metadata(f"{table}/@Element"))[1:-1]
        body = self._entity(table, entity, selected)
        return f"{{{head},{body[1:]}" if head else body

    def entities(
        self, table: str, found: Sequence[Entity], selected: frozenset[str] | None, headers: Mapping[str, str]
    ) -> Answer:
        head = json.dumps(self._metadata(table))[1:-1]
        values = ",".join(self._entity(table, entity, selected) for entity in found)
        body = f'{{{head}{"," if head else ""}"value":[{values}]}}'
        return Answer(200, body.encode(), {**self._content_type(), **headers})

    def _content_type(self) -> dict[str, str]:
        return {"Content-Type": f"application/json;odata={self.level};streaming=true;charset=utf-8"}

    def _metadata(self, what: str) -> Json:
        return {} if self.level == "nometadata" else {"odata.metadata": f"{self.endpoint}/$metadata#{what}"}

    def _table(self, name: str) -> Json:
        links = {"odata.id": f"{self.endpoint}/Tables('{name}')", "odata.editLink": f"Tables('{name}')"}
        return {**(links if self.level == "fullmetadata" else {}), "TableName": name}

    def _entity(self, table: str, entity: Entity, selected: frozenset[str] | None) -> str:
        head: Json = {} if self.level == "nometadata" else {"odata.etag": entity.etag}
        if self.level == "fullmetadata":
            head |= self._links(table, entity)
        system = {"PartitionKey": entity.partition, "RowKey": entity.row, "Timestamp": moment_of(entity.ticks)}
        head |= {name: value for name, value in system.items() if selected is None or name in selected}
        if selected is None and self.level != "nometadata":
            return _joined(_dumped(head), entity.body)  # the stored JSON, neither parsed nor formatted
        return _dumped(head | self._properties(entity, selected))

    def _properties(self, entity: Entity, selected: frozenset[str] | None) -> Json:
        found = entity.properties()
        if self.level == "nometadata":
            found = {name: value for name, value in found.items() if not name.endswith(TYPE)}
        if selected is None:
            return found
        return {name: value for name, value in found.items() if name.removesuffix(TYPE) in selected}

    def name(self, table: str, entity: Entity) -> str:
        """Return the entity's name as in a URL."""
        keys = (key.replace("'", "''") for key in (entity.partition, entity.row))
        return "{}(PartitionKey='{}',RowKey='{}')".format(table, *map(quote, keys))

    def _links(self, table: str, entity: Entity) -> Json:
        name = self.name(table, entity)
        account = self.endpoint.rpartition("/")[2]
        return {
            "odata.type": f"{account}.{table}",
            "odata.id": f"{self.endpoint}/{name}",
            "odata.editLink": name,
            f"Timestamp{TYPE}": "Edm.DateTime",
        }


def _dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _joined(one: str, other: str) -> str:
    """Join two JSON objects into one."""
    return one if other == "{}" else other if one == "{}" else f"{one[:-1]},{other[1:]}"
