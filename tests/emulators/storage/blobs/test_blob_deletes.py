"""Deleting blobs, one by one and in batches, against Azurite and against ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobServiceClient, ContainerClient, PartialBatchErrorException

from tests.emulators.storage.raw import Raw, account_sas


def names_of(container: ContainerClient) -> list[str]:
    return [blob.name for blob in container.list_blobs()]


def statuses(answers: Iterable[Any]) -> list[int]:
    return [answer.status_code for answer in answers]


def test_a_deleted_blob_is_not_there(container: ContainerClient, raw: Raw) -> None:
    """202, then 404 for whoever deletes or reads it; the name can be used again."""
    container.upload_blob("a", b"1")
    container.upload_blob("b", b"1")
    path = f"{container.container_name}/a"
    reply = raw.ask("DELETE", path)
    assert (reply.status, reply.body, reply.headers["x-ms-delete-type-permanent"]) == (202, b"", "true")
    assert raw.ask("DELETE", path).refusal == (404, "BlobNotFound")
    assert names_of(container) == ["b"]
    container.upload_blob("a", b"2")
    assert container.download_blob("a").readall() == b"2"


def test_a_name_begins_anew(container: ContainerClient) -> None:
    """What follows has nothing of what was deleted."""
    first = container.upload_blob("a", b"1", metadata={"one": "1"}, tags={"k": "v"}).get_blob_properties()
    container.delete_blob("a")
    second = container.upload_blob("a", b"2").get_blob_properties()
    assert (second.metadata, second.tag_count) == ({}, None)
    assert second.etag != first.etag


def test_a_batch_deletes(container: ContainerClient) -> None:
    """Each of its blobs gets an answer of its own."""
    names = [f"{number:03}" for number in range(100)]
    for name in [*names, "stays"]:
        container.upload_blob(name, b"")
    assert statuses(container.delete_blobs(*names)) == [202] * 100
    assert names_of(container) == ["stays"]


def test_a_batch_of_one(container: ContainerClient) -> None:
    """Is a batch too."""
    container.upload_blob("a", b"")
    assert statuses(container.delete_blobs("a")) == [202]
    assert names_of(container) == []


def test_a_batch_has_mixed_results(container: ContainerClient) -> None:
    """What is missing is 404, what is leased 412, and the others are deleted all the same, each in its place."""
    for name in ("a", "b", "c"):
        container.upload_blob(name, b"")
    lease = container.get_blob_client("b").acquire_lease(-1)
    answers = container.delete_blobs("a", "missing", "b", "c", raise_on_any_failure=False)
    assert statuses(answers) == [202, 404, 412, 202]
    assert names_of(container) == ["b"]
    with pytest.raises(PartialBatchErrorException) as caught:
        container.delete_blobs({"name": "b", "lease_id": lease.id}, "missing")
    assert statuses(caught.value.parts) == [202, 404]


def test_a_part_has_its_own_conditions(container: ContainerClient) -> None:
    """A blob that changed since is left."""
    first = container.upload_blob("a", b"1").get_blob_properties()
    second = container.upload_blob("b", b"1").get_blob_properties()
    container.upload_blob("b", b"2", overwrite=True)
    parts = [{"name": "a", "etag": first.etag}, {"name": "b", "etag": second.etag}]
    wanted = [{**part, "match_condition": MatchConditions.IfNotModified} for part in parts]
    assert statuses(container.delete_blobs(*wanted, raise_on_any_failure=False)) == [202, 412]
    assert names_of(container) == ["b"]


@pytest.mark.parametrize("name", ["a b", "ü%2f/?#", "x&y=z"])
def test_a_batch_knows_odd_names(container: ContainerClient, name: str) -> None:
    """As they are escaped in the request of the part."""
    container.upload_blob(name, b"")
    assert statuses(container.delete_blobs(name)) == [202]
    assert names_of(container) == []


def test_the_service_takes_batches_too(blobs: BlobServiceClient, container: ContainerClient, raw: Raw) -> None:
    """Of blobs of several containers, at the account's own address."""
    other = blobs.create_container(f"{container.container_name}-2")
    for client in (container, other):
        client.upload_blob("a", b"")
    address, sas = raw.path("", signed=False), account_sas()
    parts = [
        f"Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n"
        f"DELETE {address}{client.container_name}/a?{sas} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
        for number, client in enumerate((container, other))
    ]
    body = "".join(f"--batch_1\r\n{part}\r\n" for part in parts) + "--batch_1--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    reply = raw.ask("POST", "", "comp=batch", headers, body.encode())
    assert reply.status == 202
    assert reply.body.count(b"HTTP/1.1 202") == 2
    assert reply.headers["Content-Type"].startswith("multipart/mixed; boundary=batch")
    assert (names_of(container), names_of(other)) == ([], [])


def test_a_batch_of_256(container: ContainerClient) -> None:
    """Is the largest."""
    names = [f"{number}" for number in range(256)]
    assert set(statuses(container.delete_blobs(*names, raise_on_any_failure=False))) == {404}
