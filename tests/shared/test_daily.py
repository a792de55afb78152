"""The daily timer."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.daily import run_daily
from shared.jobs.route import Retention
from shared.kernel.errors import Unavailable
from shared.notices.model import Delivery, Notice, NoticeKind
from shared.removals.model import RemovalKind
from shared.removals.remove import RemovalRequest, clear
from tests.fakes.world import ROUTE, World, trainers_folder

DAY = 86400.0
POISON = "background-poison"
FAILING = {"poison": ("queues", "counts"), "notices": ("notices", "prune"), "removals": ("removals", "newest")}


def yard(folder: Path) -> World:
    """A world with a run whose checkpoints are due, a removal whose message was lost, old notices, and a poison
    message."""
    world = World(trainers_folder(folder), [replace(ROUTE, retention=Retention(checkpoints=7))])
    world.complete("1.bin")
    world.job_goes(world.only_run().name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    world.notices.insert(Delivery("s1", Notice("n1", NoticeKind.POISON, "Poison", world.clock())))
    world.queues.put(POISON, '{"run": "x"}')
    world.clock.advance(100 * DAY)
    clear(world.system, world.removals, RemovalKind.COPIES, world.only_run().name, RemovalRequest())
    world.queues.messages["background"].clear()
    world.clock.advance(DAY / 2)
    return world


def done(world: World) -> set[str]:
    """Return which parts of the timer have done their work."""
    asked = [message.body["what"] for message in world.queues.messages["background"]]
    renewed = world.queues.messages[POISON][0].visible_at == world.clock()
    parts = {"poison": renewed, "notices": not world.notices.rows}
    parts |= {"removals": RemovalKind.COPIES in asked, "retention": RemovalKind.CHECKPOINTS in asked}
    return {part for part, is_done in parts.items() if is_done}


@pytest.mark.parametrize("failing", ["", *FAILING])
def test_a_part_that_fails_stops_no_other(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poison messages are renewed, old notices deleted, lost removals sent again, and retention requested,
    whichever of the other parts fails. The failed part's error is raised at the end."""

    def fails(*_: Any) -> Any:
        raise Unavailable("away")

    world = yard(tmp_path)
    if failing:
        port, method = FAILING[failing]
        monkeypatch.setattr(getattr(world, port), method, fails)
    with pytest.raises(Unavailable, match="away") if failing else nullcontext():
        run_daily(world.system, world.removals, world.post)
    assert done(world) == {"poison", "notices", "removals", "retention"} - {failing}
