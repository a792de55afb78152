"""The account's properties, and the headers of every answer."""

from __future__ import annotations

import uuid
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree as ET

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from emulator_tests.storage.raw import BLOCK_BLOB, VERSION, Raw


@pytest.mark.parametrize("body", [
    b"<Storage", b"nonsense",
    b"<StorageServiceProperties><Cors><CorsRule><AllowedMethods>ODD</AllowedMethods></CorsRule></Cors>"
    b"</StorageServiceProperties>",
])  # fmt: skip
def test_broken_properties_change_nothing(blobs: BlobServiceClient, raw: Raw, body: bytes) -> None:
    """Malformed properties are a 400 and change nothing."""
    assert raw.ask("PUT", "", "restype=service&comp=properties", body=body).status == 400
    assert blobs.get_service_properties()["cors"] == []


def test_every_answer_has_its_headers(container: ContainerClient, raw: Raw) -> None:
    """Every answer has a unique id, the date and a version. A successful answer repeats the client's own id."""
    container.upload_blob("a", b"hello")
    name, seen = container.container_name, set()
    for method, path, query, status in (
        ("GET", f"{name}/a", "", 200), ("HEAD", f"{name}/a", "", 200),
        ("GET", name, "restype=container&comp=list", 200), ("PUT", f"{name}/a", "comp=metadata", 200),
        ("GET", f"{name}/missing", "", 404), ("GET", "", "comp=list", 200), ("DELETE", f"{name}/a", "", 202),
    ):  # fmt: skip
        reply = raw.ask(method, path, query, {"x-ms-client-request-id": "mine-1"})
        assert reply.status == status
        assert parsedate_to_datetime(reply.headers["Date"]).tzinfo is not None
        assert uuid.UUID(reply.headers["x-ms-request-id"])
        seen.add(reply.headers["x-ms-request-id"])
        if status < 400:
            assert reply.headers["x-ms-client-request-id"] == "mine-1"
            assert reply.headers["x-ms-version"]
    assert len(seen) == 7


def test_an_error_says_what_and_which_request(container: ContainerClient, raw: Raw) -> None:
    """An error is XML with a code and a message that ends with the request's id and the time."""
    reply = raw.ask("GET", f"{container.container_name}/missing")
    error = ET.fromstring(reply.body)
    message = error.findtext("Message") or ""
    assert (error.tag, error.findtext("Code")) == ("Error", "BlobNotFound")
    assert reply.headers["Content-Type"].startswith("application/xml")
    assert message.startswith("The specified blob does not exist.\nRequestId:")
    assert f"RequestId:{reply.headers['x-ms-request-id']}\nTime:" in message


@pytest.mark.parametrize("version", [VERSION, "2019-02-02", "2026-02-06", None])
def test_versions_of_the_protocol(container: ContainerClient, raw: Raw, version: str | None) -> None:
    """A request may have any version that a package sends, or none."""
    name = f"{container.container_name}/a"
    headers = {"x-ms-version": version} if version else {}
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, **headers}, body=b"1").status == 201
    assert raw.ask("GET", name, headers=headers).body == b"1"


@pytest.mark.parametrize(("method", "path", "query"), [
    ("POST", "{}/a", ""),
    ("PATCH", "{}/a", ""),
    ("GET", "", "comp=odd"),
    ("POST", "{}", "restype=container"),
    ("GET", "", ""),
])  # fmt: skip
def test_what_there_is_not(container: ContainerClient, raw: Raw, method: str, path: str, query: str) -> None:
    """An unknown method or operation is a client error."""
    reply = raw.ask(method, path.format(container.container_name), query)
    assert 400 <= reply.status < 500 or reply.status == 501
