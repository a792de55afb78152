"""Requests that are malformed, cut short, far too large or simultaneous."""

from __future__ import annotations

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import ContainerClient

from emulator_tests.storage.raw import BLOCK_BLOB, SECONDS, VERSION, Raw, commit_list

MIB = 2**20


def sent(raw: Raw, *parts: bytes, finished: bool = True) -> bytes:
    """Send these bytes and return the answer, which is empty if the service hangs up.

    Without `finished` the client hangs up first.
    """
    address = urlsplit(raw.url)
    with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as wire:
        answer = b""
        with contextlib.suppress(ConnectionError):
            for part in parts:
                wire.sendall(part)
            while finished and (piece := wire.recv(65536)):
                answer += piece
        return answer


def head(raw: Raw, name: str, *lines: str, query: str = "") -> bytes:
    """Return a PUT request up to the end of its headers."""
    request = [
        f"PUT {raw.path(name, query)} HTTP/1.1", f"Host: {urlsplit(raw.url).netloc}", f"x-ms-version: {VERSION}",
        "Connection: close", *lines,
    ]  # fmt: skip
    return "".join(f"{line}\r\n" for line in request).encode() + b"\r\n"


PUT = "x-ms-blob-type: BlockBlob"


def test_a_body_in_chunks(container: ContainerClient, raw: Raw) -> None:
    """A body with Transfer-Encoding: chunked and no length is stored completely or refused."""
    request = head(raw, f"{container.container_name}/a", PUT, "Transfer-Encoding: chunked")
    # In one send: a server that refuses the headers closes the connection, and later bytes would lose the answer.
    answer = sent(raw, request + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    if answer.startswith(b"HTTP/1.1 201"):
        assert container.download_blob("a").readall() == b"abcde"
    else:
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 411"))
        assert list(container.list_blobs()) == []


def test_a_client_that_asks_before_it_sends(container: ContainerClient, raw: Raw) -> None:
    """Expect: 100-continue is answered, and then the body is accepted."""
    address = urlsplit(raw.url)
    request = head(raw, f"{container.container_name}/a", PUT, "Content-Length: 5", "Expect: 100-continue")
    with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as wire:
        wire.sendall(request)
        assert wire.recv(100).startswith(b"HTTP/1.1 100")
        wire.sendall(b"hello")
        assert wire.recv(1000).startswith(b"HTTP/1.1 201")
    assert container.download_blob("a").readall() == b"hello"


@pytest.mark.parametrize("query", ["", "comp=block&blockid=AAAA"])
def test_half_an_upload_is_none(container: ContainerClient, raw: Raw, query: str) -> None:
    """A client that hangs up in the middle leaves neither a blob nor a block, and the existing blob is unchanged."""
    container.upload_blob("there", b"old")
    for name in ("there", "new"):
        lines = [PUT] if not query else []
        request = head(raw, f"{container.container_name}/{name}", *lines, "Content-Length: 100000", query=query)
        sent(raw, request, b"x" * 50_000, finished=False)
    container.upload_blob("after", b"")
    names = [blob.name for blob in container.list_blobs(include=["uncommittedblobs"])]
    assert names == ["after", "there"]
    assert container.download_blob("there").readall() == b"old"
    assert container.get_blob_client("there").get_block_list("uncommitted")[1] == []


@pytest.mark.parametrize("lines", [
    ["Content-Length: -1"],
    ["Content-Length: x"],
    ["Content-Length: 5", "Content-Length: 6"],
    ["Content-Length: 5", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: odd"],
    ["no colon"],
])  # fmt: skip
def test_headers_that_are_none(container: ContainerClient, raw: Raw, lines: list[str]) -> None:
    """Malformed headers are refused, and the service keeps running."""
    answer = sent(raw, head(raw, f"{container.container_name}/a", PUT, *lines), b"hello")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400", b"HTTP/1.1 501")) or answer == b""
    container.upload_blob("b", b"")
    assert [blob.name for blob in container.list_blobs()] == ["b"]


def test_what_is_no_http_at_all(container: ContainerClient, raw: Raw) -> None:
    """Bytes that are not HTTP are a 400, and the service keeps running."""
    assert b" 400 " in sent(raw, b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n").partition(b"\r\n")[0]
    assert b" 400 " in sent(raw, b"GET\r\n\r\n").partition(b"\r\n")[0]
    container.upload_blob("b", b"")


def test_a_connection_lasts(container: ContainerClient, raw: Raw) -> None:
    """After the refusal of a request with a body, the next request on the connection gets a normal answer."""
    connection = raw.connect()
    answers = []
    try:
        for method, name, headers, body in (
            ("PUT", "a", {**BLOCK_BLOB, "If-Match": "*"}, b"x" * 100_000), ("PUT", "a", BLOCK_BLOB, b"hello"),
            ("HEAD", "missing", {}, b""), ("GET", "a", {}, b""), ("PUT", "b", {**BLOCK_BLOB, "Content-MD5": "x"}, b"1"),
            ("GET", "a", {"Range": "bytes=1-2"}, b""),
        ):  # fmt: skip
            target = raw.path(f"{container.container_name}/{name}")
            connection.request(method, target, body=body, headers={"x-ms-version": VERSION, **headers})
            reply = connection.getresponse()
            answers.append((reply.status, reply.read() if reply.status < 300 else reply.read() and b""))
    finally:
        connection.close()
    assert answers == [(412, b""), (201, b""), (404, b""), (200, b"hello"), (400, b""), (206, b"el")]


def test_three_hundred_headers(container: ContainerClient, raw: Raw) -> None:
    """A request with three hundred headers gets an answer, whether it is accepted or refused."""
    headers = {**BLOCK_BLOB, **{f"x-other-{number}": "x" for number in range(300)}}
    reply = raw.ask("PUT", f"{container.container_name}/a", headers=headers, body=b"1")
    assert reply.status in (201, 400, 431)
    assert len(list(container.list_blobs())) == (reply.status == 201)


@pytest.mark.parametrize("size", [20_000, 200_000])
def test_a_header_that_is_too_long(container: ContainerClient, raw: Raw, size: int) -> None:
    """A header that is too long is refused before the rest is read."""
    answer = sent(raw, head(raw, f"{container.container_name}/a", PUT, f"x-other: {'x' * size}", "Content-Length: 0"))
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"431", b"201")
    assert len(list(container.list_blobs())) == (b" 201 " in answer[:20])


def test_a_list_of_very_many_blocks(container: ContainerClient, raw: Raw) -> None:
    """50,000 blocks are Azure's limit; the list here names one block 50,000 times."""
    blob = container.get_blob_client("a")
    blob.stage_block("b1", b"x")
    entries = [("Latest", "b1")] * 5000
    reply = raw.ask("PUT", f"{container.container_name}/a", "comp=blocklist", body=commit_list(*entries))
    assert reply.status == 201
    assert blob.get_blob_properties().size == 5000
    assert blob.download_blob(offset=4990).readall() == b"x" * 10


@pytest.mark.parametrize("bomb", [
    b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    b"<Tags><TagSet><Tag><Key>k</Key><Value>&a;</Value></Tag></TagSet></Tags>",
    b"<Tags>" * 2000,
    b"<Tags><TagSet><Tag><Key>k</Key><Value>" + b"v" * MIB + b"</Value></Tag></TagSet></Tags>",
])  # fmt: skip
def test_xml_that_would_harm(container: ContainerClient, raw: Raw, bomb: bytes) -> None:
    """XML with entities, or with too much depth or length, is refused."""
    container.upload_blob("a", b"1")
    reply = raw.ask("PUT", f"{container.container_name}/a", "comp=tags", body=bomb)
    assert 400 <= reply.status < 500
    assert container.get_blob_client("a").get_blob_tags() == {}


def test_two_write_at_once(container: ContainerClient) -> None:
    """Of parallel writers the last one wins, and every reader sees one complete version."""
    versions = [bytes([number]) * 100_000 for number in range(8)]
    container.upload_blob("a", versions[0])
    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(container.upload_blob, "a", data, overwrite=True) for data in versions]
        read = [pool.submit(lambda: container.download_blob("a").readall()) for _ in range(8)]
        assert all(one.result() in versions for one in read)
        assert all(one.result() for one in writing)
    assert container.download_blob("a").readall() in versions


def test_one_of_many_makes_it(container: ContainerClient, raw: Raw) -> None:
    """Of several writers that require a missing blob, exactly one succeeds."""
    name, headers = f"{container.container_name}/a", {**BLOCK_BLOB, "If-None-Match": "*"}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: raw.ask("PUT", name, headers=headers, body=b"%d" % number), range(8)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    (made,) = (number for number, reply in enumerate(replies) if reply.status == 201)
    assert container.download_blob("a").readall() == b"%d" % made
