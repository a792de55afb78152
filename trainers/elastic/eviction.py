"""Polls for Azure's announcement of a Spot eviction once a second, and calls back if this node will be evicted.

Azure announces an eviction half a minute ahead in Scheduled Events, but promises no SIGTERM
(https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events). Which processes poll, and where:

    NODE_METADATA_ENDPOINT=ADDRESS  at this address, wherever the process runs
    NODE_METADATA_ENDPOINT=off      no process polls
    not set                         at 169.254.169.254, on Azure ML's low-priority nodes, whose ids end with _p

A thread polls with short timeouts, and gives up if nothing has answered for minutes. No other thread ever waits for it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

ENDPOINT = "NODE_METADATA_ENDPOINT"
AZURE = "http://169.254.169.254"  # not routed: only this machine's own host answers
API_VERSION, NAME_API_VERSION = "2020-07-01", "2021-02-01"
PAUSE_SECONDS, ANSWER_SECONDS = 1.0, 2.0
# The first request activates the service for a machine, which may take two minutes.
TRIES_BEFORE_AN_ANSWER = 180
MOST_BYTES = 1_000_000


def endpoint(environ: Mapping[str, str]) -> str | None:
    """Return the address to poll, or None if polling is off."""
    address = environ.get(ENDPOINT, "").rstrip("/")
    if address:
        return address if address.startswith(("http://", "https://")) else None
    return AZURE if environ.get("AZ_BATCH_NODE_ID", "").endswith("_p") else None


class EvictionWatch:
    """Polls in a thread until the announcement of this node's eviction, then calls `announced` once, in the thread."""

    def __init__(self, address: str, announced: Callable[[], None]) -> None:
        self.seen = threading.Event()
        self._address, self._announced = address, announced
        self._stop = threading.Event()
        self._name: str | None = None
        self._incarnation: object = None
        threading.Thread(target=self._ask, name="eviction", daemon=True).start()

    def stop(self) -> None:
        """Stop polling. A call of `announced` may still be in progress."""
        self._stop.set()

    def _ask(self) -> None:
        failures: int | None = 0  # in a row; None once something has answered
        while not self._stop.is_set():
            try:
                named = self._is_named()
                failures = None
            except (OSError, ValueError, TypeError, KeyError, AttributeError):  # unreachable, or another document
                named = False
                failures = None if failures is None else failures + 1
            if named and not self._stop.is_set():
                self.seen.set()
                self._announced()
                return
            if failures == TRIES_BEFORE_AN_ANSWER:
                return
            self._stop.wait(PAUSE_SECONDS)

    def _is_named(self) -> bool:
        """Return whether the document names this node. A document with a known incarnation is not read again."""
        document = json.loads(self._get("metadata/scheduledevents", API_VERSION))
        if document["DocumentIncarnation"] == self._incarnation:
            return False
        lost = [event.get("Resources") or [] for event in document["Events"] if event["EventType"] == "Preempt"]
        named = any(self._is_meant(names) for names in lost)
        self._incarnation = document["DocumentIncarnation"]
        return named

    def _is_meant(self, names: list[Any]) -> bool:
        """Return whether this node is among the named ones, because every machine of a scale set sees the events of
        all machines."""
        if self._name is None:
            path = "metadata/instance/compute/name"
            self._name = self._get(path, f"{NAME_API_VERSION}&format=text").strip().lower()
        return self._name in [str(name).lower() for name in names]

    def _get(self, path: str, version: str) -> str:
        from urllib.request import ProxyHandler, Request, build_opener  # imported only if polling is on

        opener = build_opener(ProxyHandler({}))  # a proxy is another machine, with other events
        url = f"{self._address}/{path}?api-version={version}"
        request = Request(url, headers={"Metadata": "true"})  # noqa: S310 (HTTP, as `endpoint` sees to)
        with opener.open(request, timeout=ANSWER_SECONDS) as answer:
            return str(answer.read(MOST_BYTES).decode())


def watch(environ: Mapping[str, str], announced: Callable[[], None]) -> EvictionWatch | None:
    """Start to poll, unless polling is off."""
    address = endpoint(environ)
    return EvictionWatch(address, announced) if address else None
