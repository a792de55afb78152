"""Charts of a job with a deadline: its nodes, its progress against the minimum line, and the dollars paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._spot import Policy, Window, play, price
from shared.deadlines.plan import HOUR, NodeChoice, Terms, WorkLeft

COLORS = {
    NodeChoice.LOW: "#2da44e",
    NodeChoice.DEDICATED: "#cf222e",
    NodeChoice.BOTH: "#bf8700",
    NodeChoice.NONE: "#d0d7de",
}
NAMES = {
    NodeChoice.LOW: "low priority",
    NodeChoice.DEDICATED: "dedicated",
    NodeChoice.BOTH: "both",
    NodeChoice.NONE: "none",
}
BLUE, GREY = "#0969da", "#57606a"


@dataclass(frozen=True)
class Moment:
    """A run's state after some seconds: working nodes of each tier, the share of work done, and dollars paid."""

    seconds: float
    low: int
    dedicated: int
    share: float
    dollars: float


def draw(policy: Policy, window: Window, terms: Terms, left: float, work: float, path: Path) -> None:
    """Play the window and draw it. The line is the least progress from which dedicated nodes alone meet the
    deadline."""
    seen: list[tuple[WorkLeft, NodeChoice]] = []

    def watched(now: WorkLeft) -> NodeChoice:
        seen.append((now, policy(now)))
        return seen[-1][1]

    outcome = play(watched, window, terms, left, work)
    hours = [(left - now.left) / HOUR for now, _ in seen]
    paid = [
        price(terms, held, terms.step, now.starting) / HOUR if held is not NodeChoice.NONE else 0.0
        for now, held in seen
    ]
    figure, (nodes, progress, dollars) = _three(left / HOUR)
    for hold, color in COLORS.items():
        at = [hour for hour, (_, held) in zip(hours, seen, strict=True) if held is hold]
        nodes.bar(at, [1] * len(at), width=terms.step / HOUR, align="edge", color=color, label=NAMES[hold])
    nodes.set_yticks([])
    progress.plot(hours, [(work - now.work) / HOUR for now, _ in seen], color=BLUE, label="done")
    ends = [0, left / HOUR]
    line = [(work + terms.reserve - (left - hour * HOUR)) / HOUR for hour in ends]
    progress.plot(ends, line, "--", color=COLORS[NodeChoice.DEDICATED], label="its line")
    progress.set_ylim(0, work / HOUR)
    progress.set_ylabel("hours of work")
    dollars.plot(hours, [sum(paid[: number + 1]) for number in range(len(paid))], color=BLUE, label="paid")
    dollars.plot(ends, [terms.dedicated * hour for hour in ends], "--", color=GREY, label="dedicated nodes")
    dollars.set_ylabel(f"dollars: {outcome.dollars:.2f}")
    dollars.set_xlabel("hours")
    _save(figure, path)


def draw_moments(seen: Sequence[Moment], left: float, work: float, dedicated: float, path: Path) -> None:
    """Draw the observed moments of a run with `work` seconds of work and `left` seconds until its deadline.
    `dedicated` is the price in dollars an hour of all its nodes as dedicated ones."""
    at = [moment.seconds for moment in seen]
    figure, (nodes, progress, dollars) = _three(max(left, at[-1]))
    low, sure = [moment.low for moment in seen], [moment.dedicated for moment in seen]
    colors = [COLORS[NodeChoice.LOW], COLORS[NodeChoice.DEDICATED]]
    nodes.stackplot(
        at, low, sure, labels=[NAMES[NodeChoice.LOW], NAMES[NodeChoice.DEDICATED]], colors=colors, step="post"
    )
    progress.plot(at, [100 * moment.share for moment in seen], color=BLUE, label="done")
    line = [100 * (1 - (left - second) / work) for second in (0, left)]
    progress.plot([0, left], line, "--", color=COLORS[NodeChoice.DEDICATED], label="the least for its date")
    progress.set_ylim(0, 100)
    progress.set_ylabel("% of the work")
    dollars.plot(at, [moment.dollars for moment in seen], color=BLUE, label="all nodes that were up")
    dollars.plot([0, work], [0, dedicated * work / HOUR], "--", color=GREY, label="dedicated nodes")
    dollars.set_ylabel(f"dollars: {seen[-1].dollars:.2f}")
    dollars.set_xlabel("seconds")
    for axes in (nodes, progress, dollars):
        axes.axvline(left, color=GREY, linewidth=0.8)
    _save(figure, path)


def _three(end: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.6), dpi=90, layout="constrained")
    all_axes = figure.subplots(3, 1, sharex=True, height_ratios=(1, 3, 2))
    for axes in all_axes:
        axes.set_xlim(0, end)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, all_axes


def _save(figure: Any, path: Path) -> None:
    nodes, progress, dollars = figure.axes
    nodes.set_ylabel("nodes")
    nodes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    progress.legend(frameon=False)
    dollars.legend(frameon=False)
    figure.savefig(path)
