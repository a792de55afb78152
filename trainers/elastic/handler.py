"""PyTorch's dynamic rendezvous with its state in an Azure table: `torchrun --rdzv-backend azure-table`.

PyTorch brings the protocol (join, wait list, rounds, closing) and keeps it. Four things differ here, each because
nodes come and go at any moment, and because the table is a service that may be away for a while:

- A node is dead when its heartbeat stood still while we could read the table (state.py). Clocks are not compared,
  and an outage of the table kills nobody.
- A member that vanished makes the others meet again at once, whether or not their workers noticed.
- Every round has a TCPStore of its own, at the first node of that round.
- A node that fails to join leaves. Only one that has worked closes the rendezvous.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from datetime import timedelta
from urllib.parse import urlsplit

from torch.distributed import DistError
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandlerCreator,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousSettings,
    RendezvousTimeout,
    _Action,
    _RendezvousContext,
)

from .backend import AzureTableRendezvousBackend
from .client import Table, connect
from .errors import TableError
from .state import SharedState
from .store import AzureTableStore

NAME = "azure-table"

# What --rdzv-conf may set: seconds, but for keep_alive_max_attempt and table. A killed node is known to be dead after
# keep_alive_interval x keep_alive_max_attempt and a second or two. A round begins last_call_timeout after the minimum
# of --nnodes is there, or as soon as the maximum is.
SECONDS = {
    "join_timeout": 600,
    "last_call_timeout": 5,
    "close_timeout": 30,
    "heartbeat_timeout": 5,
    "keep_alive_interval": 3,
    "read_timeout": 120,
    "expire_after": 7 * 24 * 3600,
}
CHOICES = [*SECONDS, "keep_alive_max_attempt", "table"]
FROM_TORCHRUN = {"timeout", "rank"}  # in every configuration; other backends use them

# How long the first node of a round may take to say where the workers meet, and how long the agents that are done
# wait for the others, both in seconds. The second is PyTorch's own, which cannot reach a store behind a PrefixStore.
MEET = timedelta(seconds=30)
EXIT_BARRIER = timedelta(seconds=300)
# How long a node that leaves tries to say so, and the first of a run to clean up after others, in seconds.
LEAVE, CLEAN_UP = 5.0, 60.0

logger = logging.getLogger(__name__)


class AzureTableRendezvous(DynamicRendezvousHandler):
    """A rendezvous handler of PyTorch; `create` makes it."""

    def __init__(
        self,
        settings: RendezvousSettings,
        store: AzureTableStore,
        backend: AzureTableRendezvousBackend,
        local_addr: str | None,
    ) -> None:
        node = self._node_desc_generator.generate(local_addr)
        self._shared = SharedState(backend, settings, node)
        super().__init__(node, settings, NAME, store, self._shared)
        self._backend = backend
        self._team = frozenset([node])
        self.worked = False
        self._joined = False

    def next_rendezvous(self) -> RendezvousInfo:
        """Join a round. Raises RendezvousClosedError, RendezvousTimeoutError, RendezvousConnectionError."""
        self._joined = self._shared.at_work = False
        deadline = time.monotonic() + self.settings.timeout.join.total_seconds()
        self._store.set_timeout(MEET)
        while True:
            # PyTorch 2.13 keeps the address of the first round, and its TCPStore: a round whose first node died, or
            # in which workers restart, would meet at a dead host or find the keys of the workers before.
            self._bootstrap_store_info = self._shared_tcp_store_server = None
            try:
                info = super().next_rendezvous()
                break
            except RendezvousGracefulExitError as error:  # PyTorch's agent takes this for its own end, and breaks
                raise RendezvousClosedError(str(error)) from error
            except DistError as error:  # the first node of the round died before it said where, or the table is away
                if time.monotonic() > deadline:
                    raise RendezvousTimeoutError(f"no round of {self.get_run_id()} could begin: {error}") from error
        self._store.set_timeout(EXIT_BARRIER)
        if info.rank == 0 and not self.worked:
            threading.Thread(target=_clean_up, args=(self._store.table,), daemon=True).start()
        self._joined = self._shared.at_work = self.worked = True
        return info

    def _start_heartbeats(self) -> None:
        self._team = frozenset(self._shared.state.participants)
        super()._start_heartbeats()

    def num_nodes_waiting(self) -> int:
        """Say how many nodes wait for the next round or vanished from this one; the agent restarts its workers if any.

        Reads what the last heartbeat read, so it costs no request and never blocks. 0 once the run is closed: then
        the others are done, and so are our workers soon.
        """
        state = self._shared.state
        return 0 if state.closed else len(state.wait_list) + len(self._team - state.participants.keys())

    def shutdown(self) -> bool:
        """Close the run if this node works in it, else leave it to the others."""
        if not self._joined:
            self.leave()
            return True
        self._backend.patience = self.settings.timeout.close.total_seconds()
        return super().shutdown()

    def leave(self) -> None:
        """Take this node out, so that the others need not wait for its silence. They do if the table is away."""
        self._joined = False
        self._stop_heartbeats()
        self._backend.patience = LEAVE
        with contextlib.suppress(RendezvousError):
            self._op_executor.run(_leave, time.monotonic() + LEAVE)


def _clean_up(table: Table) -> None:
    """Delete what other runs left long ago. It can wait for the next run if the table has no time for it now."""
    try:
        table.remove_expired(time.monotonic() + CLEAN_UP)
    except TableError as error:
        logger.warning("rows of expired runs stay for now: %s", error)


def _leave(context: _RendezvousContext, deadline: float) -> _Action:
    state, node = context.state, context.node
    if time.monotonic() > deadline:
        return _Action.FINISH
    if node in state.participants:
        return _Action.REMOVE_FROM_PARTICIPANTS
    if node in state.wait_list:
        return _Action.REMOVE_FROM_WAIT_LIST
    return _Action.REMOVE_FROM_REDUNDANCY_LIST if node in state.redundancy_list else _Action.FINISH


def create(params: RendezvousParameters) -> AzureTableRendezvous:
    """Make the handler of `--rdzv-backend azure-table`. Raises ValueError for settings that make no sense.

    `params.endpoint` is what client.connect takes. Without a local address the node is known by the address from
    which it reaches the table.
    """
    if params.run_id in ("", "none"):  # torchrun's default
        raise ValueError(
            "--rdzv-id is missing: a name that the members of this run have in common and no other run has"
        )
    seconds, attempts = _settings(params)
    table = connect(params.endpoint, os.environ, params.get("table", "rendezvous"))
    table.lifetime = timedelta(seconds=seconds["expire_after"])
    backend = AzureTableRendezvousBackend(table, params.run_id, seconds["read_timeout"])
    settings = RendezvousSettings(
        params.run_id,
        params.min_nodes,
        params.max_nodes,
        RendezvousTimeout(
            *(timedelta(seconds=seconds[f"{name}_timeout"]) for name in ("join", "last_call", "close", "heartbeat"))
        ),
        keep_alive_interval=timedelta(seconds=seconds["keep_alive_interval"]),
        keep_alive_max_attempt=attempts,
    )
    local_addr = params.local_addr or _own_address(table.url)
    return AzureTableRendezvous(settings, AzureTableStore(table, params.run_id), backend, local_addr)


def plugin() -> RendezvousHandlerCreator:
    """What the entry point `torchrun.handlers` names."""
    return create


def _settings(params: RendezvousParameters) -> tuple[dict[str, int], int]:
    """The settings in seconds, and the number of attempts. Raises ValueError for an unknown name or a wrong number."""
    if unknown := params.config.keys() - set(CHOICES) - FROM_TORCHRUN:
        raise ValueError(f"--rdzv-conf {min(unknown)} is unknown; choose from {', '.join(CHOICES)}")
    numbers = {**SECONDS, "keep_alive_max_attempt": 2}
    for name, default in numbers.items():
        numbers[name] = params.get_as_int(name, default) or 0
        if numbers[name] < 1:
            raise ValueError(f"--rdzv-conf {name} must be a whole number above 0, not {params.get(name)!r}")
    return numbers, numbers["keep_alive_max_attempt"]


def _own_address(url: str) -> str | None:
    """The address of this machine on the way to the table, or None (PyTorch then asks for the machine's name)."""
    host = urlsplit(url).hostname or ""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # UDP: no packet is sent
            return str(probe.getsockname()[0])
    except OSError:
        return None
