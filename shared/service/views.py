"""What a person looks at: drops, runs and logs, as the JSON that the HTTP API answers with."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from shared import rows
from shared.errors import BadInput, NotFound
from shared.model import DropKey
from shared.system import System

PAGE = 1000
LOG_CHUNK = 1 << 20  # bytes


def drop(system: System, route: str, name: str) -> dict[str, Any]:
    """One drop. Raises NotFound, saying which routes there are."""
    stored = system.drops.get(DropKey(route, name))
    if stored is None:
        known = ", ".join(sorted(system.routes))
        raise NotFound(f"No upload to drops/{route}/{name} was seen. Routes: {known}.")
    return rows.drop(stored.value)


def drops(system: System, route: str | None) -> list[dict[str, Any]]:
    """The first thousand drops by name."""
    return [rows.drop(d) for d in itertools.islice(system.drops.listed(route), PAGE)]


def run(system: System, name: str) -> dict[str, Any]:
    return rows.run(system.runs.get(name).value)


def runs(system: System, limit: str) -> list[dict[str, Any]]:
    """The newest runs. `limit` is text from a query."""
    return [rows.run(r) for r in system.runs.newest(_number("limit", limit, 1, PAGE))]


@dataclass(frozen=True)
class LogChunk:
    data: bytes
    next_offset: int


def log(system: System, name: str, rank: str, offset: str) -> LogChunk:
    """Up to 1 MiB of a rank's log from a byte offset on. Empty if there is nothing yet."""
    system.runs.get(name)
    start, file = _number("offset", offset, 0, 1 << 50), f"std_log_process_{_number('rank', rank, 0, 100_000)}.txt"
    place = system.jobs.logs(name)
    data = system.blobs.read_from(place.container, f"{place.prefix}user_logs/{file}", start, LOG_CHUNK)
    return LogChunk(data, start + len(data))


def _number(name: str, value: str, low: int, high: int) -> int:
    if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
        raise BadInput(f"{name} is {value[:40]!r}; it must be a whole number from {low} to {high}.")
    return int(value)
