"""Logs are appended exactly once, even if answers are lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from emulators.azureml.storage.blobs import Place, connect
from emulators.storage import services


async def append_twice(connection_string: str) -> tuple[list[int], int]:
    place = Place("azureml", "ExperimentRun/dcid.job/user_logs/std_log.txt")
    async with connect(connection_string) as blobs:
        await blobs.create_container(place.container)
        await blobs.open_log(place)
        lengths = [await blobs.append(place, b"line 1\n", 0) for _ in range(2)]
        return lengths, await blobs.open_log(place)


def test_an_append_whose_answer_was_lost_is_not_repeated(tmp_path: Path) -> None:
    """When the answer to an append is lost, the client's retry finds the log longer and adds nothing."""
    with services.start(tmp_path) as storage:
        lengths, size = asyncio.run(append_twice(storage.connection_string))

    assert lengths == [7, 7]
    assert size == 7
