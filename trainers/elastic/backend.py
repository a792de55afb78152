"""A run's rows in a table: one row for the round, replaced only by a writer with the latest version, and one row for
each node.
"""

from __future__ import annotations

import contextlib
import logging
import time
import zlib
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, Token

from .client import Table, Version
from .errors import Conflict, Missing, TableError, TooBig
from .protocol import Node, Unreadable
from .values import key_of, key_text, unpack

KIND = "rendezvous"

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Snapshot(NamedTuple):
    """One read of a run: the readable state (if any), the state's token, and the rows of all nodes.

    `versions` are the versions of the nodes' rows. `unreadable` maps nodes with invalid rows to the reason. `ages`
    holds the seconds since each node's row was written, by the service's clock.
    """

    state: bytes | None
    token: Version | None
    nodes: dict[str, Node]
    versions: dict[str, Version]
    unreadable: dict[str, str]
    ages: dict[str, float]


class AzureTableRendezvousBackend(RendezvousBackend):
    """PyTorch's contract for a rendezvous backend, implemented with etags: without a token, the state is only created;
    with a token, only that version is replaced.

    A call retries an unreachable table for `patience` seconds; then it raises RendezvousConnectionError. It raises this
    error at once if the credential is refused. RendezvousStateError: the row is not a valid state, or the new state is
    too large for a row. The row is compressed, so its checksum reveals an invalid state.
    """

    def __init__(self, table: Table, run_id: str, patience: float = 120) -> None:
        if not run_id:
            raise ValueError("the run id must not be empty")
        self.patience = patience
        self.table = table
        self._run_id = run_id
        self._rows = table.rows(run_id, KIND)

    @property
    def name(self) -> str:
        return "azure-table"

    def get_state(self) -> tuple[bytes, Token] | None:
        """Return the state and the token of its version, or None if the run has no state."""
        row = self._call(lambda deadline: self._rows.get("state", deadline))
        return (self._opened(row.value), row.version) if row else None

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Write the state. Returns the current state, the token, and whether this call wrote the state; None without a
        state to replace.
        """
        if version := self.replace(state, token):
            return state, version, True
        found = self.get_state()
        return (*found, False) if found else None

    def replace(self, state: bytes, token: Token | None) -> Token | None:
        """Write the state like set_state, for callers that read again later anyway. Returns the new token, or None
        if another writer was faster."""
        try:
            return self._call(lambda deadline: self._write(zlib.compress(state), token, deadline))
        except (Conflict, Missing):
            return None

    def snapshot(self) -> Snapshot:
        """Read the state and the rows of all nodes, in one request per 1,000 nodes."""
        selected = f"PartitionKey eq '{key_text(self._run_id)}' and RowKey ge '{KIND}.' and RowKey lt '{KIND}/'"
        seen = Snapshot(None, None, {}, {}, {}, {})
        rows = self._call(lambda deadline: list(self.table.query(selected, None, deadline)))
        now = self.table.now()
        for row in rows:
            name, version = row["RowKey"], Version(row.metadata["etag"], row.get("writers", b""))
            if name == f"{KIND}.state":
                seen = seen._replace(state=self._state(unpack(row)), token=version)
            elif name.startswith(f"{KIND}.node:"):
                node = _note(seen, row.get("key", key_of(name)), (unpack(row), row.get("others", b"")), version)
                if written := row.metadata["timestamp"]:
                    seen.ages[node] = (now - written).total_seconds()
        return seen

    def _state(self, value: bytes) -> bytes | None:
        try:
            return self._opened(value)
        except RendezvousStateError as error:
            logger.warning("%s; it counts as none, and the next round replaces it", error)
            return None

    def write_node(self, node: Node, in_one: bool = False) -> None:
        """Write a node's row. Only the node itself writes this row, so there are no conflicts.

        `in_one`: write a row of form 2, with all fields in the value; otherwise a row of form 3.
        """
        value, others = (node.text(), b"") if in_one else node.in_two()
        self._call(lambda deadline: self._rows.put(f"node:{node.name}", value, deadline, others))

    def forget(self, name: str, version: Version) -> None:
        """Delete the row of a gone node, to shorten later reads. A row that was rewritten meanwhile is kept."""
        with contextlib.suppress(Conflict):
            self._call(lambda deadline: self._rows.delete(f"node:{name}", deadline, version))

    def _opened(self, value: bytes) -> bytes:
        try:
            return zlib.decompress(value)
        except zlib.error as error:
            raise RendezvousStateError(f"the rendezvous state of run {self._run_id} is corrupt: {error}") from error

    def _write(self, value: bytes, token: Token | None, deadline: float) -> Version:
        if token is None:
            return self._rows.insert("state", value, deadline)
        if not isinstance(token, Version):
            raise Conflict(f"{token!r} is not a token of this backend")
        return self._rows.replace("state", value, token, deadline)

    def _call(self, request: Callable[[float], T]) -> T:
        try:
            return request(time.monotonic() + self.patience)
        except (Conflict, Missing):
            raise
        except TooBig as error:
            raise RendezvousStateError(f"the rendezvous state of run {self._run_id}: {error}") from error
        except TableError as error:
            raise RendezvousConnectionError(f"the table of run {self._run_id}: {error}") from error


def _note(seen: Snapshot, key: bytes, texts: tuple[bytes, bytes], version: Version) -> str:
    """Parse a node's row, and return the node's name. A row that another program wrote is ignored."""
    name = key.decode(errors="replace").removeprefix(f"{KIND}.").removeprefix("node:")
    seen.versions[name] = version
    try:
        node = Node.of(*texts)
        if node.name != name:
            raise Unreadable(f"a node's row says that it is {node.name!r}'s")
        seen.nodes[name] = node
    except Unreadable as error:
        seen.unreadable[name] = str(error)
    return name
