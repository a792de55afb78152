"""Deleting blobs, singly and in batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient, PartialBatchErrorException

from emulator_tests.storage.raw import Raw, account_sas


def names_of(container: ContainerClient) -> list[str]:
    return [blob.name for blob in container.list_blobs()]


def statuses(answers: Iterable[Any]) -> list[int]:
    return [answer.status_code for answer in answers]


def test_a_batch_has_mixed_results(container: ContainerClient) -> None:
    """In a batch a missing blob is a 404, a leased blob a 412, and the others are deleted, each with its own
    result."""
    for name in ("a", "b", "c"):
        container.upload_blob(name, b"")
    lease = container.get_blob_client("b").acquire_lease(-1)
    answers = container.delete_blobs("a", "missing", "b", "c", raise_on_any_failure=False)
    assert statuses(answers) == [202, 404, 412, 202]
    assert names_of(container) == ["b"]
    with pytest.raises(PartialBatchErrorException) as caught:
        container.delete_blobs({"name": "b", "lease_id": lease.id}, "missing")
    assert statuses(caught.value.parts) == [202, 404]


@pytest.mark.parametrize("name", ["a b", "ü%2f/?#", "x&y=z"])
def test_a_batch_knows_odd_names(container: ContainerClient, name: str) -> None:
    """The names in the parts of a batch are escaped."""
    container.upload_blob(name, b"")
    assert statuses(container.delete_blobs(name)) == [202]
    assert names_of(container) == []


def test_the_service_takes_batches_too(blobs: BlobServiceClient, container: ContainerClient, raw: Raw) -> None:
    """A batch at the account's address deletes blobs of several containers."""
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
    """A batch may have up to 256 parts."""
    names = [f"{number}" for number in range(256)]
    assert set(statuses(container.delete_blobs(*names, raise_on_any_failure=False))) == {404}
