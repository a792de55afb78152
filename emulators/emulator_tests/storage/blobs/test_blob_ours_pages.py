"""Page blobs: writing and clearing ranges within a fixed size, listing the ranges with data, and sequence numbers.

Azurite 3.37 does not join neighboring ranges, compares no snapshots, and names other errors.
"""

from __future__ import annotations

from typing import Any

import pytest
from azure.storage.blob import BlobClient, ContainerClient, ContentSettings

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import Raw, account_sas, refusal

PAGE = 512
SIZE = 8 * PAGE


@pytest.fixture
def side(ours: Side) -> Side:
    return ours


@pytest.fixture
def disk(container: ContainerClient) -> BlobClient:
    client = container.get_blob_client("disk")
    client.create_page_blob(SIZE, content_settings=ContentSettings(content_type="text/plain"), sequence_number=7)
    return client


def ranges(disk: BlobClient, **options: Any) -> list[tuple[int, int, bool]]:
    """Return the listed ranges in pages: first, last, and whether they were cleared."""
    found: Any = disk.list_page_ranges(**options)
    return [(one.start // PAGE, (one.end + 1) // PAGE - 1, one.cleared) for one in found]


def test_pages_are_written_where_they_are_said_to_be(disk: BlobClient) -> None:
    """Unwritten pages are zero, and adjacent pages are listed as one range."""
    disk.upload_page(b"a" * PAGE, 2 * PAGE, PAGE)
    disk.upload_page(b"b" * 2 * PAGE, 3 * PAGE, 2 * PAGE)
    disk.upload_page(b"c" * PAGE, 7 * PAGE, PAGE)
    expected = bytes(2 * PAGE) + b"a" * PAGE + b"b" * 2 * PAGE + bytes(2 * PAGE) + b"c" * PAGE
    assert disk.download_blob().readall() == expected
    assert ranges(disk) == [(2, 4, False), (7, 7, False)]
    assert ranges(disk, offset=3 * PAGE, length=PAGE) == [(3, 3, False)]
    disk.clear_page(3 * PAGE, PAGE)
    assert ranges(disk) == [(2, 2, False), (4, 4, False), (7, 7, False)]
    assert disk.download_blob(3 * PAGE, PAGE).readall() == bytes(PAGE)


def test_a_comparison_says_what_changed_since_a_snapshot(disk: BlobClient) -> None:
    """A comparison lists exactly the written ranges, also those with unchanged bytes, and the cleared ranges."""
    disk.upload_page(b"a" * 4 * PAGE, 0, 4 * PAGE)
    before = disk.create_snapshot()
    disk.upload_page(b"a" * PAGE, PAGE, PAGE)
    disk.clear_page(2 * PAGE, PAGE)
    middle = disk.create_snapshot()
    disk.upload_page(b"b" * PAGE, 5 * PAGE, PAGE)
    assert ranges(disk, previous_snapshot=before) == [(1, 1, False), (2, 2, True), (5, 5, False)]
    assert ranges(disk, previous_snapshot=middle) == [(5, 5, False)]
    first = disk.list_page_ranges(previous_snapshot=before, results_per_page=2).by_page()
    assert [len(list(page)) for page in first] == [2, 1]


def test_a_comparison_needs_its_snapshot(disk: BlobClient, raw: Raw, name: str) -> None:
    """A comparison with a missing snapshot, or of another type of blob, is refused."""
    path, time = f"{disk.container_name}/disk", "2020-01-01T00:00:00.0000000Z"
    assert raw.ask("GET", path, f"comp=pagelist&prevsnapshot={time}").refusal == (409, "PreviousSnapshotNotFound")
    assert raw.ask("GET", path, "comp=pagelist&prevsnapshot=x").refusal == (400, "InvalidQueryParameterValue")
    assert raw.ask("GET", name, "comp=pagelist").refusal == (409, "InvalidBlobType")


@pytest.mark.parametrize(("headers", "body", "expected"), [
    ({"x-ms-page-write": "update", "x-ms-range": "bytes=0-510"}, b"1" * 511, (416, "InvalidPageRange")),
    ({"x-ms-page-write": "update", "x-ms-range": "bytes=1-512"}, b"1" * PAGE, (416, "InvalidPageRange")),
    ({"x-ms-page-write": "clear", "x-ms-range": f"bytes={SIZE}-{SIZE + 511}"}, b"", (416, "InvalidPageRange")),
    ({"x-ms-page-write": "update", "x-ms-range": "bytes=0-1023"}, b"1" * PAGE, (400, "InvalidHeaderValue")),
    ({"x-ms-page-write": "update"}, b"1" * PAGE, (400, "InvalidHeaderValue")),
    ({"x-ms-page-write": "erase", "x-ms-range": "bytes=0-511"}, b"", (400, "InvalidHeaderValue")),
])  # fmt: skip
def test_a_range_that_is_no_pages_changes_nothing(
    disk: BlobClient, raw: Raw, headers: dict[str, str], body: bytes, expected: tuple[int, str]
) -> None:
    """A range with half a page, beyond the end, or with another length than the body is refused."""
    before = disk.get_blob_properties().etag
    assert raw.ask("PUT", f"{disk.container_name}/disk", "comp=page", headers, body).refusal == expected
    assert (disk.get_blob_properties().etag, ranges(disk)) == (before, [])


@pytest.mark.parametrize(("condition", "number", "holds"), [
    ("le", 7, True), ("le", 6, False), ("lt", 8, True), ("lt", 7, False), ("eq", 7, True), ("eq", 8, False),
])  # fmt: skip
def test_a_sequence_number_guards_a_write(disk: BlobClient, raw: Raw, condition: str, number: int, holds: bool) -> None:
    """The request's sequence number is compared with the blob's, which is 7."""
    headers = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    headers[f"x-ms-if-sequence-number-{condition}"] = str(number)
    reply = raw.ask("PUT", f"{disk.container_name}/disk", "comp=page", headers, b"1" * PAGE)
    assert reply.status == (201 if holds else 412)
    assert holds or reply.code == "SequenceNumberConditionNotMet"
    assert ranges(disk) == ([(0, 0, False)] if holds else [])


def test_size_and_number_change_without_the_other_properties(disk: BlobClient) -> None:
    """A smaller size truncates, and a larger size adds zeros. `max` keeps the larger sequence number, and
    `increment` adds one."""
    disk.upload_page(b"a" * SIZE, 0, SIZE)
    disk.resize_blob(PAGE)
    disk.resize_blob(3 * PAGE)
    assert disk.download_blob().readall() == b"a" * PAGE + bytes(2 * PAGE)
    for action, given, expected in (("max", "3", 7), ("update", "3", 3), ("increment", None, 4)):
        disk.set_sequence_number(action, given)
        assert disk.get_blob_properties().page_blob_sequence_number == expected
    assert disk.get_blob_properties().content_settings.content_type == "text/plain"
    assert refusal(disk.resize_blob, 513) == (400, "InvalidHeaderValue")


def test_a_page_blob_is_copied_with_its_holes(container: ContainerClient, disk: BlobClient) -> None:
    """A copy and an upload of pages from an address both keep empty ranges."""
    disk.upload_page(b"a" * PAGE, 4 * PAGE, PAGE)
    copy, part = container.get_blob_client("copy"), container.get_blob_client("part")
    copy.start_copy_from_url(disk.url)
    assert ranges(copy) == [(4, 4, False)]
    part.create_page_blob(2 * PAGE)
    part.upload_pages_from_url(f"{disk.url}?{account_sas()}", 0, 2 * PAGE, 3 * PAGE)
    assert part.download_blob().readall() == bytes(PAGE) + b"a" * PAGE
    listed = {blob.name: (blob.blob_type, blob.page_blob_sequence_number) for blob in container.list_blobs()}
    assert listed["copy"] == ("PageBlob", 7)


def test_a_blob_of_terabytes_takes_no_room(container: ContainerClient) -> None:
    """A page blob may have up to 8 TiB, and empty ranges take no space."""
    disk = container.get_blob_client("large")
    disk.create_page_blob(8 * 1024**4)
    disk.upload_page(b"z" * PAGE, 8 * 1024**4 - PAGE, PAGE)
    assert disk.download_blob(8 * 1024**4 - 2 * PAGE, 2 * PAGE).readall() == bytes(PAGE) + b"z" * PAGE
    assert refusal(container.get_blob_client("larger").create_page_blob, 8 * 1024**4 + PAGE) == (
        400,
        "InvalidHeaderValue",
    )
