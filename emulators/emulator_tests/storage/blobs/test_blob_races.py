"""How parallel readers and writers affect a blob."""

from __future__ import annotations

import random
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobBlock, ContainerClient

from emulator_tests.storage.raw import SECONDS, VERSION, Raw

MIB = 2**20


class Wire:
    """A request that is sent, and an answer that is read, piece by piece."""

    def __init__(self, raw: Raw, method: str, name: str, *lines: str, query: str = "") -> None:
        address = urlsplit(raw.url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=SECONDS)
        request = [f"{method} {raw.path(name, query)} HTTP/1.1", f"Host: {address.netloc}", f"x-ms-version: {VERSION}"]
        self.send("".join(f"{line}\r\n" for line in [*request, "Connection: close", *lines]).encode() + b"\r\n")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read(self, size: int) -> bytes:
        return self._socket.recv(size, socket.MSG_WAITALL)

    def rest(self) -> bytes:
        """Return the rest of the answer, and close the connection."""
        with self._socket:
            return b"".join(iter(lambda: self._socket.recv(MIB), b""))


def upload(raw: Raw, name: str, size: int, *lines: str, query: str = "") -> Wire:
    return Wire(raw, "PUT", name, "x-ms-blob-type: BlockBlob", f"Content-Length: {size}", *lines, query=query)


@pytest.mark.parametrize("change", ["overwrite", "delete", "delete container"])
def test_who_reads_gets_what_was_there(container: ContainerClient, raw: Raw, change: str) -> None:
    """A download that has begun ends with the bytes of its version, even if the blob changes."""
    data = random.Random(3).randbytes(16 * MIB)  # more than the sockets hold
    container.upload_blob("a", data)
    reading = Wire(raw, "GET", f"{container.container_name}/a")
    begin = reading.read(1000)
    if change == "overwrite":
        container.upload_blob("a", b"new", overwrite=True)
    elif change == "delete":
        container.delete_blob("a")
    else:
        container.delete_container()
    answer = begin + reading.rest()
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.partition(b"\r\n\r\n")[2] == data


def test_slow_writers_of_a_new_blob(container: ContainerClient, raw: Raw) -> None:
    """Of two overlapping writers that require a missing blob, one writes and the other is refused."""
    name, half = f"{container.container_name}/a", MIB // 2
    first, second = (upload(raw, name, MIB, "If-None-Match: *") for _ in range(2))
    first.send(b"1" * half)
    second.send(b"2" * half)
    second.send(b"2" * half)
    assert second.rest().startswith(b"HTTP/1.1 201")
    first.send(b"1" * half)
    assert first.rest().startswith(b"HTTP/1.1 409")
    assert container.download_blob("a").readall() == b"2" * MIB


def test_a_slow_writer_whose_version_is_gone(container: ContainerClient, raw: Raw) -> None:
    """A condition is checked when the blob is written, not only when the request begins."""
    blob = container.upload_blob("a", b"old")
    etag = blob.get_blob_properties().etag
    slow = upload(raw, f"{container.container_name}/a", MIB, f"If-Match: {etag}")
    slow.send(b"1" * (MIB // 2))
    blob.upload_blob(b"new", overwrite=True)
    slow.send(b"1" * (MIB // 2))
    assert slow.rest().startswith(b"HTTP/1.1 412")
    assert blob.download_blob().readall() == b"new"


def test_a_slow_writer_while_another_leases(container: ContainerClient, raw: Raw) -> None:
    """A lease that is acquired while the bytes arrive is checked, too."""
    blob = container.upload_blob("a", b"old")
    slow = upload(raw, f"{container.container_name}/a", MIB)
    slow.send(b"1" * (MIB // 2))
    blob.acquire_lease(-1)
    slow.send(b"1" * (MIB // 2))
    assert slow.rest().startswith(b"HTTP/1.1 412")
    assert blob.download_blob().readall() == b"old"


def test_large_pieces_at_once(container: ContainerClient) -> None:
    """Blocks that are appended in parallel are complete, each at the offset in its answer."""
    log = container.get_blob_client("log")
    log.create_append_blob()
    pieces = [bytes([number]) * (300_000 + number) for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        offsets = [int(str(answer["blob_append_offset"])) for answer in pool.map(log.append_block, pieces)]
    content = log.download_blob().readall()
    assert len(content) == sum(map(len, pieces))
    assert all(content[at : at + len(piece)] == piece for at, piece in zip(offsets, pieces, strict=True))


def test_blocks_at_once(container: ContainerClient) -> None:
    """A commit finds every block that was staged in parallel."""
    blob = container.get_blob_client("a")
    names = [f"{number:02}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: blob.stage_block(name, name.encode() * 100_000), names))
    blob.commit_block_list([BlobBlock(name) for name in reversed(names)])
    assert blob.download_blob().readall() == b"".join(name.encode() * 100_000 for name in reversed(names))


def test_a_list_while_others_write(container: ContainerClient) -> None:
    """Unchanged names are in every list, each once and in order."""
    stays = [f"{number:02}/stays" for number in range(20)]
    for name in stays:
        container.upload_blob(name, b"")

    def churn(number: int) -> None:
        for name in (f"{number:02}/a", f"{number:02}/z"):
            container.upload_blob(name, b"")
            container.delete_blob(name)

    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(churn, number) for number in range(20)]
        for _ in range(5):
            names = [blob.name for blob in container.list_blobs(results_per_page=7)]
            assert names == sorted(set(names))
            assert [name for name in names if name.endswith("stays")] == stays
        assert all(one.exception() is None for one in busy)
