"""The contract of shared.kernel.storage.Blobs, tested on the fake and on Azure Blob Storage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qs, unquote

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.kernel.errors import BadInput, Changed, NotFound
from shared.kernel.storage import Blob, Blobs, Copy, FolderPage, Place
from tests.fakes.ports import FakeBlobs

Names = Callable[[], str]


@pytest.fixture(params=["fake", "clients", "token_clients"])
def blobs(request: pytest.FixtureRequest) -> Blobs:
    if request.param == "fake":
        return FakeBlobs()
    clients: StorageClients = request.getfixturevalue(request.param)
    return StorageBlobs(clients.blob)


def put(blobs: Blobs, container: str, *names: str, data: bytes = b"data") -> list[Blob]:
    return [blobs.write(container, name, data, "application/octet-stream") for name in names]


def test_what_is_written_is_listed_and_read(blobs: Blobs, unique: Names) -> None:
    """`write` creates the container and returns the blob as a listing shows it, with its MD5."""
    container = unique()
    written = blobs.write(container, "a b/ü#?%25.txt", b"hello", "text/plain")
    assert (written.size, written.md5) == (5, hashlib.md5(b"hello").hexdigest())
    assert list(blobs.list(Place(container, ""))) == [written]
    assert blobs.read(container, "a b/ü#?%25.txt", 5) == b"hello"


def test_every_write_has_an_etag_of_its_own(blobs: Blobs, unique: Names) -> None:
    """Writing the same bytes again gives a new etag, without quotes, and still one blob."""
    container = unique()
    first, second = put(blobs, container, "a", "a")
    assert first.etag != second.etag
    assert '"' not in first.etag
    assert [blob.etag for blob in blobs.list(Place(container, ""))] == [second.etag]


def test_a_listing_is_by_name_and_below_its_prefix(blobs: Blobs, unique: Names) -> None:
    """`list` returns exactly the blobs whose names begin with the prefix, sorted."""
    container = unique()
    put(blobs, container, "x/b", "x/a/1", "x/a", "x", "xy/1", "x/é")
    assert [blob.name for blob in blobs.list(Place(container, "x/"))] == ["x/a", "x/a/1", "x/b", "x/é"]
    assert [blob.name for blob in blobs.list(Place(container, "nothing/"))] == []


def test_a_listing_goes_on_from_the_token_of_a_page(blobs: Blobs, unique: Names) -> None:
    """`paged` returns the same blobs; with a page's token it starts at that page and lists nothing before it."""
    container = unique()
    put(blobs, container, *(f"x/{number}" for number in range(5)), "y")
    place = Place(container, "x/")
    listed = list(blobs.paged(place, page=2))
    assert [blob for _, blob in listed] == list(blobs.list(place))
    first, second, third = dict.fromkeys(token for token, _ in listed)
    assert [[token for token, _ in listed].count(token) for token in (first, second, third)] == [2, 2, 1]
    assert list(blobs.paged(place, second, 2)) == listed[2:]
    assert list(blobs.paged(place, third, 2)) == listed[4:]
    assert list(blobs.paged(Place(unique(), ""))) == []


def test_the_first_blob_is_the_listings_first(blobs: Blobs, unique: Names) -> None:
    """`first` returns the first blob of a listing, or None if the listing is empty."""
    container = unique()
    put(blobs, container, "x/b", "x/a/1", "xa")
    assert blobs.first(Place(container, "x")) == next(blobs.list(Place(container, "x")))
    assert blobs.first(Place(container, "x/c")) is None
    assert blobs.first(Place(unique(), "")) is None


def test_an_address_names_the_very_blob(blobs: Blobs, unique: Names) -> None:
    """`read_url` returns the escaped URL of the blob, whether or not the blob exists."""
    container, name = unique(), "run-0/a b/ü#?%41.pt"
    path, _, query = blobs.read_url(container, name, 60).partition("?")
    assert unquote(path).endswith(f"/{container}/{name}")
    assert parse_qs(query)["sp"] == ["r"]


def test_a_container_that_is_not_there_is_empty(blobs: Blobs, unique: Names) -> None:
    """Reads of an unknown container find nothing; only `read` raises NotFound."""
    missing = unique()
    assert list(blobs.list(Place(missing, ""))) == []
    assert blobs.folders(Place(missing, "")) == FolderPage([], "")
    assert list(blobs.lines(missing, "a")) == []
    assert blobs.tail(missing, "a", 10) == ""
    with pytest.raises(NotFound):
        blobs.read(missing, "a", 10)


def test_folders_are_names_one_level_down(blobs: Blobs, unique: Names) -> None:
    """`folders` returns the bare name of each folder and blob directly under the prefix, once."""
    container = unique()
    put(blobs, container, "r/a/1", "r/a/2", "r/a/b/3", "r/a", "r/a-b", "r/c.zip", "other/x")
    assert blobs.folders(Place(container, "r/")) == FolderPage(["a", "a-b", "c.zip"], "")
    assert blobs.folders(Place(container, "")) == FolderPage(["other", "r"], "")


def test_folders_come_in_pages(blobs: Blobs, unique: Names) -> None:
    """A page holds at most `limit` names and its token leads to the next page; together the pages hold every name."""
    container = unique()
    put(blobs, container, *(f"r/{i:02}/x" for i in range(7)))
    page, found = FolderPage([], ""), list[str]()
    for _ in range(9):
        page = blobs.folders(Place(container, "r/"), page.token, 3)
        assert len(page.names) <= 3
        found += page.names
        if not page.token:
            break
    assert found == [f"{i:02}" for i in range(7)]


def test_read_refuses_what_is_too_long(blobs: Blobs, unique: Names) -> None:
    """A blob above the limit raises BadInput with both sizes, a blob at the limit is read, and a missing blob
    raises NotFound."""
    container = unique()
    put(blobs, container, "a", data=b"12345")
    put(blobs, container, "empty", data=b"")
    assert blobs.read(container, "a", 5) == b"12345"
    assert blobs.read(container, "empty", 0) == b""
    with pytest.raises(BadInput, match=r"5 bytes, the limit is 4"):
        blobs.read(container, "a", 4)
    with pytest.raises(NotFound, match=r"nobody"):
        blobs.read(container, "nobody", 4)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\n\r\nb", ["a", "", "b"]),
        (b"10%\r20%\rdone\n", ["10%\r20%\rdone"]),
        ("ü\u2028🚂\x0b\n数".encode(), ["ü\u2028🚂\x0b", "数"]),
        (b"\xff\n\xe2\x82", ["\ufffd", "\ufffd"]),
    ],
)
def test_lines_end_at_newlines_only(blobs: Blobs, unique: Names, data: bytes, lines: list[str]) -> None:
    """Lines end at LF or CR LF, and the last line may have neither. Bytes that are not UTF-8 are replaced."""
    container = unique()
    put(blobs, container, "log", data=data)
    assert list(blobs.lines(container, "log")) == lines


def test_tail_is_the_end_of_the_blob(blobs: Blobs, unique: Names) -> None:
    """`tail` returns the last bytes as text: the whole of a short blob, and '' for an empty or missing blob."""
    container = unique()
    put(blobs, container, "log", data=b"0123456789")
    put(blobs, container, "empty", data=b"")
    assert [blobs.tail(container, "log", n) for n in (3, 10, 100, 0)] == ["789", "0123456789", "0123456789", ""]
    assert blobs.tail(container, "empty", 10) == blobs.tail(container, "none", 10) == ""


def test_read_from_follows_a_growing_blob(blobs: Blobs, unique: Names) -> None:
    """`read_from` returns the bytes from the offset on, up to the limit, and nothing beyond the end."""
    container = unique()
    put(blobs, container, "log", data=b"0123456789")
    put(blobs, container, "empty", data=b"")
    ranges = [(0, 4), (4, 100), (10, 5), (11, 5), (3, 0)]
    assert [blobs.read_from(container, "log", *r) for r in ranges] == [b"0123", b"456789", b"", b"", b""]
    assert blobs.read_from(container, "empty", 0, 5) == blobs.read_from(container, "none", 0, 5) == b""
    assert blobs.read_from(unique(), "none", 0, 5) == b""


def test_grown_says_when_the_blob_was_written(blobs: Blobs, unique: Names) -> None:
    """`grown` returns the new bytes with the blob's size and time, and None if there is nothing to read."""
    container = unique()
    (log,) = put(blobs, container, "log", data=b"0123456789")
    for offset, data in ((0, b"0123"), (7, b"789"), (10, b"")):
        found = blobs.grown(container, "log", offset, 4)
        assert found is not None
        assert (found.data, found.size) == (data, 10)
        assert log.last_modified is None or abs(found.last_modified - log.last_modified) < timedelta(seconds=2)
    put(blobs, container, "empty", data=b"")
    assert blobs.grown(container, "log", 12, 4) is None
    assert blobs.grown(container, "empty", 0, 4) is blobs.grown(container, "none", 0, 4) is None


def test_a_copy_is_the_source_with_its_etag(blobs: Blobs, unique: Names) -> None:
    """A copy has the source's bytes and MD5, and the source's etag as metadata. `copy` returns what a listing
    shows."""
    source, target = unique(), unique()
    originals = put(blobs, source, "a/1", "a b/ü#%25", data=b"hello")
    made = list(blobs.copy(Copy(blob, source, target, f"run/{blob.name}") for blob in originals))
    assert sorted(made, key=lambda blob: blob.name) == list(blobs.list(Place(target, "")))
    listed = list(blobs.list(Place(target, "")))
    assert {blob.metadata["source_etag"] for blob in listed} == {blob.etag for blob in originals}
    assert {blob.md5 for blob in listed} == {hashlib.md5(b"hello").hexdigest()}
    assert blobs.read(target, "run/a b/ü#%25", 5) == b"hello"


def test_a_copy_that_is_there_is_not_made_again(blobs: Blobs, unique: Names) -> None:
    """Copying again copies only missing blobs and blobs with another etag, and returns all of them."""
    source, target = unique(), unique()
    copies = [Copy(blob, source, target, blob.name) for blob in put(blobs, source, "a", "b", "c")]
    first = {blob.name: blob.etag for blob in blobs.copy(copies[:2])}
    (changed,) = put(blobs, source, "b", data=b"new")
    again = {blob.name: blob.etag for blob in blobs.copy([copies[0], replace(copies[1], source=changed), copies[2]])}
    assert again["a"] == first["a"]
    assert again["b"] != first["b"]
    assert blobs.read(target, "b", 9) == b"new"
    assert set(again) == {"a", "b", "c"}


def test_a_copy_of_what_is_gone_or_changed_raises(blobs: Blobs, unique: Names) -> None:
    """A missing source raises NotFound and a source written since raises Changed; neither is copied."""
    source, target = unique(), unique()
    (old,) = put(blobs, source, "a")
    put(blobs, source, "a", data=b"new")
    with pytest.raises(Changed):
        list(blobs.copy([Copy(old, source, target, "a")]))
    with pytest.raises(NotFound, match=r"nobody"):
        list(blobs.copy([Copy(replace(old, name="nobody"), source, target, "a")]))
    with pytest.raises(NotFound):
        list(blobs.copy([Copy(old, unique(), target, "a")]))
    assert list(blobs.list(Place(target, ""))) == []


def test_copies_are_drawn_as_they_are_made(blobs: Blobs, unique: Names) -> None:
    """`copy` is lazy: no copy is made before its result is requested, and none for an empty iterator."""
    source, target = unique(), unique()
    originals = put(blobs, source, "a")

    def copies() -> Iterator[Copy]:
        yield from (Copy(blob, source, target, blob.name) for blob in originals)

    pending = blobs.copy(copies())
    assert list(blobs.list(Place(target, ""))) == []
    assert [blob.name for blob in pending] == ["a"]
    assert list(blobs.copy([])) == []


def test_check_is_silent_while_the_account_answers(blobs: Blobs) -> None:
    """`check` raises nothing on a live account."""
    blobs.check()


def test_write_once_leaves_what_is_there(blobs: Blobs, unique: Names) -> None:
    """The first writer wins, also if the container was missing; later writers change nothing and raise nothing."""
    container = unique()
    for data in (b"first", b"second"):
        blobs.write_once(container, "a", data, "text/plain")
        assert blobs.read(container, "a", 10) == b"first"


def test_what_was_written_since_it_was_listed_stays(blobs: Blobs, unique: Names) -> None:
    """`remove_listed` deletes only blobs unchanged since the listing, and may be repeated."""
    container = unique()
    put(blobs, container, "a", "b")
    listed = list(blobs.list(Place(container, "")))
    blobs.write(container, "b", b"another", "text/plain")
    for _ in range(2):
        blobs.remove_listed(container, listed)
    assert [blob.name for blob in blobs.list(Place(container, ""))] == ["b"]


def test_what_is_removed_is_gone_and_twice_is_fine(blobs: Blobs, unique: Names) -> None:
    """`remove` deletes the given blobs and no other; a missing blob or container is no error."""
    container = unique()
    put(blobs, container, "a", "a b/ü#?%25.txt", "c")
    blobs.remove(container, ["a", "a b/ü#?%25.txt", "nothing"])
    blobs.remove(container, ["a"])
    blobs.remove(unique(), ["a"])
    assert [blob.name for blob in blobs.list(Place(container, ""))] == ["c"]
