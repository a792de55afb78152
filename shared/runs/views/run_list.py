"""Runs as lists have them, page by page: all that there is of each but its request."""

from __future__ import annotations

from collections.abc import Iterator

from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter
from shared.system import System

PAGE = 1000  # runs in one request


def matching(system: System, wanted: RunFilter) -> Iterator[Run]:
    """The runs that the filter finds, newest first."""
    token = ""
    while True:
        page = system.runs.page(wanted, PAGE, token)
        yield from page.runs
        if not (token := page.token):
            return


def in_state(system: System, state: RunState) -> Iterator[Run]:
    """The runs in this state, newest first."""
    return matching(system, RunFilter(state=state))


def newest_first(system: System) -> Iterator[Run]:
    """All runs."""
    before: Run | None = None
    while page := system.runs.newest(PAGE, before):
        yield from page
        before = page[-1]
