"""The OpenAPI document compared with the app that it describes."""

from __future__ import annotations

import json

from shared.api import openapi
from shared.kernel.index_settings import ROOT
from shared.runs.intake.request import RunRequest


def test_the_document_is_json() -> None:
    """The document is plain JSON, every reference leads to a schema, and operation ids are unique."""
    text = json.dumps(openapi.document())
    document = json.loads(text)
    names = {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert names <= set(document["components"]["schemas"])
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
    assert {link["operationId"] for link in openapi.LINKS.values()} <= set(ids)


def test_the_model_that_checks_is_the_one_described() -> None:
    """The document has every member of the run request's model, and allows no others."""
    schema = openapi.document()["components"]["schemas"]["RunRequest"]
    assert set(schema["properties"]) == set(RunRequest.__struct_fields__)
    assert schema["additionalProperties"] is False


def test_the_docs_describe_every_member_and_code() -> None:
    """docs/api.md names every member of a run's request and every query parameter."""
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    members = [*RunRequest.__struct_fields__]
    queries = [
        p["name"] for path in openapi.document()["paths"].values() for o in path.values() for p in o["parameters"]
    ]
    assert [name for name in {*members, *queries} - {"run", "cluster", "path"} if name not in page] == []
