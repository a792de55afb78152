"""Agents as processes whose workers train together, and the cost of the death of agents, hosts and the table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from emulators.process import wait_for
from emulators.testing import azurite
from tests.elastic import hosts
from tests.elastic.agents import EVERY, ROOT, Run

# Sooner than the defaults, since no network is bad here: a node is dead after 3 s, or 9 while workers are at work.
CONF = "keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    home = tmp_path_factory.mktemp("azurite")
    with azurite.start(home, key=azurite.KEY, names=[hosts.GATEWAY]) as running:
        yield running


def test_two_agents_and_an_outage(account: azurite.Azurite, tmp_path: Path) -> None:
    """Training continues while the table is unavailable, even if an agent dies. When the table is back, the other
    agent works alone."""
    with Run(tmp_path, account.table_url, "outage", "1:2", PET_RDZV_CONF=CONF) as run:
        run.start(2)
        before = run.wait_for_steps(2, steps=EVERY)
        account.stop()
        at_kill = run.wait_for_steps(2, after=len(before), steps=100)
        run.first().kill()
        account.restart_if_dead()
        lines = run.wait_for_steps(1, after=len(at_kill))
        _lost_at_most_one_interval([line["step"] for line in lines])
        (survivor,) = run.alive()
        assert (run.finish(), survivor.last_line()) == ([0], "member: done: all its workers ended with 0")


def test_four_agents_lose_the_first_and_the_last(account: azurite.Azurite, tmp_path: Path) -> None:
    """Two of four agents are killed, including the first. The other two continue from the checkpoint, a third
    joins, and all three end with 0."""
    with Run(tmp_path, account.table_url, "four", "1:4", PET_RDZV_CONF=CONF) as run:
        run.start(4)
        at_kill = run.wait_for_steps(4, steps=EVERY)
        run.first().kill()
        run.alive()[-1].kill()
        run.start(1)
        lines = run.wait_for_steps(3, after=len(at_kill))
        _lost_at_most_one_interval([line["step"] for line in lines])
        assert run.finish() == [0, 0, 0]


@pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())
def test_a_host_falls_off_the_network(account: azurite.Azurite, tmp_path: Path) -> None:
    """A host loses its network without a notice. The other host's worker hangs, and its agent starts a round
    without the lost host."""
    with hosts.hosts(2) as (first, second), hosts.forwarded(account.ports.table) as port:
        env = {
            "AZURE_STORAGE_CONNECTION_STRING": account.connection_string.replace(
                account.table_url, f"http://{hosts.GATEWAY}:{port}/{azurite.ACCOUNT}"
            ),
            "GLOO_SOCKET_IFNAME": "eth0",
            "PET_RDZV_CONF": CONF,
        }
        with Run(tmp_path, "", "hosts", "1:2", **env) as run:
            run.start(prefix=first.prefix)
            run.start(prefix=second.prefix)
            before = run.wait_for_steps(2, steps=EVERY)
            first.unplug()
            run.wait_for_steps(1, after=len(before))
            run.agents[0].kill()
            assert run.finish() == [0]


def test_stock_torchrun_loses_its_first_node_at_once(account: azurite.Azurite, tmp_path: Path) -> None:
    """With stock torchrun, whose agents exchange their numbers of workers, the first node dies as a round begins.
    The others meet in the next round; no agent is lost, and none waits for a time-out."""
    installed = tmp_path / "elastic-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: elastic\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("[torchrun.handlers]\nazure-table = elastic.plugin:plugin\n")
    events = tmp_path / "events"
    env = {
        "PET_RDZV_BACKEND": "azure-table",
        "PET_RDZV_CONF": CONF,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'trainers'}",
        "ELASTIC_EVENTS": str(events),
    }
    with Run(tmp_path, account.table_url, "stock", "3", **env) as run:
        run.start(3, launch=("torch.distributed.run",))

        def first() -> int | None:
            lines = map(json.loads, events.read_text().splitlines() if events.exists() else [])
            return next((e["process"] for e in lines if e["what"] == "node joined" and e["rank"] == 0), None)

        pid = wait_for(first, 120, "a round", every=0.01)
        next(agent for agent in run.agents if agent.pid == pid).kill()
        began = time.monotonic()
        run.start(1, launch=("torch.distributed.run",))
        run.wait_for_steps(3, steps=2)
        assert time.monotonic() - began < 200  # the exchange's own time-out is 300 s
        assert run.finish() == [0, 0, 0]


def _lost_at_most_one_interval(steps: list[float]) -> None:
    """Check that no step was skipped, and that no step in a checkpoint was repeated."""
    for earlier, later in pairwise(steps):
        assert earlier - EVERY < later <= earlier + 1, f"step {later} came after step {earlier}"
