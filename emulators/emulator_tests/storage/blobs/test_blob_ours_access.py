"""Refusals of unauthorized requests: Azure's different codes, where Azurite has one code for all."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobServiceClient, ContainerClient, generate_blob_sas

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas, refusal
from emulators.storage.keys import ACCOUNT, KEY

UNKNOWN = (403, "AuthenticationFailed")


@pytest.fixture
def side(ours: Side) -> Side:
    """Our service alone, because Azurite differs here."""
    return ours


@pytest.fixture
def container(container: ContainerClient) -> ContainerClient:
    container.upload_blob("a", b"hello")
    return container


def sas(container: ContainerClient, name: str = "a", **options: Any) -> str:
    given: dict[str, Any] = {"permission": "r", "expiry": datetime.now(UTC) + timedelta(hours=1), **options}
    return generate_blob_sas(ACCOUNT, container.container_name, name, account_key=KEY, **given)


def test_another_key(ours: Side) -> None:
    """A wrong key is a 403, AuthenticationFailed."""
    key = AzureNamedKeyCredential(ACCOUNT, "b3RoZXI=")
    with BlobServiceClient(ours.blob_url, key, retry_total=0) as service:
        assert refusal(service.create_container, "refused") == UNKNOWN


@pytest.mark.parametrize("options", [
    {"expiry": datetime.now(UTC) - timedelta(hours=1)},
    {"start": datetime.now(UTC) + timedelta(hours=1)},
])  # fmt: skip
def test_outside_of_its_time(container: ContainerClient, raw: Raw, options: dict[str, Any]) -> None:
    """A signature is refused before its start and after its end."""
    reply = raw.ask("GET", f"{container.container_name}/a", sas(container, **options), signed=False)
    assert reply.refusal == UNKNOWN


def test_a_changed_signature(container: ContainerClient, raw: Raw) -> None:
    """A changed signature, and a signature for another blob, are refused."""
    path = f"{container.container_name}/a"
    assert raw.ask("GET", path, sas(container).replace("sp=r", "sp=rw"), signed=False).refusal == UNKNOWN
    assert raw.ask("GET", path, account_sas().replace("sig=", "sig=A"), signed=False).refusal == UNKNOWN
    assert raw.ask("GET", path, sas(container, "b"), signed=False).status == 403


def test_over_http(container: ContainerClient, raw: Raw) -> None:
    """A signature for HTTPS is refused over HTTP."""
    reply = raw.ask("GET", f"{container.container_name}/a", sas(container, protocol="https"), signed=False)
    assert reply.refusal == (403, "AuthorizationProtocolMismatch")


def test_an_old_request(container: ContainerClient, raw: Raw) -> None:
    """A request signed with the key is refused unless its date is within minutes of now."""
    headers = {"Authorization": f"SharedKey {ACCOUNT}:AAAA", "x-ms-date": formatdate(time.time() - 3600, usegmt=True)}
    reply = raw.ask("GET", f"{container.container_name}/a", headers=headers, signed=False)
    assert reply.refusal == UNKNOWN
    assert b"Request date header too old" in reply.body


def test_nobody(container: ContainerClient, raw: Raw) -> None:
    """Each kind of unsigned request is a 401 with its code, and changes nothing."""
    name = container.container_name
    for method, path, query in (
        ("GET", f"{name}/a", ""), ("PUT", f"{name}/a", ""), ("DELETE", f"{name}/a", ""), ("GET", "", "comp=list"),
        ("GET", name, "restype=container&comp=list"), ("DELETE", name, "restype=container"),
        ("PUT", f"{name}/a", "comp=block&blockid=AAAA"), ("GET", "", "restype=service&comp=properties"),
        ("POST", name, "restype=container&comp=batch"), ("PUT", f"{name}/a", "comp=lease"),
        ("PUT", f"{name}/a", "comp=tags"), ("PUT", f"{name}/a", "comp=appendblock"),
    ):  # fmt: skip
        reply = raw.ask(method, path, query, {**BLOCK_BLOB, "x-ms-lease-action": "break"}, signed=False)
        assert reply.status in (401, 403), (method, path, query)
        assert reply.code in ("NoAuthenticationInformation", "AuthenticationFailed")
    assert container.download_blob("a").readall() == b"hello"


def test_whether_something_is_there_is_not_told(container: ContainerClient, raw: Raw) -> None:
    """A refused request gets the same answer for an existing and for a missing blob."""
    replies = [
        raw.ask("GET", path, signed=False).refusal
        for path in (f"{container.container_name}/a", f"{container.container_name}/missing", "missing-container/a")
    ]
    assert len(set(replies)) == 1


def test_a_copy_needs_a_right_to_its_source(container: ContainerClient, raw: Raw) -> None:
    """A SAS for writing to one container can't copy from another container. Azurite allows the copy."""
    name, url = container.container_name, f"{container.url}/a"
    headers = {"x-ms-copy-source": url}
    own = sas(container, "new", permission="cw")
    assert raw.ask("PUT", f"{name}/new", own, headers, signed=False).status in (401, 403, 404)
    assert [blob.name for blob in container.list_blobs()] == ["a"]
    assert (
        raw.ask("PUT", f"{name}/new", own, {"x-ms-copy-source": f"{url}?{sas(container)}"}, signed=False).status == 202
    )
    assert container.download_blob("new").readall() == b"hello"
    wrong = {"x-ms-copy-source": f"{url}?{sas(container, 'other')}"}
    assert raw.ask("PUT", f"{name}/new", own, wrong, signed=False).status in (401, 403, 404)


def test_a_name_in_another_account(container: ContainerClient, raw: Raw) -> None:
    """A source in another account is not fetched, because only one account exists."""
    name = container.container_name
    for source in ("http://127.0.0.1:1/devstoreaccount1/c/b", "http://example.invalid/a/b", "file:///etc/passwd"):
        reply = raw.ask("PUT", f"{name}/new", headers={"x-ms-copy-source": source})
        assert 400 <= reply.status < 600
        assert reply.code
    assert [blob.name for blob in container.list_blobs()] == ["a"]
