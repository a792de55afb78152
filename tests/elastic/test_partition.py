"""Live nodes that reach the table but not each other, on hosts whose networks are really cut."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from emulators.process import wait_for
from emulators.testing import azurite
from tests.elastic import hosts
from tests.elastic.agents import DEADLINE_SECONDS, InPlace
from tests.elastic.hosts import Host, Quality

pytestmark = pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())

Cut = Callable[[Quality, Sequence[Host]], None]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite"), key=azurite.KEY, names=[hosts.GATEWAY]) as running:
        yield running


@dataclass
class Four:
    """A run of four working nodes, each on its own host."""

    run: InPlace
    wires: Quality
    hosts: list[Host]

    def rounds(self) -> int:
        """How many rounds were written so far."""
        events = map(json.loads, (self.run.folder / "events").read_text().splitlines())
        return sum(event["what"] == "round written" for event in events)


@pytest.fixture(scope="module")
def four(account: azurite.Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    """One run for all tests of this file. In the end, all four nodes exit with 0, and no step was lost."""
    wires, folder = Quality(), tmp_path_factory.mktemp("four")
    with hosts.hosts(4, wires) as made, hosts.forwarded(account.ports.table) as port:
        connection = account.connection_string.replace(
            account.table_url, f"http://{hosts.GATEWAY}:{port}/{azurite.ACCOUNT}"
        )
        env = {"AZURE_STORAGE_CONNECTION_STRING": connection, "ELASTIC_EVENTS": str(folder / "events")}
        with InPlace(folder, "", "partition", "1:4", **env) as run:
            for host in made:
                run.start(prefix=host.prefix, GLOO_SOCKET_IFNAME="eth0", PET_LOCAL_ADDR=host.address)
            yield Four(run, wires, made)


def halves(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([*made[:2]], [*made[2:]])


def halves_refused(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([*made[:2]], [*made[2:]], refuse=True)


def the_first(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([made[0]], [*made[1:]])


def one_way(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([made[1]], [made[3]], one_way=True)


CUTS: dict[Cut, int] = {halves: 2, halves_refused: 2, the_first: 3, one_way: 3}  # more of them in the bench


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.__name__)
def test_the_largest_part_goes_on(four: Four, cut: Cut) -> None:
    """The largest set of nodes that reach each other continues after at most two rounds. The others wait, and are
    back when the cut has healed."""
    run = four.run
    run.wait_for_steps(4, after=len(run.progress()), steps=5)
    before = four.rounds()
    cut(four.wires, four.hosts)
    run.wait_for_steps(CUTS[cut], after=len(run.progress()), steps=20)
    assert four.rounds() - before <= 2
    assert len(run.alive()) == 4
    four.wires.heal()
    run.wait_for_steps(4, after=len(run.progress()), steps=5)


def test_a_cut_that_comes_and_goes(four: Four) -> None:
    """A team continues while a cut comes and goes every five seconds, and the others join again after the last cut."""
    run, before = four.run, len(four.run.progress())
    began = time.monotonic()
    for turn in range(6):
        halves(four.wires, four.hosts) if turn % 2 == 0 else four.wires.heal()
        due = began + 5 * (turn + 1)
        wait_for(lambda: time.monotonic() > due, DEADLINE_SECONDS, "the next change")  # noqa: B023 (called at once)
    assert len(run.progress()) > before + 20
    run.wait_for_steps(4, after=len(run.progress()), steps=5)


def test_nothing_was_lost(four: Four) -> None:
    """After all cuts, the four nodes exit with 0. Each step was made once, and no two teams made steps at the same
    time."""
    assert four.run.finish() == [0, 0, 0, 0]
    four.run.assert_no_step_lost()
