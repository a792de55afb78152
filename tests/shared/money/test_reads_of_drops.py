"""How often the drops of one afternoon read clusters, prices and earlier runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fakes.world import World, trainers_folder


class Counted:
    """A port that counts the calls of its methods by name and arguments."""

    def __init__(self, target: Any, calls: list[tuple[Any, ...]]) -> None:
        self._target, self._calls = target, calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._calls.append((name, *args))
            return method(*args, **kwargs)

        return call


def test_drops_in_a_row_share_what_was_read(tmp_path: Path) -> None:
    """Ten drops within five minutes list the clusters at most twice, and read prices and newest runs once a minute.

    Each message is handled by a copy of the system, as in the app: the copies share one memory.
    """
    world = World(trainers_folder(tmp_path))
    world.goes_on = True
    clusters, books, runs = list[Any](), list[Any](), list[Any]()
    world.system = replace(
        world.system,
        clusters=Counted(world.clusters, clusters),
        books=Counted(world.books, books),
        runs=Counted(world.runs, runs),
    )
    for number in range(10):
        world.upload(f"mnist/drop{number}/_SUCCESS", b"")
        world.upload(f"mnist/drop{number}/a.csv")
        world.deliver_all()
        for _ in range(3):
            world.run_until_idle()
            world.clock.advance(9)
        world.clock.advance(3)
    assert len(world.jobs.jobs) == 10
    assert clusters.count(("list",)) <= 2
    assert books.count(("prices",)) <= 5
    assert runs.count(("newest", 200)) <= 5
