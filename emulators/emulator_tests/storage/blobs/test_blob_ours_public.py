"""Public containers, in an account that allows them: what anyone can read, and that everything else is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from emulator_tests.storage import inside
from emulator_tests.storage.raw import BLOCK_BLOB, Raw

LIST = "restype=container&comp=list"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobServiceClient]:
    folder = tmp_path_factory.mktemp("public")
    with (
        inside.start(folder, published_key=True, public_access=True) as running,
        BlobServiceClient.from_connection_string(running.connection_string, retry_total=0) as client,
    ):
        for level in ("blob", "container"):
            client.create_container(f"open-{level}", public_access=level).upload_blob("a", b"1", tags={"t": "1"})
        client.create_container("closed").upload_blob("a", b"1")
        yield client


def status(service: BlobServiceClient, method: str, name: str, query: str = "") -> int:
    headers = BLOCK_BLOB if method == "PUT" else {}
    return Raw(str(service.url).rstrip("/")).ask(method, name, query, headers, b"", signed=False).status


@pytest.mark.parametrize(("container", "reads", "lists"), [
    ("open-blob", 200, 401), ("open-container", 200, 200), ("closed", 401, 401), ("missing", 401, 401),
])  # fmt: skip
def test_anyone_reads_what_is_open(service: BlobServiceClient, container: str, reads: int, lists: int) -> None:
    """Anyone can read the blobs of a public container. The list is public only for public access of the whole
    container."""
    assert status(service, "GET", f"{container}/a") == reads
    assert status(service, "GET", container, LIST) == lists


@pytest.mark.parametrize(("method", "name", "query"), [
    ("PUT", "open-container/a", ""), ("PUT", "open-container/new", ""), ("DELETE", "open-container/a", ""),
    ("GET", "open-container/a", "comp=tags"), ("GET", "open-container", "restype=container&comp=acl"),
    ("GET", "open-container", "restype=container&comp=blobs&where=t%3D%271%27"),
    ("DELETE", "open-container", "restype=container"), ("PUT", "open-container", "restype=container&comp=metadata"),
    ("PUT", "open-container", "restype=container&comp=acl"), ("GET", "", "comp=list"),
])  # fmt: skip
def test_nobody_writes_without_a_signature(service: BlobServiceClient, method: str, name: str, query: str) -> None:
    """Without a signature, writing, reading tags or policies, and listing containers are refused."""
    assert status(service, method, name, query) == 401
    assert [blob.name for blob in service.get_container_client("open-container").list_blobs()] == ["a"]


def test_a_container_is_opened_and_closed(service: BlobServiceClient) -> None:
    """Setting the container's policies changes its public access, which properties and lists show."""
    container: ContainerClient = service.create_container("door")
    container.set_container_access_policy({}, public_access="container")
    assert container.get_container_properties().public_access == "container"
    assert {one.name: one.public_access for one in service.list_containers("door")} == {"door": "container"}
    container.set_container_access_policy({})
    assert container.get_container_properties().public_access is None
    assert status(service, "GET", "door", LIST) == 401
