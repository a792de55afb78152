"""Ten thousand live runs, a thousand drops a minute, a million blobs, a million rows: the scale of one machine.

    python3 trainyard.py bench scale [--quick] [--json] [--only PART ...] [--azurite]

Everything runs in the local cloud's own parts, with Resource Manager's limits on the workspace (250 reads at once, 25 a
second). The last line is one JSON object with the figures; with --json nothing else goes to standard output.
`--azurite` sends the drops through Azurite's blobs, queues and tables instead of ours.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._options import options
from benchmarks.scaling import blobs, cold, drops, elastic, live_runs, rows

Found = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """The extent of every part; `drops` a minute, for this many `minutes`."""

    live_runs: int = 10_000
    hours: float = 4  # in which the runs were made
    drops: int = 1_000
    minutes: float = 10
    blobs: int = 1_000_000
    rows: int = 1_000_000
    members: int = 100
    starts: int = 5


FULL = Size()
QUICK = Size(live_runs=200, hours=0.1, drops=120, minutes=0.1, blobs=20_000, rows=20_000, members=5, starts=1)
PARTS: dict[str, Callable[[Path, Size, bool], Found]] = {
    "live_runs": lambda home, size, _: live_runs.measure(home, size.live_runs, size.hours),
    "drops": lambda home, size, azurite: drops.measure(home, size.drops, size.minutes, azurite),
    "blobs": lambda home, size, _: blobs.measure(home, size.blobs),
    "rows": lambda home, size, _: rows.measure(home, size.rows),
    "elastic": lambda home, size, _: elastic.measure(home, size.members),
    "cold": lambda home, size, _: cold.measure(home, size.starts),
}


def figures(found: dict[str, Found]) -> Found:
    """Return the figures for comparing versions; null for a part that was not measured."""

    def of(part: str, key: str) -> Any:
        return found.get(part, {}).get(key)

    newest = found.get("rows", {}).get("asked", {}).get("newest", {})
    return {
        "live_runs": of("live_runs", "live_runs"),
        "round_seconds": of("live_runs", "round_seconds"),
        "arm_reads": of("live_runs", "arm_reads"),
        "peak_rss_mib": of("live_runs", "peak_rss_mib"),
        "event_p95_seconds": of("live_runs", "event_p95_seconds"),
        "drops_per_minute": of("drops", "drops_per_minute"),
        "accepted_p95_seconds": of("drops", "accepted_p95_seconds"),
        "million_blobs_seconds": of("blobs", "seconds"),
        "million_blobs_extra_mib": of("blobs", "extra_mib"),
        "million_rows_p95_ms": newest.get("p95_ms"),
        "first_job_seconds": of("cold", "first_job_seconds"),
    }


def measure(size: Size, parts: list[str], azurite: bool, say: Callable[[str], object]) -> dict[str, Found]:
    found = {}
    for part in parts:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as home:
            found[part] = PARTS[part](Path(home), size, azurite)
        say(f"{part}, {time.monotonic() - began:.0f} s")
        for key, value in found[part].items():
            say(f"  {key:26} {json.dumps(value)}")
    return found


def main(argv: list[str]) -> None:
    parser = options(__doc__, "a fiftieth of it")
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--azurite", action="store_true", help="drops over Azurite instead of our storage")
    asked = parser.parse_args(argv)
    found = measure(
        QUICK if asked.quick else FULL,
        asked.only,
        asked.azurite,
        lambda line: print(line, file=sys.stderr if asked.json else sys.stdout, flush=True),
    )
    print(json.dumps(figures(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
