"""The phases of a run, their durations so far and their usual durations, computed from histories without a clock or
I/O.

The time of a phase is the sum of the times in its states. A preempted run returns to the queue, so the time in
`allocating nodes` grows and does not start again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Any

SUBMIT, ALLOCATE, TRAIN, ARCHIVE = "submitting", "allocating nodes", "training", "archiving"
PHASES = (SUBMIT, ALLOCATE, TRAIN, ARCHIVE)
PHASE_OF = {"received": SUBMIT, "submitted": ALLOCATE, "queued": ALLOCATE, "running": TRAIN}
FINAL = ("completed", "failed", "canceled")
# Used without earlier runs. Azure ML allocates a node from zero in 3 to 5 minutes; the other phases are our own work.
DEFAULTS = {SUBMIT: "usually a few seconds", ALLOCATE: "usually 3 to 5 min in Azure", ARCHIVE: "usually a few seconds"}


def phase(run: dict[str, Any]) -> str | None:
    """Return the current phase of the run, or None once the run is archived."""
    if run.get("archived_at"):
        return None
    return PHASE_OF.get(run["state"], ARCHIVE)


def spent(run: dict[str, Any], now: datetime) -> dict[str, float]:
    """Return the seconds in each phase that the run has entered; the current phase counts up to `now`."""
    archived = run.get("archived_at")
    moments = [(m["state"], datetime.fromisoformat(m["at"])) for m in run.get("history") or []]
    if not moments or moments[0][0] != "received":
        moments.insert(0, ("received", datetime.fromisoformat(run["created_at"])))
    end = datetime.fromisoformat(archived) if archived else now
    seconds: dict[str, float] = {}
    for (state, begin), (_, until) in pairwise([*moments, ("", max(end, moments[-1][1]))]):
        key = PHASE_OF.get(state, ARCHIVE)
        seconds[key] = seconds.get(key, 0.0) + (until - begin).total_seconds()
    return seconds


def usual(run: dict[str, Any], earlier: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the usual duration of each phase, in words, from completed runs of the same experiment, cluster and number
    of nodes.

    Four or more runs give the middle half of their times ("usually 3 to 5 min"), fewer runs their median ("usually 42
    s"), and no runs a default. Training has no default.
    """
    alike = [other for other in earlier if _alike(run, other)]
    words = dict(DEFAULTS)
    for key in PHASES:
        times = [times[key] for other in alike if key in (times := spent(other, datetime.max))]
        if times:
            words[key] = f"usually {_range(times)}"
    return words


def _alike(run: dict[str, Any], other: dict[str, Any]) -> bool:
    same = all(other.get(key) == run.get(key) for key in ("experiment", "cluster", "nodes"))
    return same and other["run"] != run["run"] and other["state"] == "completed" and bool(other.get("archived_at"))


def _range(times: list[float]) -> str:
    if len(times) < 4:
        return _roughly(statistics.median(times))
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    low_words, high_words = _roughly(low), _roughly(high)
    if low_words == high_words:
        return low_words
    number, unit = low_words.split(" ", 1)
    return f"{number if high_words.endswith(f' {unit}') else low_words} to {high_words}"


def _roughly(seconds: float) -> str:
    """Format a usual duration in one unit: '0.4 s', '42 s', '3 min', '2.5 h'."""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    if seconds < 89.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h".replace(".0 h", " h")


def duration(seconds: float) -> str:
    """Format a duration: '0.4 s', '42 s', '3 min 5 s', '2 h 30 min', '3 d 4 h'; '–' for a negative one.

    page/format.js writes the same. The smaller unit is left out if it is zero.
    """
    if not 0 <= seconds < math.inf:
        return "–"
    whole, minutes, hours = (math.floor(seconds / unit + 0.5) for unit in (1, 60, 3600))
    if (tenths := math.floor(seconds * 10 + 0.5) / 10) < 10:
        return f"{tenths:g} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _in_two(*divmod(whole, 60), "min", "s")
    return _in_two(*divmod(minutes, 60), "h", "min") if minutes < 48 * 60 else _in_two(*divmod(hours, 24), "d", "h")


def _in_two(large: int, small: int, unit: str, smaller_unit: str) -> str:
    return f"{large} {unit} {small} {smaller_unit}" if small else f"{large} {unit}"


def clock(seconds: float) -> str:
    """Format seconds as a clock does: '0:42', '1:02:03'."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
