"""Idle times on a trace of jobs: the cost of `idle: auto` and of fixed times, as a multiple of the best in hindsight.

python3 trainyard.py bench idle_policy [--quick] [CSV] [--png FILE] [--json]

CSV has the columns start (a time, or seconds), duration (seconds), nodes, and optionally cluster. The default is
Microsoft's Philly trace (8 GPUs a node). A job takes the most recently freed nodes of its cluster first. A node's gap
runs from the end of one job to the node's next job; a pool's gap runs from the end of its last job to its next job.
"""

from __future__ import annotations

import csv
import heapq
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks._options import options
from shared.clusters.idle import IdleTime, cost

ROOT = Path(__file__).resolve().parent.parent
PHILLY = ROOT.parent / "shared" / "data" / "traces" / "philly.csv"
GPUS_A_NODE = 8
QUICK = 10_000  # jobs
STARTS = (180.0, 300.0, 600.0)  # B, seconds
FIXED: dict[str, Callable[[float], float]] = {
    "off_at_once": lambda _: 0.0,
    "after_120": lambda _: 120.0,  # Azure ML
    "after_300": lambda _: 300.0,  # SkyPilot
    "after_1200": lambda _: 1200.0,  # Determined
    "after_B": lambda start: start,
}
TARGETS = {"node_gaps": 1.2, "pool_gaps": 1.15}


@dataclass(frozen=True, order=True)
class Job:
    start: float
    seconds: float
    nodes: int
    cluster: str


@dataclass(frozen=True)
class Score:
    """A policy's cost as a multiple of the best in hindsight, and the mean seconds that a job waits for a start."""

    ratio: float
    waiting: float


Gaps = list[list[float]]  # the gaps of each cluster, in the order of their ends
Scores = dict[str, dict[float, dict[str, Score]]]


def read_jobs(path: Path) -> list[Job]:
    """Read the jobs of a CSV in the order of their start. Raises ValueError naming a line that can't be read."""
    jobs = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                jobs.append(_job(row))
            except (KeyError, TypeError, ValueError) as exc:
                raise ValueError(f"{path}, line {number}: {exc!r}; columns are start, duration, nodes.") from exc
    return sorted(jobs)


def _job(row: dict[str, str]) -> Job:
    nodes = int(row["nodes"]) if "nodes" in row else max(1, math.ceil(int(row["num_gpus"]) / GPUS_A_NODE))
    start = row["start"] if "start" in row else row["timestamp"]
    return Job(_seconds(start), float(row["duration"]), nodes, row.get("cluster", ""))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def by_cluster(jobs: list[Job]) -> Iterator[list[Job]]:
    found = defaultdict(list)
    for job in jobs:
        found[job.cluster].append(job)
    return iter(found.values())


def node_gaps(jobs: list[Job]) -> list[float]:
    """Return the gaps of each node of one cluster. A job takes the most recently freed nodes, and new nodes if too
    few are free."""
    gaps: list[float] = []
    busy: list[float] = []
    free: list[float] = []
    for job in jobs:
        while busy and busy[0] <= job.start:
            free.append(heapq.heappop(busy))
        for _ in range(job.nodes):
            if free:
                gaps.append(job.start - free.pop())
            heapq.heappush(busy, job.start + job.seconds)
    return gaps


def pool_gaps(jobs: list[Job]) -> list[float]:
    """Return the times in which no job of one cluster ran."""
    gaps: list[float] = []
    end = jobs[0].start if jobs else 0.0
    for job in jobs:
        if job.start > end:
            gaps.append(job.start - end)
        end = max(end, job.start + job.seconds)
    return gaps


def scores(gaps: Gaps, start: float) -> dict[str, Score]:
    """Return each policy's score if a start costs this many seconds of node time."""
    fixed = {name: _score(gaps, start, timeout(start)) for name, timeout in FIXED.items()}
    return {"auto": _score(gaps, start, None), **fixed}


def _score(gaps: Gaps, start: float, timeout: float | None) -> Score:
    spent = best = waited = 0.0
    for cluster in gaps:
        learnt = IdleTime(start)
        for gap in cluster:
            seconds = learnt.seconds if timeout is None else timeout
            spent += cost(gap, seconds, start)
            best += min(gap, start)
            waited += start if gap > seconds else 0.0
            if timeout is None:
                learnt.see(gap)
    count = sum(map(len, gaps))
    return Score(spent / best if best else 1.0, waited / count if count else 0.0)


def measure(jobs: list[Job]) -> Scores:
    clusters = list(by_cluster(jobs))
    kinds = {"node_gaps": [node_gaps(c) for c in clusters], "pool_gaps": [pool_gaps(c) for c in clusters]}
    return {kind: {start: scores(gaps, start) for start in STARTS} for kind, gaps in kinds.items()}


def table(found: Scores) -> str:
    lines = ["cost as a multiple of the best in hindsight (mean seconds that a job waits for a start)"]
    for kind, rows in found.items():
        lines += ["", f"{kind.replace('_', ' ')}, target {TARGETS[kind]:g}"]
        lines.append(f"{'B':>5}" + "".join(f"{name:>16}" for name in next(iter(rows.values()))))
        for start, row in rows.items():
            cells = (f"{s.ratio:.2f} ({s.waiting:.0f} s)" for s in row.values())
            lines.append(f"{start:>5g}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def draw(found: Scores, path: Path) -> None:
    """Draw cost against waiting time: a point for each policy and each B, one panel for each kind of gap."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), dpi=110, layout="constrained")
    for axes, (kind, rows) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        for name in next(iter(rows.values())):
            points = [(row[name].waiting, row[name].ratio) for row in rows.values()]
            axes.plot(*zip(*points, strict=True), "o-", label=name.replace("_", " "), zorder=3 if name == "auto" else 2)
        axes.axhline(TARGETS[kind], color="#7d8590", linewidth=0.8, linestyle="--")
        axes.set_title(kind.replace("_", " "), loc="left")
        axes.set_xlabel(f"mean seconds that a job waits (B = {', '.join(f'{b:g}' for b in STARTS)})")
        axes.set_ylabel("cost / best in hindsight")
        axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)


def main(argv: list[str] | None = None) -> None:
    parser = options(__doc__, f"the first {QUICK:,} jobs")
    parser.add_argument("csv", type=Path, nargs="?", default=PHILLY, help="columns start, duration, nodes")
    parser.add_argument("--png", type=Path, help="write the plot here")
    asked = parser.parse_args(argv)
    if not asked.csv.is_file():
        code = 0 if asked.csv == PHILLY else 2  # a clone may lack the trace
        parser.exit(code, f"There is no {asked.csv}. Give a CSV with the columns start, duration, nodes.\n")
    found = measure(read_jobs(asked.csv)[: QUICK if asked.quick else None])
    print(table(found))
    if asked.png:
        draw(found, asked.png)
    if asked.json:
        ratios = {
            kind: {f"{start:g}": {name: round(s.ratio, 4) for name, s in row.items()} for start, row in rows.items()}
            for kind, rows in found.items()
        }
        print(json.dumps(ratios))


if __name__ == "__main__":
    main()
