"""A run's rows in a table: the round, which whoever saw its last version replaces, and a row for each node."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import TypeVar

from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, Token

from .client import Table, Version
from .errors import Conflict, Missing, TableError, TooBig
from .protocol import Node, Unreadable
from .values import key_text, unpack

KIND = "rendezvous"

T = TypeVar("T")


class AzureTableRendezvousBackend(RendezvousBackend):
    """PyTorch's contract, kept with etags: without a token only make the state, with one only replace that version.

    A call rides out an unreachable table for `patience` seconds; then it raises RendezvousConnectionError, as it does
    at once if the credential is refused. RendezvousStateError: what is there is no state, or the new one is too large
    for a row. The row is compressed, so that its checksum tells the first.
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
        """Give the state and the token of its version, or None if the run has none."""
        row = self._call(lambda deadline: self._rows.get("state", deadline))
        return (self._opened(row.value), row.version) if row else None

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Write the state; give what is there now, its token, and whether that is ours. None: nothing to replace."""
        if version := self.replace(state, token):
            return state, version, True
        found = self.get_state()
        return (*found, False) if found else None

    def replace(self, state: bytes, token: Token | None) -> Token | None:
        """What set_state does, for those who look next anyway: give the new token, or None if another was quicker."""
        try:
            return self._call(lambda deadline: self._write(zlib.compress(state), token, deadline))
        except (Conflict, Missing):
            return None

    def look(self) -> tuple[tuple[bytes, Token] | None, dict[str, Node]]:
        """What get_state gives, and what each node says of itself. One request for 1,000 nodes."""
        wanted = f"PartitionKey eq '{key_text(self._run_id)}' and RowKey ge '{KIND}.' and RowKey lt '{KIND}/'"
        state, nodes = None, {}
        for row in self._call(lambda deadline: list(self.table.query(wanted, None, deadline))):
            if row["RowKey"] == f"{KIND}.state":
                state = self._opened(unpack(row)), Version(row.metadata["etag"], row["writers"])
            elif row["RowKey"].startswith(f"{KIND}.node:"):
                node = self._node(unpack(row))
                nodes[node.name] = node
        return state, nodes

    def tell(self, node: Node) -> None:
        """Write a node's row. Nobody else writes it, so nobody is in the way."""
        self._call(lambda deadline: self._rows.put(f"node:{node.name}", node.text(), deadline))

    def forget(self, name: str) -> None:
        """Delete the row of a node that is gone, so that later looks are short."""
        self._call(lambda deadline: self._rows.delete(f"node:{name}", deadline))

    def _node(self, text: bytes) -> Node:
        try:
            return Node.of(text)
        except Unreadable as error:
            raise RendezvousStateError(f"run {self._run_id}: {error}") from error

    def _opened(self, value: bytes) -> bytes:
        try:
            return zlib.decompress(value)
        except zlib.error as error:
            raise RendezvousStateError(f"the rendezvous state of run {self._run_id} is corrupt: {error}") from error

    def _write(self, value: bytes, token: Token | None, deadline: float) -> Version:
        if token is None:
            return self._rows.insert("state", value, deadline)
        if not isinstance(token, Version):
            raise Conflict(f"{token!r} is no token of this backend")
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
