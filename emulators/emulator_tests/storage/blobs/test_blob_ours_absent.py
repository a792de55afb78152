"""Azure's features that the blob service lacks. The refusal names the feature, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobServiceClient, ContainerClient

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas
from emulators.storage.blobs.service import DATA_LAKE
from emulators.storage.keys import ACCOUNT, KEY


@pytest.fixture
def container(ours: Side, unique: Callable[[], str]) -> Iterator[ContainerClient]:
    with BlobServiceClient(ours.blob_url, AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as service:
        yield service.create_container(unique())


ABSENT = {
    "incremental copies": ("PUT", "a", "comp=incrementalcopy", {}),
    "tiers of page blobs": (
        "PUT",
        "new",
        "",
        {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512", "x-ms-access-tier": "P10"},
    ),
    "managed disks": ("GET", "a", "comp=pagelist", {"x-ms-previous-snapshot-url": "http://127.0.0.1/c/a"}),
    "queries": ("POST", "a", "comp=query", {}),
    "search by tags with OR": ("GET", "", "comp=blobs&where=%22k%22%3D%27v%27%20OR%20%22l%22%3D%27v%27", {}),
    "search by one container alone": ("GET", "", "comp=blobs&where=%40container%3D%27c%27", {}),
    "legal holds": ("PUT", "a", "comp=legalhold", {"x-ms-legal-hold": "true"}),
    "a blob from a framed body": (
        "PUT",
        "new",
        "",
        {**BLOCK_BLOB, "x-ms-structured-body": "XSM/1.0; properties=crc64"},
    ),
    "immutability": ("PUT", "a", "comp=immutabilityPolicies", {}),
}


@pytest.mark.parametrize("what", ABSENT)
def test_what_is_absent_says_so(container: ContainerClient, ours: Side, what: str) -> None:
    """A missing feature is an error with a code and a message, never a success without effect."""
    container.upload_blob("a", b"old", tags={"k": "v"})
    method, name, query, headers = ABSENT[what]
    path = f"{container.container_name}/{name}" if name else ""
    reply = Raw(ours.blob_url).ask(method, path, query, headers)
    assert reply.status in (400, 404, 405, 501)
    assert reply.code
    assert [(blob.name, blob.size) for blob in container.list_blobs()] == [("a", 3)]


def test_no_container_is_open_to_all(container: ContainerClient, ours: Side) -> None:
    """A request for public access is refused, as in an account that disallows public access."""
    raw = Raw(ours.blob_url)
    headers = {"x-ms-blob-public-access": "blob"}
    made = raw.ask("PUT", f"{container.container_name}-open", "restype=container", headers)
    assert made.refusal == (409, "PublicAccessNotPermitted")
    body = b"<SignedIdentifiers></SignedIdentifiers>"
    opened = raw.ask(
        "PUT", container.container_name, f"restype=container&comp=acl&{account_sas()}", headers, body, False
    )
    assert opened.status in (403, 409)
    assert container.get_container_properties().public_access is None


def test_features_in_words(container: ContainerClient, ours: Side) -> None:
    """The answer is a 501, FeatureNotSupported, with the name of the feature."""
    container.upload_blob("a", b"1")
    reply = Raw(ours.blob_url).ask("POST", f"{container.container_name}/a", "comp=query")
    assert reply.refusal == (501, "FeatureNotSupported")
    assert b"This emulator has no queries of a blob's content" in reply.body
    page = Raw(ours.blob_url).ask("PUT", f"{container.container_name}/p", "comp=incrementalcopy")
    assert page.refusal == (501, "FeatureNotSupported")
    assert b"This emulator has no incremental copies of page blobs" in page.body


@pytest.mark.parametrize(("method", "path", "query", "headers"), [
    ("PUT", "lake", "resource=filesystem", {}),
    ("GET", "lake", "resource=filesystem&recursive=true", {}),
    ("PUT", "lake/folder", "resource=directory", {}),
    ("PATCH", "lake/a", "action=append&position=0", {}),
    ("PATCH", "lake/a", "action=flush&position=3", {}),
    ("HEAD", "lake/a", "action=getStatus", {}),
    ("PUT", "lake/b", "", {"x-ms-rename-source": "/lake/a"}),
])  # fmt: skip
def test_data_lake_is_refused_by_name(ours: Side, method: str, path: str, query: str, headers: dict[str, str]) -> None:
    """A request of a Data Lake client is a 501 that names Data Lake and the alternative, also in the status line, which
    is all that a HEAD has."""
    connection = Raw(ours.blob_url).connect()
    connection.request(method, Raw(ours.blob_url).path(path, query), headers=headers)
    reply = connection.getresponse()
    assert (reply.status, reply.headers["x-ms-error-code"]) == (501, "FeatureNotSupported")
    assert reply.reason == DATA_LAKE
    assert method == "HEAD" or DATA_LAKE.encode() in reply.read()
    connection.close()
