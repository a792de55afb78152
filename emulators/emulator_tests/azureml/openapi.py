"""Check recorded requests and answers against Microsoft's OpenAPI (Swagger 2.0) documents.

A stock JSON Schema validator can't do this: polymorphic bases have `additionalProperties: false` beside `allOf`,
subtypes are found by discriminator, and `x-nullable` decides about null. Members that a schema doesn't list are
findings, and so are values outside of an enum, even an open one, because a stand-in must not invent values.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator_tests import places

Json = dict[str, Any]
SPECS = places.SPECS / "azure-rest-api-specs" / "specification"
ARM = "machinelearningservices/resource-manager/Microsoft.MachineLearningServices/stable/2024-04-01"
DURATION = re.compile(r"P(?=.)(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list}


@dataclass(frozen=True)
class Schema:
    """A schema, and the document that its relative references refer to."""

    body: Json
    file: Path


@dataclass
class Shape:
    """The allowed content of an object, with inherited fields."""

    properties: dict[str, Schema]
    required: set[str]
    additional: Schema | bool


class OpenApi:
    def __init__(self, *files: Path) -> None:
        self._documents: dict[Path, Json] = {}
        self._paths: list[tuple[re.Pattern[str], Json, Path]] = []
        for file in files:
            for template, operations in self._document(file)["paths"].items():
                pattern = re.sub(r"\\\{[^/]+?\\\}", "[^/]+", re.escape(template))
                self._paths.append((re.compile(pattern), operations, file.resolve()))

    def check(self, entry: Json) -> list[str]:
        """Return the findings about one recorded request and its answer. A request that the documents do not
        contain is a finding."""
        found = self._operation(entry["method"], entry["path"])
        if found is None:
            return [f"{entry['method']} {entry['path']} is not in the contract"]
        operation, file = found
        answer = operation["responses"].get(str(entry["status"])) or operation["responses"].get("default")
        if answer is None:
            return [f"{operation['operationId']}: status {entry['status']} is not in the contract"]
        findings: list[str] = []
        if "schema" in answer:
            schema = Schema(answer["schema"], file)
            findings += self.validate(entry["response"], schema, f"{operation['operationId']} answer")
        elif entry["response"] is not None:
            findings.append(f"{operation['operationId']}: an answer with status {entry['status']} has no body")
        missing = {h.lower() for h in answer.get("headers", {})} - {h.lower() for h in entry["headers"]} - OPTIONAL
        return findings + [f"{operation['operationId']}: header {name} is missing" for name in sorted(missing)]

    def definition(self, file: Path, name: str) -> Schema:
        return Schema(self._document(file)["definitions"][name], file.resolve())

    def validate(self, value: Any, schema: Schema, where: str) -> list[str]:
        return list(self._findings(value, schema, where))

    def _document(self, file: Path) -> Json:
        file = file.resolve()
        if file not in self._documents:
            self._documents[file] = json.loads(file.read_text())
        return self._documents[file]

    def _operation(self, method: str, path: str) -> tuple[Json, Path] | None:
        for pattern, operations, file in self._paths:
            if method.lower() in operations and pattern.fullmatch(path):
                return operations[method.lower()], file
        return None

    def _target(self, schema: Schema) -> Schema:
        while "$ref" in schema.body:
            name, _, pointer = schema.body["$ref"].partition("#")
            file = (schema.file.parent / name).resolve() if name else schema.file
            body: Any = self._document(file)
            for key in pointer.strip("/").split("/"):
                body = body[key]
            schema = Schema(body, file)
        return schema

    def _findings(self, value: Any, schema: Schema, where: str) -> Iterator[str]:
        nullable = schema.body.get("x-nullable")
        schema = self._target(schema)
        if value is None:
            if not (nullable or schema.body.get("x-nullable")):
                yield f"{where} is null"
        elif "properties" in schema.body or "allOf" in schema.body or schema.body.get("type") == "object":
            yield from self._object(value, schema, where)
        else:
            yield from self._scalar(value, schema, where)

    def _scalar(self, value: Any, schema: Schema, where: str) -> Iterator[str]:
        body, kind = schema.body, schema.body.get("type")
        if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
            yield f"{where} is {value!r}, not a {kind}"
        elif kind == "array":
            for index, element in enumerate(value):
                yield from self._findings(element, Schema(body["items"], schema.file), f"{where}[{index}]")
        elif "enum" in body and value not in body["enum"]:
            yield f"{where} is {value!r}, not one of {body['enum']}"
        elif isinstance(value, str):
            yield from _text(value, body, where)

    def _object(self, value: Any, schema: Schema, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{where} is {value!r}, not an object"
            return
        shape = self._shape(schema, value)
        if isinstance(shape, str):
            yield f"{where}{shape}"
            return
        for name in sorted(shape.required - value.keys()):
            yield f"{where}.{name} is missing"
        for name, member in value.items():
            if name in shape.properties:
                yield from self._findings(member, shape.properties[name], f"{where}.{name}")
            elif isinstance(shape.additional, Schema):
                yield from self._findings(member, shape.additional, f"{where}.{name}")
            elif not shape.additional:
                yield f"{where}.{name} is not in the contract"

    def _shape(self, schema: Schema, value: Json) -> Shape | str:
        key = schema.body.get("discriminator")
        if key and key in value and schema.body.get("x-ms-discriminator-value") is None:
            subtype = self._subtype(schema, value[key])
            if subtype is None:
                return f".{key} is {value[key]!r}, which no subtype has"
            schema = subtype
        return self._merged(schema)

    def _subtype(self, base: Schema, tag: str) -> Schema | None:
        for name, body in self._document(base.file)["definitions"].items():
            candidate = Schema(body, base.file)
            if body.get("x-ms-discriminator-value", name) == tag and self._inherits(candidate, base):
                return candidate
        return None

    def _inherits(self, schema: Schema, base: Schema) -> bool:
        parents = [self._target(Schema(part, schema.file)) for part in schema.body.get("allOf", ())]
        return any(parent.body is base.body or self._inherits(parent, base) for parent in parents)

    def _merged(self, schema: Schema) -> Shape:
        body = schema.body
        own = {name: Schema(part, schema.file) for name, part in body.get("properties", {}).items()}
        shape = Shape(own, set(body.get("required", ())), self._additional(schema))
        for part in body.get("allOf", ()):
            parent = self._merged(self._target(Schema(part, schema.file)))
            shape.properties = {**parent.properties, **shape.properties}
            shape.required |= parent.required
        return shape

    def _additional(self, schema: Schema) -> Schema | bool:
        allowed = schema.body.get("additionalProperties")
        if isinstance(allowed, dict):
            return Schema(allowed, schema.file) if allowed else True
        # A schema without members describes any object, and a schema with members allows only those.
        return bool(allowed) or ("properties" not in schema.body and "allOf" not in schema.body and allowed is None)


def _text(value: str, body: Json, where: str) -> Iterator[str]:
    if "pattern" in body and not re.search(body["pattern"], value):
        yield f"{where} is {value!r}, which doesn't match {body['pattern']}"
    if len(value) < body.get("minLength", 0):
        yield f"{where} is shorter than {body['minLength']}"
    kind = body.get("format")
    if kind == "duration" and not DURATION.fullmatch(value):
        yield f"{where} is {value!r}, not a duration"
    if kind == "date-time" and not DATE_TIME.fullmatch(value):
        yield f"{where} is {value!r}, not a time"
    if kind == "uri" and "://" not in value:
        yield f"{where} is {value!r}, not an address"
    if kind == "uuid":
        try:
            uuid.UUID(value)
        except ValueError:
            yield f"{where} is {value!r}, not a GUID"


# Azure sends these, and clients do not need them: the first is a hint, and one of the other two is enough.
OPTIONAL = frozenset({"x-ms-async-operation-timeout", "retry-after", "location"})


def azureml() -> OpenApi:
    return OpenApi(SPECS / ARM / "mfe.json", SPECS / ARM / "machineLearningServices.json")
