"""A rendezvous handler over an Azure table: `torchrun --rdzv-backend azure-table`.

The protocol is Trainyard's own (protocol.py), because nodes come and go at any moment and the table may be unreachable
for a while. To torchrun, the handler is PyTorch's RendezvousHandler. docs/adr/0014-own-rendezvous-protocol.md lists the
differences from PyTorch's dynamic rendezvous, with the reasons.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
import time
import weakref
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

from torch.distributed.elastic.rendezvous.api import (
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)

from .backend import AzureTableRendezvousBackend
from .client import Table, connect
from .errors import TableError
from .member import Member
from .protocol import Limits, Times
from .round_store import RoundStore
from .store import AzureTableStore

NAME = "azure-table"

# The settings of --rdzv-conf: seconds, except keep_alive_max_attempt and table. A first round begins last_call_timeout
# after the minimum of --nnodes has arrived, or as soon as the maximum has arrived.
SECONDS = {
    "join_timeout": 600,
    "last_call_timeout": 5,
    "close_timeout": 30,
    "heartbeat_timeout": 5,
    "keep_alive_interval": 3,
    "read_timeout": 120,
    "expire_after": 7 * 24 * 3600,
    "lease_timeout": 300,
}
CHOICES = [*SECONDS, "keep_alive_max_attempt", "table"]
FROM_TORCHRUN = {"timeout", "rank"}  # in every configuration; other backends use them
# Settings of PyTorch's own backends, which PyTorch's tests pass to every backend. They have no effect here.
OF_OTHERS = {"is_host", "store_type", "use_libuv", "protocol", "cert", "key", "cacert", "etcd_prefix", "ssl_cert_key"}
QUOTES = "\"'"

# Seconds for which the first node of a run tries to delete the rows of old runs.
CLEAN_UP = 60.0

logger = logging.getLogger(__name__)


class AzureTableRendezvous(RendezvousHandler):
    """PyTorch's interface of a rendezvous handler; created by `create`."""

    def __init__(self, run_id: str, limits: Limits, times: Times, table: Table, address: str) -> None:
        self._run_id, self.limits, self.times = run_id, limits, times
        self.table = table
        self._backend = AzureTableRendezvousBackend(table, run_id, times.read)
        self._address = address
        self._made: Member | None = None
        self.workers = 1
        self.program = self.arguments = ""  # the workers' program, if known
        self.worked = False
        self._joined = self._gone = False
        me = weakref.ref(self)
        atexit.register(_leave, me)

    @property
    def member(self) -> Member:
        """Return this node's part in the run. The first call gives the node a bell and a name."""
        if not self._made:
            self._made = Member(self._backend, self.limits, self.times, self._address, self.workers)
            self._made.me = replace(self._made.me, program=self.program, arguments=self.arguments)
        return self._made

    def get_backend(self) -> str:
        return NAME

    @property
    def use_agent_store(self) -> bool:
        return os.getenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def next_rendezvous(self) -> RendezvousInfo:
        """Join a round. Raises RendezvousClosedError, RendezvousTimeoutError or RendezvousConnectionError."""
        self._joined = False
        joined = self.member.join()
        if joined.rank == 0 and not self.worked:
            threading.Thread(target=_clean_up, args=(self.table,), daemon=True).start()
        self._joined = self.worked = True
        made = joined.round
        store = RoundStore(
            AzureTableStore(self.table, self._run_id), f"torch.rendezvous.{made.number}", self.member.why_meet_again
        )
        info = RendezvousStoreInfo(made.address, made.port)
        return RendezvousInfo(store, joined.rank, len(made.team), info)

    def num_nodes_waiting(self) -> int:
        """Return the number of nodes that wait for the next round or have vanished from this round. If the number is
        not 0, the agent restarts its workers.

        The answer comes from the last read of the table, so the call costs no request and never blocks. The answer is 0
        once the run is closed, because the work of the others is done and this node's workers end soon.
        """
        return len(self.member.why_meet_again())

    def is_closed(self) -> bool:
        return bool(self.member.refresh().round.closed)

    def set_closed(self) -> None:
        self.member.close("closed")

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        """Close the run if this node works in the run; otherwise leave the run to the others."""
        if not self._joined:
            self.leave()
            return True
        self._joined, self._gone = False, True
        try:
            self.member.close("done, or failed on a node that worked in it")
        except RendezvousError as error:
            logger.warning("run %s could not be closed: %s", self._run_id, error)
            return False
        return True

    def leave(self) -> None:
        """Remove this node, so that the others do not wait for its silence. If the table is unreachable, the others
        have to wait."""
        if self._made and not self._gone:
            self._joined, self._gone = False, True
            self._made.leave()


def _leave(handler: weakref.ref[AzureTableRendezvous]) -> None:
    if living := handler():
        living.leave()


def _clean_up(table: Table) -> None:
    """Delete the rows of old runs. If the table does not respond in time, the next run deletes them."""
    try:
        table.remove_expired(time.monotonic() + CLEAN_UP)
    except TableError as error:
        logger.warning("rows of expired runs stay for now: %s", error)


def create(params: RendezvousParameters) -> AzureTableRendezvous:
    """Create the handler of `--rdzv-backend azure-table`. Raises ValueError for invalid settings.

    `params.endpoint` is an endpoint for client.connect. Without a local address, the node uses the address from which
    it reaches the table.
    """
    if params.run_id in ("", "none"):  # torchrun's default
        raise ValueError(
            "--rdzv-id is missing: a name that the members of this run have in common and no other run has"
        )
    numbers = _settings(params)
    table = connect(params.endpoint, os.environ, params.get("table", "rendezvous"))
    table.lifetime = timedelta(seconds=numbers["expire_after"])
    times = Times(
        join=numbers["join_timeout"],
        last_call=numbers["last_call_timeout"],
        close=numbers["close_timeout"],
        heartbeat=numbers["heartbeat_timeout"],
        interval=numbers["keep_alive_interval"],
        attempts=numbers["keep_alive_max_attempt"],
        read=numbers["read_timeout"],
        lease=numbers["lease_timeout"],
    )
    address = params.local_addr or _own_address(table.url) or socket.getfqdn()
    return AzureTableRendezvous(params.run_id, Limits(params.min_nodes, params.max_nodes), times, table, address)


def _settings(params: RendezvousParameters) -> dict[str, int]:
    """Return the settings by name. Raises ValueError for an unknown name or an invalid number."""
    for name in sorted(params.config.keys() & OF_OTHERS):
        logger.warning("--rdzv-conf %s is for other backends; it changes nothing here", name)
    if unknown := params.config.keys() - set(CHOICES) - FROM_TORCHRUN - OF_OTHERS:
        raise ValueError(f"--rdzv-conf {min(unknown)} is unknown; choose from {', '.join(CHOICES)}")
    numbers = {**SECONDS, "keep_alive_max_attempt": 2}
    for name, default in numbers.items():
        numbers[name] = _number(name, params.get(name, default))
    return numbers


def _number(name: str, value: object) -> int:
    """Return a setting's number, which may be in quotation marks. Raises ValueError."""
    text = str(value).strip()
    if text and text[0] in QUOTES and text[-1] == text[0]:
        text = text[1:-1]
        logger.warning("--rdzv-conf %s is in quotation marks; it is taken as %s", name, text)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--rdzv-conf {name} must be a whole number above 0, not {value!r}")
    return int(text)


def _own_address(url: str) -> str | None:
    """Return the address of this machine on the way to the table, or None; the caller then uses the machine's name."""
    host = urlsplit(url).hostname or ""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # UDP: no packet is sent
            return str(probe.getsockname()[0])
    except OSError:
        return None
