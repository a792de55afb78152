"""Customer-provided keys and encryption scopes: which requests they require, and what answers show of them."""

from __future__ import annotations

import base64
import hashlib

import pytest
from azure.storage.blob import ContainerClient

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas

SCOPE = {"x-ms-encryption-scope": "team-one"}
BLOCK_LIST = b"<BlockList><Latest>AAAA</Latest></BlockList>"


def key(letter: str) -> dict[str, str]:
    """Return the headers for a key of 32 equal letters."""
    data = letter.encode() * 32
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    text = base64.b64encode(data).decode()
    return {"x-ms-encryption-key": text, "x-ms-encryption-key-sha256": digest, "x-ms-encryption-algorithm": "AES256"}


@pytest.fixture
def side(ours: Side) -> Side:
    return ours


@pytest.fixture
def locked(container: ContainerClient, raw: Raw) -> str:
    """A blob that was written with key `a`."""
    name = f"{container.container_name}/locked"
    made = raw.ask("PUT", name, headers={**BLOCK_BLOB, **key("a")}, body=b"secret")
    assert (made.status, made.headers["x-ms-encryption-key-sha256"]) == (201, key("a")["x-ms-encryption-key-sha256"])
    return name


@pytest.mark.parametrize(("method", "query"), [
    ("GET", ""), ("HEAD", ""), ("GET", "comp=metadata"), ("PUT", "comp=metadata"), ("PUT", "comp=snapshot"),
])  # fmt: skip
def test_a_blob_opens_with_its_key_alone(raw: Raw, locked: str, method: str, query: str) -> None:
    """A request without the key, or with another key, is a 409."""
    refused = {
        letter: raw.ask(method, locked, query, key(letter) if letter else {}).headers["x-ms-error-code"]
        for letter in ("", "b")
    }
    assert refused == {"": "BlobUsesCustomerSpecifiedEncryption", "b": "BlobCustomerSpecifiedEncryptionMismatch"}
    opened = raw.ask(method, locked, query, key("a"))
    assert opened.status in (200, 201)
    assert opened.headers["x-ms-encryption-key-sha256"] == key("a")["x-ms-encryption-key-sha256"]


def test_a_key_for_a_blob_without_one_is_refused(raw: Raw, name: str) -> None:
    """A key for an unencrypted blob is refused, as in Azure. Without a key the blob stays readable."""
    assert raw.ask("GET", name, headers=key("a")).refusal == (409, "BlobDoesNotUseCustomerSpecifiedEncryption")
    assert raw.ask("GET", name).status == 200


@pytest.mark.parametrize("change", [
    {"x-ms-encryption-key": "AAAA"},
    {"x-ms-encryption-key-sha256": "AAAA"},
    {"x-ms-encryption-algorithm": "ROT13"},
    SCOPE,
])  # fmt: skip
def test_a_key_that_is_none_is_refused(container: ContainerClient, raw: Raw, change: dict[str, str]) -> None:
    """The length, hash and algorithm of a key are checked, and a key together with a scope is refused. The error
    does not show the key."""
    made = raw.ask("PUT", f"{container.container_name}/new", headers={**BLOCK_BLOB, **key("a"), **change}, body=b"1")
    assert made.refusal == (400, "InvalidHeaderValue")
    assert key("a")["x-ms-encryption-key"].encode() not in made.body
    assert list(container.list_blob_names()) == []


def test_blocks_are_committed_with_the_key_that_they_came_with(container: ContainerClient, raw: Raw) -> None:
    """Committing blocks needs the key with which they were staged. A block with another key is refused."""
    name = f"{container.container_name}/blocks"
    assert raw.ask("PUT", name, "comp=block&blockid=AAAA", key("a"), b"1").status == 201
    wrong = (409, "BlobCustomerSpecifiedEncryptionMismatch")
    assert raw.ask("PUT", name, "comp=block&blockid=AAAB", key("b"), b"2").refusal == wrong
    assert raw.ask("PUT", name, "comp=blocklist", {}, BLOCK_LIST).refusal == wrong
    assert raw.ask("PUT", name, "comp=blocklist", key("a"), BLOCK_LIST).status == 201
    assert raw.ask("GET", name, headers=key("a")).body == b"1"
    assert raw.ask("PUT", name, "comp=block&blockid=AAAB", key("b"), b"2").status == 201


def test_the_source_of_a_copy_needs_its_own_key(container: ContainerClient, raw: Raw, locked: str) -> None:
    """A copy needs the source's key to read it, and is written with the request's key."""
    copy = f"{container.container_name}/copy"
    given = {**BLOCK_BLOB, **key("b"), "x-ms-copy-source": f"{raw.url}/{locked}?{account_sas()}"}
    assert raw.ask("PUT", copy, headers=given).refusal == (409, "BlobUsesCustomerSpecifiedEncryption")
    source = {name.replace("x-ms-", "x-ms-source-"): value for name, value in key("a").items()}
    assert raw.ask("PUT", copy, headers={**given, **source}).status == 201
    assert raw.ask("GET", copy, headers=key("b")).body == b"secret"


def test_a_scope_is_written_with_and_read_without(container: ContainerClient, raw: Raw) -> None:
    """Reading a blob needs no scope, and changing it needs the blob's scope."""
    name = f"{container.container_name}/scoped"
    assert raw.ask("PUT", name, headers={**BLOCK_BLOB, **SCOPE}, body=b"1").status == 201
    read = raw.ask("GET", name)
    assert (read.body, read.headers["x-ms-encryption-scope"]) == (b"1", "team-one")
    assert raw.ask("PUT", name, "comp=metadata").refusal == (409, "BlobUsesCustomerSpecifiedEncryption")
    other = {"x-ms-encryption-scope": "team-two"}
    assert raw.ask("PUT", name, "comp=metadata", other).refusal == (409, "BlobCustomerSpecifiedEncryptionMismatch")
    assert raw.ask("PUT", name, "comp=metadata", SCOPE).status == 200
    assert [blob.encryption_scope for blob in container.list_blobs()] == ["team-one"]


def test_a_container_has_a_scope_that_it_may_insist_on(raw: Raw, unique: object) -> None:
    """A blob without a scope gets the container's. If overriding is denied, another scope and a key are refused."""
    fixed = {"x-ms-default-encryption-scope": "team-one", "x-ms-deny-encryption-scope-override": "true"}
    name = unique()  # type: ignore[operator]
    assert raw.ask("PUT", name, "restype=container", fixed).status == 201
    made = raw.ask("PUT", f"{name}/a", headers=BLOCK_BLOB, body=b"1")
    assert (made.status, made.headers["x-ms-encryption-scope"]) == (201, "team-one")
    for other in ({"x-ms-encryption-scope": "team-two"}, key("a")):
        refused = raw.ask("PUT", f"{name}/b", headers={**BLOCK_BLOB, **other}, body=b"1")
        assert refused.refusal == (403, "RequestForbiddenByContainerEncryptionPolicy")
    assert raw.ask("HEAD", name, "restype=container").headers["x-ms-default-encryption-scope"] == "team-one"


def test_a_signature_brings_its_scope(container: ContainerClient, raw: Raw) -> None:
    """A write with a signature gets the signature's scope, and may not name another."""
    name, signed = f"{container.container_name}/signed", account_sas(encryption_scope="team-one")
    made = raw.ask("PUT", name, signed, BLOCK_BLOB, b"1", signed=False)
    assert (made.status, made.headers["x-ms-encryption-scope"]) == (201, "team-one")
    other = {**BLOCK_BLOB, "x-ms-encryption-scope": "team-two"}
    assert raw.ask("PUT", name, signed, other, b"1", signed=False).refusal == (403, "AuthorizationFailure")
