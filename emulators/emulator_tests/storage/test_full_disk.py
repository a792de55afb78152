"""A full disk: a small disk that is mounted for the test and filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient

from emulators.process import wait_for
from emulators.storage import services

MOST_WRITES = 1000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a disk: {error}")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def until_full(write: Callable[[int], Any]) -> HttpResponseError:
    """Write until a write is refused, and return the refusal."""
    for number in range(MOST_WRITES):
        try:
            write(number)
        except HttpResponseError as error:
            return error
    raise AssertionError("the disk was never full")


def test_a_full_disk_takes_deletions(disk: Path) -> None:
    """On a full disk, writes are a 507 with the folder's name. Existing data can be read and deleted, which frees
    space."""
    with services.start(disk) as running:
        container = ContainerClient.from_connection_string(running.connection_string, "box", retry_total=0)
        table = TableClient.from_connection_string(running.connection_string, "rows", retry_total=0)
        container.create_container()
        table.create_table()
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        refused = until_full(lambda number: container.upload_blob(f"{number}", os.urandom(500_000)))
        assert (refused.status_code, "no room left on the disk of" in str(refused)) == (507, True)
        until_full(lambda number: table.create_entity({"PartitionKey": "p", "RowKey": f"{number}", "x": "y" * 30_000}))
        whole = [blob.name for blob in container.list_blobs()]
        table.delete_entity("p", "r")
        container.delete_blob(whole.pop())
        wait_for(lambda: written(container), 30, "room for a new blob")
    with services.start(disk) as running:
        container = ContainerClient.from_connection_string(running.connection_string, "box")
        assert [len(container.download_blob(name).readall()) for name in [*whole, "new"]] == [500_000] * (
            len(whole) + 1
        )


def written(container: ContainerClient) -> bool:
    try:
        container.upload_blob("new", os.urandom(500_000))
    except HttpResponseError:
        return False
    return True
