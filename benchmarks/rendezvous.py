"""The cost of membership changes in an elastic run: joining, dying, outages, and the goodput of a whole trace.

    python3 trainyard.py bench rendezvous [--quick] [--only PART ...] [--torchft PYTHON] [--json] [--table FILE]

join      median seconds from the call of next_rendezvous in all nodes until it has returned in the last node, c10d and
          the table in turn, calm and beside four processes that compute; requests of each node
work      requests to the table for each node and second without a membership change; additions a second to one number
          by 8 threads; 100 nodes (threads of one process), for the number of requests
kill      kill -9 of the first node of the team and of the newest node, in turn, until an agent knows and until the last
          survivor made a step; torchft for comparison, with a Python that has torchft (--torchft); a SIGTERM
outage    a minute without the table (refused, then silent); stopped nodes, until an agent knows and until the last of
          the others made a step; a node that is stopped for a minute
partition networks that are cut while every node lives and reaches the table, four nodes: seconds without a team that
          makes steps, rounds, repeated steps, seconds until all nodes are back after the healing, and the longest pause
          then; c10d and torchft (--torchft) for comparison. Needs Linux and root
trouble   kills, sleeping nodes, a missing meeting point, all nodes killed: whether the training goes on, restarts,
          hangs or fails; three nodes, in place, with torchrun, with c10d, and torchft (--torchft)
goodput   examples/preemptions.json, or --trace FILE, faster by --speed: the share of wall time that ends in kept steps,
          compared with plain torchrun with c10d, which restarts from the newest checkpoint

The result is a table in Markdown. Without `trouble` the benchmark takes about 80 minutes on 2 cores. --timeline
FILE.png draws one kill and measures nothing; --synthetic SEED prints a trace.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._options import options
from benchmarks.elastic import goodput, joining, kills, outages, partitions, preemptions, troubles
from benchmarks.elastic.crowd import ROOT
from emulators.testing import azurite
from tests.elastic import hosts

Row = dict[str, Any]
TRACE = ROOT / "examples" / "preemptions.json"


@dataclass(frozen=True)
class Size:
    """The extent of every part. `trace` is in seconds of the trace."""

    join_nodes: tuple[int, ...] = (2, 4, 8, 16)
    rounds: int = 5
    hundred: bool = True
    kill_nodes: tuple[int, ...] = (2, 4, 8)
    kills: int = 20
    outage: float = 60
    stops: int = 10
    cut: float = 40
    trace: float = 7200


FULL = Size()
QUICK = Size((2,), 1, False, (2,), 2, 15, 3, 25, 1200)
QUICK_PARTS = ("join", "work", "kill")


@dataclass(frozen=True)
class Given:
    """The inputs of a part."""

    account: azurite.Azurite
    size: Size
    torchft: str
    trace: Path
    speed: float


def join(given: Given) -> Iterator[Row]:
    for count in given.size.join_nodes:
        yield {"nodes": count, **joining.joins(count, given.size.rounds, given.account.table_url)}


def work(given: Given) -> Iterator[Row]:
    url = given.account.table_url
    yield {"requests a second and node": joining.at_work(url, 4), **joining.adders(url)}
    if given.size.hundred:
        yield joining.hundred(url)


def kill(given: Given) -> Iterator[Row]:
    for count in given.size.kill_nodes:
        yield kills.measure(count, given.size.kills, given.account.table_url, given.torchft)


def outage(given: Given) -> Iterator[Row]:
    yield from outages.measure(given.account, 4, given.size.outage, given.size.stops)


def partition(given: Given) -> Iterator[Row]:
    if why := hosts.why_not():
        print(f"(no partition: {why})", file=sys.stderr, flush=True)
        return
    yield from partitions.measure(given.account, given.size.cut, given.torchft)


def trouble(given: Given) -> Iterator[Row]:
    yield from troubles.measure(given.account, given.torchft, given.size is QUICK)


def whole_trace(given: Given) -> Iterator[Row]:
    moments = preemptions.first_part(preemptions.read(given.trace), given.size.trace)
    yield from goodput.measure(given.account.table_url, moments, given.speed)


PARTS: dict[str, Callable[[Given], Iterator[Row]]] = {
    "join": join,
    "work": work,
    "kill": kill,
    "outage": outage,
    "partition": partition,
    "trouble": trouble,
    "goodput": whole_trace,
}


def markdown(found: dict[str, list[Row]]) -> str:
    """Return a Markdown table for each part and each kind of its rows."""
    parts = []
    for part, rows in found.items():
        for columns in dict.fromkeys(tuple(row) for row in rows):
            lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
            lines += [f"| {' | '.join(map(shown, row.values()))} |" for row in rows if tuple(row) == columns]
            parts.append(f"**{part}**\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def arguments() -> argparse.ArgumentParser:
    parser = options(__doc__, f"less of everything, and {', '.join(QUICK_PARTS)} alone without --only")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts alone")
    parser.add_argument("--torchft", default="", metavar="PYTHON", help="an interpreter that has torchft 0.2")
    parser.add_argument("--trace", type=Path, default=TRACE, help="JSON of available nodes over time")
    parser.add_argument("--speed", type=float, default=10, help="so many times faster than the trace (default 10)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="the table goes there, too")
    parser.add_argument("--timeline", type=Path, metavar="FILE.png", help="draw one kill's timeline, measure nothing")
    parser.add_argument("--synthetic", type=int, metavar="SEED", help="print a trace, measure nothing")
    return parser


def measured(given: Given, parts: Sequence[str], as_json: bool) -> dict[str, list[Row]]:
    """Return the rows of each part; print each row as soon as it is measured."""
    found: dict[str, list[Row]] = {}
    for part in parts:
        began = time.monotonic()
        for row in PARTS[part](given):
            found.setdefault(part, []).append(row)
            text = "   ".join(f"{name} {shown(value)}" for name, value in row.items())
            print(json.dumps({"part": part, **row}) if as_json else f"{part}: {text}", flush=True)
        print(f"({part} took {time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return found


def main(argv: list[str]) -> int:
    args = arguments().parse_args(argv)
    if args.synthetic is not None:
        print(preemptions.written(preemptions.synthetic(args.synthetic)), end="")
        return 0
    with (
        tempfile.TemporaryDirectory() as folder,
        azurite.start(Path(folder), key=azurite.KEY, names=[hosts.GATEWAY]) as account,
    ):
        if args.timeline:
            kills.timeline(account.table_url, args.timeline)
            return 0
        given = Given(account, QUICK if args.quick else FULL, args.torchft, args.trace, args.speed)
        parts = args.only or (QUICK_PARTS if args.quick else list(PARTS))
        table = markdown(measured(given, parts, args.json))
    if not args.json:
        print(f"\n{table}", end="")
    if args.table:
        args.table.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
