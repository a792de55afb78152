"""Lists of blobs: order, prefix, folders, pages and what they say, against Azurite and against ours."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.storage.blob import BlobPrefix, BlobServiceClient, ContainerClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.emulators.storage.raw import Raw, escaped, refusal


def fill(container: ContainerClient, *names: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: container.upload_blob(name, b"1"), names))


def names_of(container: ContainerClient, **options: Any) -> list[str]:
    return [blob.name for blob in container.list_blobs(**options)]


def walked(container: ContainerClient, **options: Any) -> list[str]:
    """Names of blobs and folders; the package puts the folders of a page before its blobs."""
    return sorted(one.name for one in container.walk_blobs(**options))


def test_names_are_in_the_order_of_their_characters(container: ContainerClient) -> None:
    """By code, so capitals come before small letters, and a folder's blobs where its slash belongs."""
    names = ["b", "a", "B", "a/b", "a-b", "a0", "A", "_", "10", "9", "é", "z", "~"]
    fill(container, *names)
    assert names_of(container) == sorted(names)


def test_a_prefix_is_the_begin_of_a_name(container: ContainerClient) -> None:
    """Any number of characters, with or without a slash; nothing matches what no name begins with."""
    fill(container, "a/1", "a/2", "ab", "b", "A/3", "a%1")
    assert names_of(container, name_starts_with="a") == ["a%1", "a/1", "a/2", "ab"]
    assert names_of(container, name_starts_with="a/") == ["a/1", "a/2"]
    assert names_of(container, name_starts_with="a%") == ["a%1"]
    assert names_of(container, name_starts_with="c") == []
    assert names_of(container, name_starts_with="") == names_of(container)


def test_folders_come_once(container: ContainerClient) -> None:
    """With a delimiter, names that share the part up to it are one prefix."""
    fill(container, "a", "d/1", "d/2", "d/e/1", "d0", "z/1", "//", "/x")
    assert walked(container) == ["/", "a", "d/", "d0", "z/"]
    assert walked(container, name_starts_with="d") == ["d/", "d0"]
    assert walked(container, name_starts_with="d/") == ["d/1", "d/2", "d/e/"]
    assert walked(container, name_starts_with="/") == ["//", "/x"]
    folders = [one.name for one in container.walk_blobs() if isinstance(one, BlobPrefix)]
    assert sorted(folders) == ["/", "d/", "z/"]


def test_a_delimiter_may_be_another(container: ContainerClient) -> None:
    """Not only the slash."""
    fill(container, "a-b-c", "a-d", "b", "c/-")
    assert walked(container, delimiter="-") == ["a-", "b", "c/-"]


def test_a_folder_may_be_walked_into(container: ContainerClient) -> None:
    """A prefix of the list is the next list's prefix."""
    fill(container, "a/b/c", "a/d")
    (folder,) = container.walk_blobs()
    assert [one.name for one in folder] == ["a/b/", "a/d"]  # type: ignore[union-attr]


def test_folders_count_in_pages(container: ContainerClient) -> None:
    """A page holds so many entries, and a folder is one; it never comes again on the next page."""
    fill(container, *(f"{folder}/{number}" for folder in "abcde" for number in range(3)), "bb")
    pages = container.walk_blobs(results_per_page=2).by_page()
    found = [sorted(one.name for one in page) for page in pages]
    assert [name for page in found for name in page] == ["a/", "b/", "bb", "c/", "d/", "e/"]
    assert max(len(page) for page in found) <= 2


def test_many_names_in_pages(container: ContainerClient) -> None:
    """Pages of 7 are full but the last, and together they are all names once; one of 5,000 has them all."""
    names = [f"{number * 7919 % 1000:03}" for number in range(150)]
    fill(container, *names)
    pages = [[blob.name for blob in page] for page in container.list_blobs(results_per_page=7).by_page()]
    assert [len(page) for page in pages] == [7] * 21 + [3]
    assert [name for page in pages for name in page] == sorted(names)
    assert len(list(container.list_blobs(results_per_page=5000).by_page())) == 1


def test_a_list_goes_on_while_blobs_come_and_go(container: ContainerClient) -> None:
    """From the marker on it says what is there now: a deleted blob is left out, also the one that the marker names."""
    fill(container, "a", "b", "c", "d", "e")
    pages = container.list_blobs(results_per_page=2).by_page()
    assert [blob.name for blob in next(pages)] == ["a", "b"]
    container.delete_blob("c")
    container.delete_blob("b")
    fill(container, "aa", "cc", "f")
    assert [blob.name for page in pages for blob in page] == ["cc", "d", "e", "f"]


def test_a_marker_is_all_that_is_needed(container: ContainerClient) -> None:
    """Another client goes on with it."""
    fill(container, "a", "b", "c")
    pages = container.list_blobs(results_per_page=1).by_page()
    next(pages)
    token = pages.continuation_token  # type: ignore[attr-defined]
    rest = container.list_blobs(results_per_page=5).by_page(token)
    assert token
    assert [blob.name for page in rest for blob in page] == ["b", "c"]


def test_a_list_may_start_from_a_name(container: ContainerClient) -> None:
    """Which is the first one if it is there, and within the prefix."""
    fill(container, "a", "b/1", "b/2", "c")
    assert names_of(container, start_from="b/2") == ["b/2", "c"]
    assert names_of(container, start_from="b/1a") == ["b/2", "c"]
    assert names_of(container, start_from="b/2", name_starts_with="b/") == ["b/2"]
    assert names_of(container, start_from="d") == []


def test_the_last_page_has_no_marker(container: ContainerClient, raw: Raw) -> None:
    """Nor has one that is exactly full."""
    fill(container, "a", "b")
    query = "restype=container&comp=list&maxresults="
    full = raw.ask("GET", container.container_name, f"{query}2").body
    half = raw.ask("GET", container.container_name, f"{query}1").body
    assert b"<NextMarker/>" in full or b"<NextMarker />" in full or b"<NextMarker></NextMarker>" in full
    assert b"<NextMarker>" in half
    assert b"<MaxResults>1</MaxResults>" in half


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_page_has_at_least_one_entry(container: ContainerClient, raw: Raw, number: str) -> None:
    """Anything else is refused; more than 5,000 is 5,000."""
    query = "restype=container&comp=list&maxresults="
    assert raw.ask("GET", container.container_name, query + number).status == 400
    assert raw.ask("GET", container.container_name, f"{query}9999").status == 200


def test_an_empty_container(container: ContainerClient) -> None:
    """Has an empty list, and one page of it."""
    assert names_of(container) == []
    assert walked(container) == []


def test_a_list_says_what_the_blob_says(container: ContainerClient) -> None:
    """Size, times, etag, type and MD5 are those of the blob itself."""
    own = container.upload_blob("a", b"hello", metadata={"one": "1"}).get_blob_properties()
    (listed,) = container.list_blobs()
    assert (listed.size, listed.last_modified, listed.creation_time) == (5, own.last_modified, own.creation_time)
    assert (listed.etag, listed.blob_type) == (own.etag.strip('"'), own.blob_type)
    assert listed.content_settings.content_md5 == own.content_settings.content_md5
    assert (listed.lease.status, listed.lease.state) == ("unlocked", "available")
    assert (listed.container, listed.server_encrypted, listed.deleted) == (container.container_name, True, None)
    assert not listed.metadata


def test_more_is_said_on_request(container: ContainerClient) -> None:
    """Metadata, tags and copies each for themselves, or all at once."""
    source = container.upload_blob("a", b"1", metadata={"one": "<&>"}, tags={"k": "v"})
    container.get_blob_client("b").start_copy_from_url(source.url)
    assert [blob.metadata for blob in container.list_blobs(include=["metadata"])] == [{"one": "<&>"}] * 2
    assert [blob.tags for blob in container.list_blobs(include=["tags"])] == [{"k": "v"}, None]
    assert [blob.copy.status for blob in container.list_blobs(include=["copy"])] == [None, "success"]
    everything = list(container.list_blobs(include=["metadata", "tags", "copy", "snapshots", "uncommittedblobs"]))
    assert [(blob.metadata, blob.tags, blob.copy.status) for blob in everything] == [
        ({"one": "<&>"}, {"k": "v"}, None),
        ({"one": "<&>"}, None, "success"),
    ]


def test_the_list_repeats_what_was_asked(container: ContainerClient, raw: Raw) -> None:
    """Container, prefix, delimiter and number stand in its head, escaped as XML needs it."""
    prefix = "a<&>\"'b/"
    fill(container, f"{prefix}1")
    query = f"restype=container&comp=list&maxresults=5&delimiter={escaped('/')}&prefix={escaped(prefix)}"
    body = raw.ask("GET", container.container_name, query).body.decode()
    assert f'ContainerName="{container.container_name}"' in body
    assert "<Delimiter>/</Delimiter>" in body
    assert "<MaxResults>5</MaxResults>" in body
    assert "<Prefix>a&lt;&amp;" in body


def test_an_unknown_wish_is_refused(container: ContainerClient, raw: Raw) -> None:
    """What may be included is a fixed set."""
    assert raw.ask("GET", container.container_name, "restype=container&comp=list&include=odd").status == 400


def test_a_list_of_nothing(blobs: BlobServiceClient) -> None:
    """A container that is not there has no list."""
    missing = blobs.get_container_client(f"t{uuid.uuid4().hex}")
    assert refusal(lambda: list(missing.list_blobs())) == (404, "ContainerNotFound")
    assert refusal(lambda: list(missing.walk_blobs())) == (404, "ContainerNotFound")


LETTERS = st.text("ab/%", min_size=1, max_size=5)


def expected(names: set[str], prefix: str, delimiter: str) -> list[str]:
    """What a list of these names must have, as Azure's documents say."""
    found = set()
    for name in names:
        if name.startswith(prefix):
            end = name.find(delimiter, len(prefix)) if delimiter else -1
            found.add(name if end < 0 else name[: end + len(delimiter)])
    return sorted(found)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.sets(LETTERS, max_size=8),
    prefix=st.text("ab/%", max_size=2),
    delimiter=st.sampled_from(["", "/", "a"]),
    size=st.integers(1, 4),
)
def test_any_list_is_as_the_model_says(
    blobs: BlobServiceClient, names: set[str], prefix: str, delimiter: str, size: int
) -> None:
    """Any names under any prefix and delimiter, in pages of any size."""
    container = blobs.create_container(f"n{uuid.uuid4().hex}")
    for name in names:
        container.upload_blob(name, b"")
    options: dict[str, Any] = {"name_starts_with": prefix or None, "results_per_page": size}
    listing = container.walk_blobs(delimiter=delimiter, **options) if delimiter else container.list_blobs(**options)
    pages = [sorted(one.name for one in page) for page in listing.by_page()]
    container.delete_container()
    assert [name for page in pages for name in page] == expected(names, prefix, delimiter)
    assert max((len(page) for page in pages), default=0) <= size
