"""Following a drop in the demo, with the reports of the command line's own follow."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from cli.api.api_outage import OutageListener
from cli.api.client import Api
from cli.api.follow import POLL_SECONDS, LogReader, follow_run, wait_for_drop
from cli.api.phases import FINAL
from cli.errors import CliError, Unreachable
from local.demo.view import Screen

UNFINISHED = ("running", "queued", "submitted", "received")
PATIENCE_SECONDS = 300.0  # without any change; on a busy laptop, one epoch may take long


class Stuck(RuntimeError):
    """Nothing changed for too long. The message names the last known state."""


class Follower:
    """Receives the changes of one drop, and reads the state of the drop's cluster. Calls `between` each time, and
    raises Stuck.
    """

    def __init__(self, api: Api, screen: Screen, between: Callable[[], None]) -> None:
        self._api, self._screen, self._between = api, screen, between
        self._last, self._since = "", time.monotonic()

    def drop(self, drop: dict[str, Any]) -> None:
        self._screen.seen.drop = drop
        self._continue()

    def run(self, run: dict[str, Any]) -> None:
        seen = self._screen.seen
        seen.run = run
        try:
            clusters: list[dict[str, Any]] = self._api.get("clusters")
        except CliError:
            clusters = []  # a picture without nodes; following the run reports the problem
        seen.cluster = next((c for c in clusters if c["name"] == run["cluster"]), seen.cluster)
        if run["state"] in FINAL and seen.cluster.get("nodes") == 0:
            seen.at_zero = seen.at_zero or datetime.now(UTC)
        self._continue()

    def log(self, text: str) -> None:
        self._screen.log.add(text)

    @property
    def outage(self) -> OutageListener:
        return self

    def failed(self, exc: Unreachable) -> None:  # noqa: ARG002  # the part is being started again
        self._continue()

    def recovered(self) -> None:
        """Note the end of a request's failures."""

    def _continue(self) -> None:
        self._between()
        seen = self._screen.seen
        now = f"{seen.drop}{seen.run}{seen.cluster.get('nodes')}{self._screen.log.total}"
        if now != self._last:
            self._last, self._since = now, time.monotonic()
        elif time.monotonic() - self._since > PATIENCE_SECONDS:
            raise Stuck(f"Nothing changed for {PATIENCE_SECONDS:.0f} s. {_last_seen(self._screen)}")


def follow(api: Api, screen: Screen, drop: str, between: Callable[[], None]) -> None:
    """Follow a new drop (`route/name`) until the run is archived, and the cluster at zero or kept up by somebody else.

    Raises Stuck if nothing changes for PATIENCE_SECONDS, CliError for a drop that is rejected.
    """
    follower = Follower(api, screen, between)
    run = wait_for_drop(api, drop, {}, follower)["run"]
    follow_run(api, run, LogReader(api, run), follower)
    while screen.seen.at_zero is None:
        if kept := users(api, screen.seen.run["cluster"]):
            screen.seen.kept_for = kept[0]
            return
        time.sleep(POLL_SECONDS)
        follower.run(screen.seen.run)


def users(api: Api, cluster: str = "") -> list[str]:
    """Return the users of a cluster, or of any cluster: an unfinished run of each state, and the leases."""
    found = [api.get("runs", cluster=cluster, state=state, limit=1)["runs"] for state in UNFINISHED]
    leases = [f"lease {lease['lease']}" for lease in api.get("leases") if cluster in ("", lease["cluster"])]
    return [f"run {run['run']}" for runs in found for run in runs] + leases


def _last_seen(screen: Screen) -> str:
    seen = screen.seen
    if seen.run:
        return f"Run {seen.run['run']} is {seen.run['state']}; {seen.cluster.get('nodes', '?')} nodes are there."
    return f"The drop is {seen.drop.get('state', 'not seen')}: {seen.drop.get('why', 'no event arrived')}"
