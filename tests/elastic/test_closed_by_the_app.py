"""The app closes the rendezvous of a canceled or failed run, and the nodes of the run read what the app wrote."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest
from azure.data.tables import TableServiceClient
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError

from emulators.process import wait_for
from emulators.testing import azurite
from shared.adapters.elastic.rendezvous_table import TableRendezvous
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.client import connect
from trainers.elastic.member import Member
from trainers.elastic.protocol import Limits, Round, Times

TIMES = Times(last_call=1, interval=1, lease=20, heartbeat=2)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite"), key=azurite.KEY) as running:
        yield running


class Meeting:
    """The rendezvous of one run, as the app and its nodes see it."""

    def __init__(self, account: azurite.Azurite) -> None:
        self.run = f"run-{uuid.uuid4().hex}"
        self.app = TableRendezvous(TableServiceClient.from_connection_string(account.connection_string))
        self.backend = AzureTableRendezvousBackend(connect(account.table_url, {}), self.run)

    def node(self, least: int, most: int) -> Member:
        return Member(self.backend, Limits(least, most), TIMES, "127.0.0.1")

    def state(self) -> Round:
        found = self.backend.get_state()
        assert found
        return Round.of(found[0])


@pytest.fixture
def meeting(account: azurite.Azurite) -> Meeting:
    return Meeting(account)


def test_a_late_node_leaves_at_once(meeting: Meeting) -> None:
    """The first node of a run that is over gets the reason, whether nodes had met before or not. The first reason
    stays."""
    meeting.app.close(meeting.run, "the run is canceled")
    meeting.app.close(meeting.run, "another reason")
    with pytest.raises(RendezvousClosedError, match="the run is canceled"):
        meeting.node(1, 1).join()


def test_nodes_at_work_and_waiting_leave(meeting: Meeting) -> None:
    """The round of working nodes keeps its team and is closed, and a node that waits for others ends."""
    at_work = meeting.node(1, 1)
    joined = at_work.join()
    waiting, ended = meeting.node(2, 2), threading.Event()

    def wait() -> None:
        with pytest.raises(RendezvousClosedError, match="failed"):
            waiting.join()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    wait_for(lambda: len(meeting.backend.snapshot().nodes) == 2, 30, "the second node")
    meeting.app.close(meeting.run, "the run is failed")
    wait_for(ended.is_set, 30, "the end of the node that waits")
    assert meeting.state() == Round(
        joined.round.number, joined.round.team, joined.round.address, joined.round.port, closed="the run is failed"
    )
    at_work.leave()


def test_a_row_that_nobody_can_read_is_closed_too(meeting: Meeting) -> None:
    """Nodes replace an unreadable row by a round, and the app replaces it by a closed one."""
    at_work = meeting.node(1, 1)
    at_work.join()
    token = meeting.backend.snapshot().token
    assert token
    meeting.backend._rows.replace("state", b"not compressed", token, 1e12)
    meeting.app.close(meeting.run, "the run is failed")
    assert meeting.state().closed == "the run is failed"
    at_work.leave()
