"""The rendezvous state as one node sees it: read and written through a backend, without the nodes that fell silent."""

from __future__ import annotations

import io
import pickle
import time
from copy import copy
from datetime import datetime

from torch.distributed.elastic.rendezvous.api import RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousSettings,
    _NodeDesc,
    _remove_participant_epilogue,
    _RendezvousState,
    _RendezvousStateHolder,
)

from .backend import AzureTableRendezvousBackend

# A state is read once for the operations that follow each other within this time, in seconds.
FRESH = 0.5
# So many times longer may a node be silent while our own workers are at work. If it is dead they fail, and this node
# joins again; if it is only slow, because all cores of its machine are busy, meeting again would make it slower.
AT_WORK = 3


class SharedState(_RendezvousStateHolder):
    """The rendezvous state as this node last read or wrote it, without the nodes that fell silent.

    `sync` raises RendezvousConnectionError if the table cannot be reached and RendezvousStateError if what is
    there cannot be read.
    """

    def __init__(self, backend: AzureTableRendezvousBackend, settings: RendezvousSettings, me: _NodeDesc) -> None:
        self._backend = backend
        self._settings = settings
        self._me = me
        self._interval = settings.keep_alive_interval.total_seconds()
        self._state = _RendezvousState()
        self._token: object = None
        self._written: dict[str, object] = {}  # the members as the table has them, the dead still among them
        self._dirty = False
        self._read_at = -FRESH
        self.at_work = False
        self._heard: dict[_NodeDesc, tuple[datetime, float]] = {}  # the last heartbeat, and the silence since

    @property
    def state(self) -> _RendezvousState:
        return self._state

    def mark_dirty(self) -> None:
        self._dirty = True

    def sync(self) -> bool | None:
        """Write what changed, or read what is not fresh; say whether the write was ours, or None."""
        has_set: bool | None = None
        if self._dirty:
            has_set = self._write()
        elif time.monotonic() - self._read_at < FRESH:
            return None
        if not has_set:
            self._read()
        self._dirty = False
        return has_set

    def _write(self) -> bool:
        """Write the state if its members changed, else only the heartbeat of this node, which has a row of its own."""
        state = self._state
        if _members(state) == self._written:
            self._backend.beat(repr(self._me), state.last_heartbeats[self._me])
            return True
        version = self._backend.replace(pickle.dumps(state), self._token)
        if version:
            self._token, self._written = version, _members(state)
        return version is not None

    def _read(self) -> None:
        found, beats = self._backend.look()
        state = _unpickled(found[0]) if found else _RendezvousState()
        self._token, self._written = found[1] if found else None, _members(state)
        for node, joined in state.last_heartbeats.items():
            state.last_heartbeats[node] = max(joined, beats.get(repr(node), joined))  # both by the node's own clock
        self._bury(state)
        self._state = state

    def _bury(self, state: _RendezvousState) -> None:
        """Take the nodes out of `state` whose heartbeat stood still for too long.

        Silence is the time that passed between our own successful reads, at most one interval each: neither a
        clock of another node nor an outage of the table, nor a pause of this process, counts against anyone.
        """
        now = time.monotonic()
        passed, self._read_at = min(now - self._read_at, self._interval), now
        before, self._heard = self._heard, {}
        for node, beat in state.last_heartbeats.items():
            last, silence = before.get(node, (None, 0.0))
            self._heard[node] = (beat, silence + passed if beat == last else 0.0)
        limit = self._interval * self._settings.keep_alive_max_attempt * (AT_WORK if self.at_work else 1)
        dead = {node for node, (_, silence) in self._heard.items() if silence >= limit} - {self._me}
        left = len(state.participants)
        for node in dead:
            del state.last_heartbeats[node]
            state.participants.pop(node, None)
        state.wait_list -= dead
        state.redundancy_list -= dead
        if len(state.participants) < left:
            _remove_participant_epilogue(state, self._settings)


def _members(state: _RendezvousState) -> dict[str, object]:
    """All of a state but the times of the heartbeats."""
    parts = {name: copy(part) for name, part in vars(state).items()}
    return {**parts, "last_heartbeats": set(state.last_heartbeats)}


class _Reader(pickle.Unpickler):
    """Knows what a rendezvous state consists of, and nothing else: who may write the table may not run code here."""

    KNOWN = frozenset(
        [
            (_RendezvousState.__module__, "_RendezvousState"),
            (_RendezvousState.__module__, "_NodeDesc"),
            *(("datetime", name) for name in ("datetime", "timedelta", "timezone")),
        ]
    )

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a rendezvous state")
        return super().find_class(module, name)


def _unpickled(bits: bytes) -> _RendezvousState:
    try:
        state = _Reader(io.BytesIO(bits)).load()
    except Exception as error:  # pickle raises almost anything for broken input
        raise RendezvousStateError(f"the rendezvous state cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(state, _RendezvousState):
        raise RendezvousStateError(f"the rendezvous state is a {type(state).__name__}")
    return state
