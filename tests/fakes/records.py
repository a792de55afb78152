"""Drops, runs, decisions and assets in memory."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shared.clusters.lease_model import Lease
from shared.clusters.model import Decision
from shared.clusters.samples import Sample
from shared.drops.model import Drop, DropState, Generation, generation_of, ran_as_single_file
from shared.jobs.spec import JobSpec
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Changed, Impossible, NotFound
from shared.kernel.parts import difference, flat, from_columns
from shared.kernel.versioned import Stored
from shared.runs.features import parts
from shared.runs.model import LIVE, Run, RunState
from shared.runs.names import hour_of
from shared.runs.ports import RunChanges, RunFields, RunFilter, RunPage, read_columns
from tests.fakes.parts import changed


class Etags:
    """Gives a new etag at every write, like the services."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"0x{next(self._numbers):X}"


class FakeDrops:
    def __init__(self) -> None:
        self.rows: dict[DropKey, Stored[Drop]] = {}
        self.walks: dict[str, str] = {}
        self.kept: dict[tuple[DropKey, int], Generation] = {}
        self.loose_taken: set[DropKey] = set()
        self._taking = threading.Lock()
        self.closings: list[tuple[str, datetime, int]] = []  # route, time, and number of additional files
        self._etags = Etags()

    def get(self, key: DropKey) -> Stored[Drop] | None:
        return self.rows.get(key)

    def is_new(self, key: DropKey) -> bool:
        return key not in self.rows

    def insert(self, drop: Drop) -> Stored[Drop]:
        if drop.key in self.rows:
            raise Changed(f"drop {drop.key} is there already")
        return self._put(drop)

    def replace(self, drop: Drop, before: Stored[Drop]) -> Stored[Drop]:
        row = self.rows.get(drop.key)
        if row is None or row.etag != before.etag:
            raise Changed(f"drop {drop.key} changed in between")
        if drop.state is DropState.SEALING and row.value.state is not DropState.SEALING and drop.sealed_at:
            self.closings.append((drop.key.route, drop.sealed_at, drop.blobs - row.value.blobs))
        return self._put(drop)

    def delete(self, before: Stored[Drop]) -> None:
        row = self.rows.get(before.value.key)
        if row is not None and row.etag != before.etag:
            raise Changed(f"drop {before.value.key} changed in between")
        self.rows.pop(before.value.key, None)

    def generations(self, key: DropKey, limit: int = 1000) -> list[Generation]:
        found = [generation for (of, _), generation in self.kept.items() if of == key]
        return sorted(found, key=lambda generation: -generation.number)[:limit]

    def generation(self, key: DropKey, number: int) -> Generation | None:
        return self.kept.get((key, number))

    def forget(self, before: Stored[Drop]) -> None:
        self.delete(before)
        self.uncount_single_file(before.value.key)
        self.kept = {key: kept for key, kept in self.kept.items() if key[0] != before.value.key}

    def open(self) -> Iterator[Drop]:
        yield from [row.value for row in self.rows.values() if row.value.state in (DropState.OPEN, DropState.SEALING)]

    def rejected(self, limit: int) -> list[Drop]:
        return [drop for drop in self.listed() if drop.state is DropState.REJECTED][:limit]

    def codes(self, route: str, first: str, last: str) -> dict[str, str]:
        def within(name: str) -> bool:
            return first.encode() <= name.encode() <= last.encode()

        return {k.name: row.value.code for k, row in self.rows.items() if k.route == route and within(k.name)}

    def listed(self, route: str | None = None, after: DropKey | None = None, limit: int = 1000) -> list[Drop]:
        keys = [key for key in sorted(self.rows) if route in (None, key.route) and (after is None or key > after)]
        return [replace(self.rows[key].value, request=JobSpec()) for key in keys[:limit]]

    def added(self, route: str, since: datetime, until: datetime) -> int:
        return sum(files for of, at, files in self.closings if of == route and since <= at < until)

    def single_files(self, route: str, limit: int) -> int:
        made = {key for key, row in self.rows.items() if ran_as_single_file(row.value)} | self.loose_taken
        return min(limit, sum(key.route == route for key in made))

    def count_single_file(self, key: DropKey, limit: int) -> bool:
        with self._taking:
            row = self.rows.get(key)
            counted = key in self.loose_taken or (row is not None and ran_as_single_file(row.value))
            if not counted and self.single_files(key.route, limit) < limit:
                self.loose_taken.add(key)
                counted = True
        return counted

    def uncount_single_file(self, key: DropKey) -> None:
        self.loose_taken.discard(key)

    def cursors(self, walks: Iterable[str]) -> dict[str, str]:
        return {walk: self.walks.get(walk, "") for walk in walks}

    def move_cursor(self, walk: str, at: str) -> None:
        self.walks[walk] = at

    def _put(self, drop: Drop) -> Stored[Drop]:
        self.rows[drop.key] = Stored(drop, self._etags.next())
        if drop.state is DropState.SEALING:
            self.kept[(drop.key, drop.generation)] = generation_of(drop)
        return self.rows[drop.key]


class FakeRuns:
    """Runs in memory. `half_insert` is the worst that the port allows: an insert that died between its writes."""

    SEEN = 20

    def __init__(self) -> None:
        self.names: dict[str, datetime] = {}
        self.rows: dict[str, Stored[Run]] = {}
        self.hour_rows: dict[str, tuple[str, datetime | None]] = {}  # etag, and time of the check
        self._claims: dict[str, str] = {}
        self._etags = Etags()

    def insert(self, run: Run) -> bool:
        new = self.half_insert(run)
        if run.name not in self.rows:
            self._put(replace(run, created_at=self.names[run.name]))
        return new

    def half_insert(self, run: Run) -> bool:
        """Leave what a call leaves that dies before its last write."""
        if run.name in self.names:
            return False
        self.hour_rows[hour_of(run.created_at)] = (self._etags.next(), None)
        self.names[run.name] = run.created_at
        return True

    def get(self, name: str) -> Stored[Run]:
        if name not in self.rows:
            raise NotFound(f"there is no run {name!r}")
        return self.rows[name]

    def recent(self, name: str) -> Stored[Run]:
        return self.get(name)

    def update(self, run: Stored[Run], after: Run) -> Stored[Run]:
        row = self.rows.get(run.value.name)
        if row is None or row.etag != run.etag:
            raise Changed(f"run {run.value.name} changed in between")
        written = changed(row.value, **difference(run.value, after))
        return self._put(replace(written, features=after.features))

    def newest(self, limit: int = 100, before: Run | None = None) -> list[Run]:
        runs = sorted((row.value for row in self.rows.values()), key=_age)
        return [run for run in runs if before is None or _age(run) > _age(before)][:limit]

    def page(self, run_filter: RunFilter, limit: int, token: str = "", *, fields: RunFields = RunFields.ALL) -> RunPage:
        """Read SEEN runs per page, so that a page may be empty and still have a token, like the service's."""
        after = (int(token.partition("_")[0]), token.partition("_")[2]) if "_" in token else None
        if token and after is None:
            raise Impossible(f"{token!r} is not a token of a page", "bad_token")
        ahead = [r for r in self.newest(len(self.rows)) if after is None or _age(r) > after]
        if run_filter.since:
            ahead = [r for r in ahead if r.created_at >= run_filter.since]
        found: list[Run] = []
        for run in ahead[: self.SEEN]:
            if len(found) == limit:
                break
            last = run
            tagged = not run_filter.tag or run_filter.tag in [
                f"{name}={value}" for name, value in run.people.tags.items()
            ]
            tagged = tagged and run_filter.owner in ("", run.people.owner, run.people.owner_id)
            holds = run_filter.holds is None or run_filter.holds(run)
            if tagged and holds and all(want in ("", flat(run)[name]) for name, want in _equalities(run_filter)):
                found.append(_with_only(run, fields))
        more = bool(ahead) and last is not ahead[-1]
        mark = f"{self._written()}_{_age(found[-1])[0]}_{found[-1].name}" if found and fields.marked else ""
        return RunPage(found, f"{_age(last)[0]}_{last.name}" if more else "", len(ahead[: self.SEEN]), mark)

    def changed(self, run_filter: RunFilter, mark: str) -> RunChanges | None:
        try:
            since, age, name = mark.split("_", 2)
            oldest, seen = (int(age), name), int(since)
        except ValueError as exc:
            raise Impossible(f"{mark!r} is nothing that came with a page", "bad_token") from exc
        near = [r for r in self.newest(len(self.rows)) if _age(r) <= oldest and int(self.rows[r.name].etag, 16) > seen]
        fit = [r for r in near if all(want in ("", flat(r)[field]) for field, want in _equalities(run_filter))]
        return RunChanges(
            [changed(r, request=JobSpec()) for r in fit],
            [r.name for r in near if r not in fit],
            f"{self._written()}_{age}_{name}",
        )

    def _written(self) -> int:
        return max((int(row.etag, 16) for row in self.rows.values()), default=0)

    def beginning_with(self, prefix: str, limit: int) -> list[str]:
        return sorted(name for name in self.rows if name.startswith(prefix))[:limit]

    def live(self) -> list[tuple[str, str, RunState]]:
        runs = [row.value for row in self.rows.values() if row.value.progress.state in LIVE]
        return [(run.name, run.asked.cluster, run.progress.state) for run in runs]

    def hours(self) -> list[str]:
        return sorted(self.hour_rows)

    def claim_hour(self, hour: str, now: datetime, seconds: float) -> bool:
        if hour not in self.hour_rows:
            return False
        looked_at = self.hour_rows[hour][1]
        if looked_at is not None and looked_at > now - timedelta(seconds=seconds):
            return False
        self._claims[hour] = self._etags.next()
        self.hour_rows[hour] = (self._claims[hour], now)
        return True

    def drop_hour(self, hour: str) -> bool:
        if self.hour_rows.get(hour, ("", None))[0] != self._claims.pop(hour, None):
            return False
        del self.hour_rows[hour]
        return True

    def unsettled(self, hour: str, limit: int, before: Run | None = None) -> list[Stored[Run]]:
        runs = self.newest(len(self.rows), before)
        found = [run for run in runs if hour_of(run.created_at) == hour and run.archive.at is None]
        return [Stored(changed(run, request=JobSpec()), self.rows[run.name].etag) for run in found[:limit]]

    def _put(self, run: Run) -> Stored[Run]:
        self.rows[run.name] = Stored(run, self._etags.next())
        return self.rows[run.name]


def _equalities(run_filter: RunFilter) -> list[tuple[str, str]]:
    fields = ("experiment", "state", "cluster")
    return [(name, getattr(run_filter, name)) for name in fields]


def _with_only(run: Run, fields: RunFields) -> Run:
    """Return the run with these fields only, as a page has it."""
    values = {name: value for name, value in flat(run).items() if name in read_columns(fields)}
    kinds = {part.kind for part in parts() if part.cell or part.in_rows or fields is not RunFields.ROW}
    kept = {kind: value for kind, value in run.features.items() if kind in kinds and fields is not RunFields.ENTRY}
    return replace(from_columns(Run, values), features=kept)


def _age(run: Run) -> tuple[int, str]:
    return -((run.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)), run.name


class FakeDecisions:
    def __init__(self) -> None:
        self._latest: dict[str, Decision] = {}
        self._history: dict[str, list[Decision]] = defaultdict(list)
        self._looks: dict[str, datetime] = {}

    def record(self, decision: Decision, last: Decision | None) -> None:
        if last is None or (last.action, last.code) != (decision.action, decision.code):
            self._history[decision.cluster].insert(0, decision)
        self._latest[decision.cluster] = decision

    def latest(self, cluster: str) -> Decision | None:
        return self._latest.get(cluster)

    def claim_check(self, cluster: str, now: datetime, seconds: float) -> bool:
        if cluster in self._looks and self._looks[cluster] > now - timedelta(seconds=seconds):
            return False
        self._looks[cluster] = now
        return True

    def history(self, cluster: str, limit: int = 50) -> list[Decision]:
        return self._history[cluster][:limit]


class FakeSamples:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, datetime], Sample] = {}

    def record(self, sample: Sample) -> None:
        self.rows[sample.cluster, sample.at] = sample

    def clusters(self) -> list[str]:
        return sorted({cluster for cluster, _ in self.rows})

    def first_day(self, cluster: str) -> datetime | None:
        first = min((at for name, at in self.rows if name == cluster), default=None)
        return first and first.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def between(self, cluster: str, since: datetime, until: datetime) -> Iterator[Sample]:
        found = [sample for (name, at), sample in self.rows.items() if name == cluster and since <= at < until]
        yield from sorted(found, key=lambda sample: sample.at)


class FakeLeases:
    def __init__(self) -> None:
        self.rows: dict[str, Stored[Lease]] = {}
        self._open: set[str] = set()
        self._etags = Etags()

    def insert(self, lease: Lease) -> bool:
        if lease.id in self.rows:
            return False
        self._put(lease)
        return True

    def get(self, lease_id: str) -> Stored[Lease]:
        if lease_id not in self.rows:
            raise NotFound(f"There is no lease {lease_id!r}.")
        return self.rows[lease_id]

    def replace(self, lease: Lease, before: Stored[Lease]) -> Stored[Lease]:
        if self.rows[lease.id].etag != before.etag:
            raise Changed(f"lease {lease.id} changed in between")
        return self._put(lease)

    def open(self) -> list[Lease]:
        return [self.rows[name].value for name in sorted(self._open)]

    def close(self, lease_id: str) -> None:
        self._open.discard(lease_id)

    def made_between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        first, last = (at.replace(microsecond=0) for at in (since, until))
        leases = [row.value for _, row in sorted(self.rows.items())]
        yield from [lease for lease in leases if first <= lease.made_at.replace(microsecond=0) < last]

    def _put(self, lease: Lease) -> Stored[Lease]:
        self.rows[lease.id] = Stored(lease, self._etags.next())
        self._open.add(lease.id)
        return self.rows[lease.id]


class FakeAssets:
    """Replaces TableAssets of shared/adapters/tables/asset_table.py for the Azure ML adapter."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def get(self, kind: str, digest: str) -> str | None:
        return self._ids.get((kind, digest))

    def put(self, kind: str, digest: str, asset_id: str) -> None:
        self._ids[(kind, digest)] = asset_id
