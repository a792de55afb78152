"""Lists of blobs: order, prefix, folders, pages and content."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator_tests.storage.raw import Raw, escaped


def fill(container: ContainerClient, *names: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: container.upload_blob(name, b"1"), names))


def test_a_list_goes_on_while_blobs_come_and_go(container: ContainerClient) -> None:
    """After the marker, a list has the current blobs. A deleted blob is left out, even the marker's."""
    fill(container, "a", "b", "c", "d", "e")
    pages = container.list_blobs(results_per_page=2).by_page()
    assert [blob.name for blob in next(pages)] == ["a", "b"]
    container.delete_blob("c")
    container.delete_blob("b")
    fill(container, "aa", "cc", "f")
    assert [blob.name for page in pages for blob in page] == ["cc", "d", "e", "f"]


def test_the_last_page_has_no_marker(container: ContainerClient, raw: Raw) -> None:
    """The last page has no marker, even if it is exactly full."""
    fill(container, "a", "b")
    query = "restype=container&comp=list&maxresults="
    full = raw.ask("GET", container.container_name, f"{query}2").body
    half = raw.ask("GET", container.container_name, f"{query}1").body
    assert b"<NextMarker/>" in full or b"<NextMarker />" in full or b"<NextMarker></NextMarker>" in full
    assert b"<NextMarker>" in half
    assert b"<MaxResults>1</MaxResults>" in half


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_page_has_at_least_one_entry(container: ContainerClient, raw: Raw, number: str) -> None:
    """A page size below 1 is refused, and one above 5,000 is read as 5,000."""
    query = "restype=container&comp=list&maxresults="
    assert raw.ask("GET", container.container_name, query + number).status == 400
    assert raw.ask("GET", container.container_name, f"{query}9999").status == 200


def test_the_list_repeats_what_was_asked(container: ContainerClient, raw: Raw) -> None:
    """The list's head has container, prefix, delimiter and page size, escaped for XML."""
    prefix = "a<&>\"'b/"
    fill(container, f"{prefix}1")
    query = f"restype=container&comp=list&maxresults=5&delimiter={escaped('/')}&prefix={escaped(prefix)}"
    body = raw.ask("GET", container.container_name, query).body.decode()
    assert f'ContainerName="{container.container_name}"' in body
    assert "<Delimiter>/</Delimiter>" in body
    assert "<MaxResults>5</MaxResults>" in body
    assert "<Prefix>a&lt;&amp;" in body


def test_an_unknown_wish_is_refused(container: ContainerClient, raw: Raw) -> None:
    """An unknown value of `include` is refused."""
    assert raw.ask("GET", container.container_name, "restype=container&comp=list&include=odd").status == 400


LETTERS = st.text("ab/%", min_size=1, max_size=5)


def expected(names: set[str], prefix: str, delimiter: str) -> list[str]:
    """Return the list of these names by Azure's documents."""
    found = set()
    for name in names:
        if name.startswith(prefix):
            end = name.find(delimiter, len(prefix)) if delimiter else -1
            found.add(name if end < 0 else name[: end + len(delimiter)])
    return sorted(found)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.sets(LETTERS, max_size=8),
    prefix=st.text("ab/%", max_size=2),
    delimiter=st.sampled_from(["", "/", "a"]),
    size=st.integers(1, 4),
)
def test_any_list_is_as_the_model_says(
    blobs: BlobServiceClient, names: set[str], prefix: str, delimiter: str, size: int
) -> None:
    """For any names, prefix, delimiter and page size, the list equals the model's."""
    container = blobs.create_container(f"n{uuid.uuid4().hex}")
    for name in names:
        container.upload_blob(name, b"")
    options: dict[str, Any] = {"name_starts_with": prefix or None, "results_per_page": size}
    listing = container.walk_blobs(delimiter=delimiter, **options) if delimiter else container.list_blobs(**options)
    pages = [sorted(one.name for one in page) for page in listing.by_page()]
    container.delete_container()
    assert [name for page in pages for name in page] == expected(names, prefix, delimiter)
    assert max((len(page) for page in pages), default=0) <= size
