"""Lists of runs in pages, with every field of each run except the request, or with the caller's fields."""

from __future__ import annotations

from collections.abc import Iterator

from shared.runs.model import Run, RunState
from shared.runs.ports import RunFields, RunFilter, Runs

PAGE = 1000  # runs per request


def matching(runs: Runs, run_filter: RunFilter, fields: RunFields = RunFields.ALL) -> Iterator[Run]:
    """The matching runs, newest first."""
    token = ""
    while True:
        page = runs.page(run_filter, PAGE, token, fields=fields)
        yield from page.runs
        if not (token := page.token):
            return


def in_state(runs: Runs, state: RunState, fields: RunFields = RunFields.ALL) -> Iterator[Run]:
    """The runs in this state, newest first."""
    return matching(runs, RunFilter(state=state), fields)


def newest_first(runs: Runs) -> Iterator[Run]:
    """All runs, newest first."""
    before: Run | None = None
    while page := runs.newest(PAGE, before):
        yield from page
        before = page[-1]
