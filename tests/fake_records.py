"""Drops, runs, sweeps and assets in memory."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.clusters.model import Decision
from shared.drops.model import Drop, DropKey, DropState
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.kernel.stored import Stored
from shared.runs.model import Run
from shared.runs.ports import RunFilter, RunPage


class Etags:
    """A new etag at every write, as the services give."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"0x{next(self._numbers):X}"


_UNFINISHED = (DropState.OPEN, DropState.SEALING)


class FakeDrops:
    def __init__(self) -> None:
        self.rows: dict[DropKey, Stored[Drop]] = {}
        self._etags = Etags()

    def get(self, key: DropKey) -> Stored[Drop] | None:
        return self.rows.get(key)

    def insert(self, drop: Drop) -> Stored[Drop]:
        if drop.key in self.rows:
            raise Changed(f"drop {drop.key} is there already")
        return self._put(drop)

    def replace(self, drop: Drop, etag: str) -> Stored[Drop]:
        row = self.rows.get(drop.key)
        if row is None or row.etag != etag:
            raise Changed(f"drop {drop.key} changed in between")
        return self._put(drop)

    def delete(self, key: DropKey, etag: str) -> None:
        row = self.rows.get(key)
        if row is not None and row.etag != etag:
            raise Changed(f"drop {key} changed in between")
        self.rows.pop(key, None)

    def open(self) -> Iterator[Drop]:
        yield from [row.value for row in self.rows.values() if row.value.state in _UNFINISHED]

    def unsealed(self) -> Iterator[Drop]:
        yield from [row.value for row in self.rows.values() if row.value.state is not DropState.SEALED]

    def codes(self, route: str) -> dict[str, str]:
        return {key.name: row.value.code for key, row in self.rows.items() if key.route == route}

    def listed(self, route: str | None = None) -> Iterator[Drop]:
        yield from [self.rows[key].value for key in sorted(self.rows) if route in (None, key.route)]

    def _put(self, drop: Drop) -> Stored[Drop]:
        self.rows[drop.key] = Stored(drop, self._etags.next())
        return self.rows[drop.key]


class FakeRuns:
    """`half_insert` is the worst that the port allows: an insert that died between its writes."""

    SEEN = 20

    def __init__(self) -> None:
        self.names: dict[str, datetime] = {}
        self.rows: dict[str, Stored[Run]] = {}
        self.unsettled_names: set[str] = set()
        self._etags = Etags()

    def insert(self, run: Run) -> bool:
        new = self.half_insert(run)
        if run.name not in self.rows:
            self._put(replace(run, created_at=self.names[run.name]))
        return new

    def half_insert(self, run: Run) -> bool:
        """What a call leaves that dies before its last write."""
        if run.name in self.names:
            return False
        self.unsettled_names.add(run.name)
        self.names[run.name] = run.created_at
        return True

    def get(self, name: str) -> Stored[Run]:
        if name not in self.rows:
            raise NotFound(f"there is no run {name!r}")
        return self.rows[name]

    def update(self, run: Stored[Run], **changes: Any) -> Stored[Run]:
        row = self.rows.get(run.value.name)
        if row is None or row.etag != run.etag:
            raise Changed(f"run {run.value.name} changed in between")
        return self._put(replace(row.value, **changes))

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        runs = sorted((row.value for row in self.rows.values()), key=_age)
        return [run for run in runs if before is None or _age(run) > _age(before)][:limit]

    def page(self, wanted: RunFilter, limit: int, token: str = "") -> RunPage:
        """Looks at SEEN runs a page, so that a page may be empty and yet have a token, as the service's may."""
        after = (int(token.partition("_")[0]), token.partition("_")[2]) if "_" in token else None
        if token and after is None:
            raise Impossible(f"{token!r} is no token of a page", "bad_token")
        ahead = [r for r in self.newest(len(self.rows)) if after is None or _age(r) > after]
        if wanted.since:
            ahead = [r for r in ahead if r.created_at >= wanted.since]
        found: list[Run] = []
        for run in ahead[: self.SEEN]:
            if len(found) == limit:
                break
            last = run
            if all(want in ("", getattr(run, name)) for name, want in _equalities(wanted)):
                found.append(replace(run, request={}))
        more = bool(ahead) and last is not ahead[-1]
        return RunPage(found, f"{_age(last)[0]}_{last.name}" if more else "")

    def unsettled(self) -> Iterator[str]:
        yield from sorted(self.unsettled_names)

    def settle(self, name: str) -> None:
        self.unsettled_names.discard(name)

    def _put(self, run: Run) -> Stored[Run]:
        self.rows[run.name] = Stored(run, self._etags.next())
        return self.rows[run.name]


def _equalities(wanted: RunFilter) -> list[tuple[str, str]]:
    return [("experiment", wanted.experiment), ("state", wanted.state), ("cluster", wanted.cluster)]


def _age(run: Run) -> tuple[int, str]:
    return -((run.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)), run.name


class FakeSweepLog:
    def __init__(self) -> None:
        self._latest: dict[str, Decision] = {}
        self._history: dict[str, list[Decision]] = defaultdict(list)

    def record(self, decision: Decision) -> None:
        last = self._latest.get(decision.cluster)
        if last is None or (last.action, last.code) != (decision.action, decision.code):
            self._history[decision.cluster].insert(0, decision)
        self._latest[decision.cluster] = decision

    def latest(self, cluster: str) -> Decision | None:
        return self._latest.get(cluster)

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        return self._history[cluster][:limit]


class FakeAssets:
    """What shared/adapters/tables.py TableAssets is to the Azure ML adapter."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def get(self, kind: str, digest: str) -> str | None:
        return self._ids.get((kind, digest))

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        self._ids[(kind, digest)] = asset_id
