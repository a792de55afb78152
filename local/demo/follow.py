"""Follow a drop to its end: ask the app again and again, and put what it says on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from local.demo.api import Api
from local.demo.phases import FINAL
from local.demo.view import Screen

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 300.0  # without any change; a node of a busy laptop may think long about one epoch


class Stuck(RuntimeError):
    """The drop can't go on, or nothing moved for too long. The message says what was seen last."""


class Follower:
    """Asks about one drop (`route/name`). `poll` is called until it returns True."""

    def __init__(self, api: Api, screen: Screen, drop: str) -> None:
        self._api, self._screen, self._drop = api, screen, drop
        self._offset = 0

    def poll(self) -> bool:
        """Ask once. True when the run is archived and its cluster is at zero. Raises Stuck for a rejected drop."""
        seen = self._screen.seen
        if not seen.run:
            self._find_run()
        if seen.run:
            seen.run = self._api.get(f"runs/{seen.run['run']}") or seen.run
            self._read_log()
            self._look_at_cluster()
        return seen.at_zero is not None and bool(seen.run.get("archived_at"))

    def _find_run(self) -> None:
        seen = self._screen.seen
        seen.drop = self._api.get(f"drops/{quote(self._drop)}") or {}
        if seen.drop.get("state") == "rejected":
            raise Stuck(f"The drop was rejected: {seen.drop['why']}")
        if name := seen.drop.get("run"):
            seen.run = self._api.get(f"runs/{name}") or {}

    def _read_log(self) -> None:
        text, self._offset = self._api.log(self._screen.seen.run["run"], 0, self._offset)
        self._screen.log.add(text)

    def _look_at_cluster(self) -> None:
        seen = self._screen.seen
        clusters: list[dict[str, Any]] = self._api.get("clusters") or []
        seen.cluster = next((c for c in clusters if c["name"] == seen.run["cluster"]), {})
        if seen.run["state"] in FINAL and seen.cluster and seen.cluster["nodes"] == 0:
            seen.at_zero = seen.at_zero or datetime.now(UTC)


def follow(follower: Follower, screen: Screen, between: Callable[[], None]) -> None:
    """Poll to the end, calling `between` after each poll. Raises Stuck if nothing changes for PATIENCE_SECONDS."""
    last, since = "", time.monotonic()
    while not follower.poll():
        between()
        seen = screen.seen
        now = f"{seen.drop}{seen.run}{seen.cluster.get('nodes')}{screen.log.total}"
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE_SECONDS:
            raise Stuck(f"Nothing changed for {PATIENCE_SECONDS:.0f} s. {_last_seen(screen)}")
        time.sleep(POLL_SECONDS)


def _last_seen(screen: Screen) -> str:
    seen = screen.seen
    if seen.run:
        return f"Run {seen.run['run']} is {seen.run['state']}; {seen.cluster.get('nodes', '?')} nodes are there."
    return f"The drop is {seen.drop.get('state', 'not seen')}: {seen.drop.get('why', 'no event arrived')}"
