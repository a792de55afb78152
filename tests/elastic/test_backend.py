"""PyTorch's rules for a rendezvous backend, tested over c10d and over a table, and faults that only a table can
have."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed import FileStore
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

from emulators.testing import azurite
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.client import Table, connect
from trainers.elastic.errors import Denied
from trainers.elastic.protocol import Node, Round, TeamMember
from trainers.elastic.values import MAX_VALUE

Make = Callable[[str], RendezvousBackend]
SECONDS = 30


@pytest.fixture(scope="module")
def table(account: azurite.Azurite) -> Iterator[Table]:
    with closing(connect(account.table_url, {})) as made:
        yield made


@pytest.fixture(params=["c10d", "azure-table"])
def make(request: pytest.FixtureRequest, tmp_path: Path, table: Table) -> Make:
    """Makes another node's backend of a run."""
    if request.param == "azure-table":
        return lambda run: AzureTableRendezvousBackend(table, run, SECONDS)
    return lambda run: C10dRendezvousBackend(FileStore(str(tmp_path / "store")), run)


@pytest.fixture
def backend(make: Make, run: str) -> RendezvousBackend:
    return make(run)


def test_without_a_state_there_is_none(backend: Any) -> None:
    """get_state of a run without a state gives None."""
    assert backend.get_state() is None


def test_what_was_set_is_read(backend: Any) -> None:
    """get_state gives the state that was set, and a token."""
    backend.set_state(b"x")
    state, token = backend.get_state()
    assert (state, token is None) == (b"x", False)


def test_the_first_state_needs_no_token(backend: Any) -> None:
    """set_state without a token sets a state where there is none."""
    state, token, has_set = backend.set_state(b"x")
    assert (state, token is None, has_set) == (b"x", False, True)


def test_the_current_token_replaces(backend: Any) -> None:
    """set_state with the token of the current version replaces it, and gives a new token."""
    _, first, _ = backend.set_state(b"x")
    state, second, has_set = backend.set_state(b"y", first)
    assert (state, second != first, has_set) == (b"y", True, True)


@pytest.mark.parametrize("token", ["old", "none", "invalid"])
def test_any_other_token_changes_nothing(backend: Any, token: str) -> None:
    """set_state with an old token, without one, or with what is none, changes nothing and gives what is there."""
    _, old, _ = backend.set_state(b"x")
    current = backend.set_state(b"y", old)
    state, found, has_set = backend.set_state(b"z", {"old": old, "none": None, "invalid": "invalid"}[token])
    assert current is not None
    assert (state, found, has_set) == (*current[:2], False)
    assert backend.get_state() == current[:2]


def test_a_corrupt_state_is_a_typed_error(
    request: pytest.FixtureRequest, make: Make, run: str, table: Table, tmp_path: Path
) -> None:
    """get_state of something that is no state raises RendezvousStateError."""
    backend = make(run)
    if isinstance(backend, C10dRendezvousBackend):
        FileStore(str(tmp_path / "store")).set(f"torch.rendezvous.{run}", "corrupt")
    else:
        table.rows(run, "rendezvous").put("state", b"corrupt", time.monotonic() + SECONDS)
    with pytest.raises(RendezvousStateError):
        backend.get_state()


OPERATION = st.tuples(st.integers(0, 2), st.sampled_from(["get", "set", "set without a token"]))


def test_interleavings(make: Make) -> None:
    """However three nodes' calls mix, a write counts exactly if its node saw the last version; all see the same."""

    @settings(max_examples=25)
    @given(st.lists(OPERATION, max_size=15))
    def mixed(operations: list[tuple[int, str]]) -> None:
        run = uuid.uuid4().hex
        nodes = [make(run) for _ in range(3)]
        tokens: list[Any] = [None] * 3  # of the version that a node saw last
        seen: list[bytes | None] = [None] * 3
        current: bytes | None = None
        for number, (node, operation) in enumerate(operations):
            if operation == "get":
                answer = nodes[node].get_state()
                assert (answer[0] if answer else None) == current
            else:
                wanted = b"%d" % number
                token = tokens[node] if operation == "set" else None
                legal = current is None if token is None else seen[node] == current
                current = wanted if legal else current
                outcome = nodes[node].set_state(wanted, token)
                assert outcome is not None
                assert (outcome[0], outcome[2]) == (current, legal)
                answer = outcome[:2]
            seen[node], tokens[node] = answer or (None, None)

    mixed()


def test_a_state_may_fill_a_row(table: Table, run: str) -> None:
    """A state of a row's size goes in and out unchanged; of a larger one RendezvousStateError gives both sizes."""
    backend = AzureTableRendezvousBackend(table, run, SECONDS)
    bits = uuid.uuid4().bytes
    fits = b"".join(uuid.uuid5(uuid.NAMESPACE_OID, f"{bits.hex()}{i}").bytes for i in range(MAX_VALUE // 16 - 64))
    assert backend.set_state(fits) == (fits, backend.get_state()[1], True)
    assert backend.get_state()[0] == fits
    with pytest.raises(RendezvousStateError, match=f"{MAX_VALUE:,}"):
        backend.set_state(fits + fits[:2048], backend.get_state()[1])


def test_a_thousand_nodes_fit(table: Table, run: str) -> None:
    """A round of 1,000 nodes is far from a row's limit."""
    team = tuple(
        TeamMember(f"a-name-that-azure-makes-for-a-node-of-a-cluster-{uuid.uuid4().hex}", 1) for _ in range(1000)
    )
    assert AzureTableRendezvousBackend(table, run, SECONDS).set_state(Round(1, team).text())
    row = table.rows(run, "rendezvous").get("state", time.monotonic() + SECONDS)
    assert row is not None
    assert len(row.value) < MAX_VALUE / 10


@pytest.mark.parametrize(("one", "other"), [("a-b_1", "ab1"), ("AB", "ab"), ("a/b", "a?b"), ("run", "run ")])
def test_runs_do_not_collide(table: Table, one: str, other: str) -> None:
    """Two run ids that differ in case, or in a character that keys may not hold, are two runs."""
    for name in (one, other):
        table.clear(name, time.monotonic() + SECONDS)
        assert AzureTableRendezvousBackend(table, name, SECONDS).set_state(name.encode())
    assert AzureTableRendezvousBackend(table, one, SECONDS).get_state()[0] == one.encode()


def test_a_state_that_is_gone(table: Table, run: str) -> None:
    """With the token of a row that was cleaned up nothing is set, and the answer is None; without one it begins."""
    backend = AzureTableRendezvousBackend(table, run, SECONDS)
    _, token, _ = backend.set_state(b"x")
    table.clear(run, time.monotonic() + SECONDS)
    assert backend.set_state(b"y", token) is None
    assert backend.set_state(b"z")[2]


def test_nodes_leave_the_state_alone(table: Table, run: str) -> None:
    """What nodes say of themselves changes no token; one look, one request, shows the state and what all said last."""
    backend = AzureTableRendezvousBackend(table, run, SECONDS)
    _, token, _ = backend.set_state(b"x")
    for node in (Node("10.0.0.1_1", beat=1), Node("10.0.0.2_1", beat=1), Node("10.0.0.1_1", beat=2), Node("gone")):
        backend.write_node(node)
    backend.forget("gone", backend.snapshot().versions["gone"])
    before = table.requests
    found = backend.snapshot()
    assert (found.state, found.token) == (b"x", token)
    assert found.nodes == {"10.0.0.1_1": Node("10.0.0.1_1", beat=2), "10.0.0.2_1": Node("10.0.0.2_1", beat=1)}
    assert table.requests == before + 1
    assert backend.set_state(b"y", token)[2]


def test_a_row_that_cannot_be_read_fails_no_look(table: Table, run: str) -> None:
    """Rows that hold no node, or another, are named with the reason; a state that can't be read is none."""
    backend, rows = AzureTableRendezvousBackend(table, run, SECONDS), table.rows(run, "rendezvous")
    backend.write_node(Node("good"))
    rows.put("node:bad", b"no JSON", time.monotonic() + SECONDS)
    rows.put("node:10.0.0.1 x", Node("good").text(), time.monotonic() + SECONDS)
    rows.put("state", b"corrupt", time.monotonic() + SECONDS)
    found = backend.snapshot()
    assert (found.nodes, found.state, sorted(found.unreadable)) == ({"good": Node("good")}, None, ["10.0.0.1 x", "bad"])
    assert backend.replace(b"x", found.token)
    assert backend.snapshot().state == b"x"


def test_only_the_row_that_was_seen_is_deleted(table: Table, run: str) -> None:
    """A delete that comes late leaves a node alone that has written its row again, and is no error twice."""
    backend = AzureTableRendezvousBackend(table, run, SECONDS)
    backend.write_node(Node("a", beat=1))
    seen = backend.snapshot().versions["a"]
    backend.write_node(Node("a", beat=2))
    backend.forget("a", seen)
    assert backend.snapshot().nodes == {"a": Node("a", beat=2)}
    for _ in range(2):
        backend.forget("a", backend.snapshot().versions.get("a", seen))
    assert backend.snapshot().nodes == {}


def test_an_unreachable_table_is_a_typed_error(run: str) -> None:
    """Where nobody listens, both calls raise RendezvousConnectionError after the patience they were given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/devstoreaccount1"
        with closing(connect(url, {})) as table:
            backend = AzureTableRendezvousBackend(table, run, patience=0.2)
            with pytest.raises(RendezvousConnectionError, match="tries"):
                backend.get_state()
            with pytest.raises(RendezvousConnectionError, match="tries"):
                backend.set_state(b"x")


def test_a_refused_credential_is_a_typed_error(table: Table, run: str) -> None:
    """A wrong key raises RendezvousConnectionError at once, caused by Denied."""
    text = f"AccountName={azurite.ACCOUNT};AccountKey=d3Jvbmc=;TableEndpoint={table.url}"
    with closing(connect("", {"AZURE_STORAGE_CONNECTION_STRING": text})) as wrong:
        with pytest.raises(RendezvousConnectionError, match="403") as raised:
            AzureTableRendezvousBackend(wrong, run, SECONDS).get_state()
        assert isinstance(raised.value.__cause__, Denied)
