"""How Azurite's access log is read, and continued from the last position."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.eventgrid import accesslog
from emulators.eventgrid.accesslog import Line, Position, Tail, Write

NOW = 1_700_000_000.0


def line(target: str, status: int = 201, method: str = "PUT") -> Line:
    text = f'127.0.0.1 - - [21/Nov/2026:03:43:16 +0000] "{method} {target} HTTP/1.1" {status} -\n'
    return Line(text.encode(), Position(7, 42))


def test_a_write_is_read_with_all_its_facts() -> None:
    """A line yields the operation, the names, the path as the client sent it, the time and the position in the log."""
    assert accesslog.parse(line("/acct/drops/a%20b?se=1&sig=x%2B")) == Write(
        "PutBlob", "acct", "drops", "a b", "/acct/drops/a%20b", datetime(2026, 11, 21, 3, 43, 16, tzinfo=UTC), 7, 42
    )


@pytest.mark.parametrize(
    ("target", "status", "api"),
    [
        ("/acct/c/b", 201, "PutBlob"),
        ("/acct/c/b", 202, "CopyBlob"),
        ("/acct/c/b?comp=blocklist", 201, "PutBlockList"),
        ("/acct/root-blob", 201, "PutBlob"),
        ("/acct/c/b?comp=block&blockid=QUFB", 201, None),
        ("/acct/c/b?comp=metadata", 200, None),
        ("/acct/c/b?comp=snapshot", 201, None),
        ("/acct/c/b?comp=appendblock", 201, None),
        ("/acct/c/b?comp=page", 201, None),
        ("/acct/c/b?comp=lease", 201, None),
        ("/acct/c?restype=container", 201, None),
        ("/acct/?restype=service&comp=properties", 202, None),
        ("/acct/c/b", 403, None),
        ("/acct/c/b", 409, None),
        ("/acct/c/b", 500, None),
        ("/acct/$logs/b", 201, None),
        ("/acct/%24blobchangefeed/b", 201, None),
    ],
)
def test_only_created_blobs_are_writes(target: str, status: int, api: str | None) -> None:
    """Only a successful Put Blob, Put Block List or Copy Blob is an event."""
    write = accesslog.parse(line(target, status))
    assert (write.api if write else None) == api


@pytest.mark.parametrize(
    ("method", "target", "status", "told"),
    [
        ("DELETE", "/acct/c/b", 202, ("DeleteBlob", "Microsoft.Storage.BlobDeleted")),
        ("DELETE", "/acct/c/b", 404, None),
        ("DELETE", "/acct/c/b?snapshot=2026-01-01T00:00:00.0000000Z", 202, None),
        ("DELETE", "/acct/c?restype=container", 202, None),
        ("PUT", "/acct/c/b?comp=tier", 200, ("SetBlobTier", "Microsoft.Storage.BlobTierChanged")),
        ("PUT", "/acct/c/b?comp=tier", 202, ("SetBlobTier", "Microsoft.Storage.AsyncOperationInitiated")),
        ("PUT", "/acct/c/b?comp=tier", 409, None),
    ],
)
def test_deleted_and_moved_blobs_are_told(method: str, target: str, status: int, told: tuple[str, str] | None) -> None:
    """Deleting a blob, changing its tier and starting its rehydration are events. Snapshots, containers and refused
    requests are not."""
    write = accesslog.parse(line(target, status, method))
    assert ((write.api, write.event) if write else None) == told


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_other_methods_are_no_writes(method: str) -> None:
    """Only PUT and DELETE change blobs."""
    assert accesslog.parse(line("/acct/c/b", 201, method)) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=1024))
def test_every_name_comes_back_from_its_encoding(name: str) -> None:
    """A blob's name is decoded correctly for any characters."""
    write = accesslog.parse(line("/acct/c/" + quote(name)))
    assert write is not None
    assert write.blob == name


def test_the_tail_gives_complete_lines_once(tmp_path: Path) -> None:
    """Each line is read exactly once, when it is complete."""
    log = tmp_path / "log"
    tail = Tail(log, Position(1, 0))
    assert tail.read(NOW) == []
    log.write_bytes(b"one\ntw")
    assert [read.text for read in tail.read(NOW)] == [b"one\n"]
    assert tail.read(NOW) == []
    log.write_bytes(b"one\ntwo\nthree\n")
    assert tail.read(NOW) == [Line(b"two\n", Position(1, 4)), Line(b"three\n", Position(1, 8))]
    assert tail.position == Position(1, 14)


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=30), st.integers(1, 64))
def test_a_log_read_in_pieces_is_the_whole_log(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], chunk: int
) -> None:
    """For any read size, the lines and their offsets are those of the log."""
    log = tmp_path_factory.mktemp("log") / "log"
    data = b"".join(text + b"\n" for text in lines)
    log.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accesslog, "CHUNK", chunk)
        tail, read = Tail(log, Position(1, 0)), []
        while got := tail.read(NOW):
            read += got
    assert b"".join(item.text for item in read) == data
    assert all(data[item.at.offset :].startswith(item.text) for item in read)


def test_a_replaced_log_starts_a_later_age(tmp_path: Path) -> None:
    """A shorter file is a new log. It is read from the start, and its positions sort after all earlier positions."""
    log = tmp_path / "log"
    log.write_bytes(b"a long first line\n")
    tail = Tail(log, Position(int(NOW), 0))
    old = tail.read(NOW)[0].at
    log.write_bytes(b"new\n")
    new = tail.read(NOW)[0].at
    assert new.offset == 0
    assert (new.began, new.offset) > (old.began, old.offset)


def test_following_begins_at_the_end(tmp_path: Path) -> None:
    """On the first start, existing lines in the log cause no events."""
    log = tmp_path / "log"
    assert accesslog.end_of(log, NOW) == Position(int(NOW), 0)
    log.write_bytes(b"old\n")
    assert accesslog.end_of(log, NOW) == Position(int(NOW), 4)
