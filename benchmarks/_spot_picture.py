"""A picture of one window: the nodes that the job held, its progress against its line, and the dollars."""

from __future__ import annotations

from pathlib import Path

from benchmarks._spot import Policy, Window, play, price
from shared.deadlines.plan import HOUR, Hold, Standing, Terms

COLORS = {Hold.LOW: "#2da44e", Hold.DEDICATED: "#cf222e", Hold.BOTH: "#bf8700", Hold.NONE: "#d0d7de"}
NAMES = {Hold.LOW: "low priority", Hold.DEDICATED: "dedicated", Hold.BOTH: "both", Hold.NONE: "none"}


def draw(policy: Policy, window: Window, terms: Terms, left: float, work: float, path: Path) -> None:
    """Play the window and draw it. The line is the least progress from which dedicated nodes alone keep the date."""
    from matplotlib.figure import Figure

    seen: list[tuple[Standing, Hold]] = []

    def watched(now: Standing) -> Hold:
        seen.append((now, policy(now)))
        return seen[-1][1]

    outcome = play(watched, window, terms, left, work)
    hours = [(left - now.left) / HOUR for now, _ in seen]
    paid = [price(terms, held, terms.step, now.starting) / HOUR if held is not Hold.NONE else 0.0 for now, held in seen]
    figure = Figure(figsize=(11, 5.6), dpi=90, layout="constrained")
    nodes, progress, dollars = figure.subplots(3, 1, sharex=True, height_ratios=(1, 3, 2))
    for hold, color in COLORS.items():
        at = [hour for hour, (_, held) in zip(hours, seen, strict=True) if held is hold]
        nodes.bar(at, [1] * len(at), width=terms.step / HOUR, align="edge", color=color, label=NAMES[hold])
    nodes.set_yticks([])
    nodes.set_ylabel("holds")
    nodes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    progress.plot(hours, [(work - now.work) / HOUR for now, _ in seen], color="#0969da", label="done")
    ends = [0, left / HOUR]
    line = [(work + terms.reserve - (left - hour * HOUR)) / HOUR for hour in ends]
    progress.plot(ends, line, "--", color="#cf222e", label="its line")
    progress.set_ylim(0, work / HOUR)
    progress.set_ylabel("hours of work")
    progress.legend(frameon=False)
    dollars.plot(hours, [sum(paid[: number + 1]) for number in range(len(paid))], color="#0969da", label="paid")
    dollars.plot(ends, [terms.dedicated * hour for hour in ends], "--", color="#57606a", label="dedicated nodes")
    dollars.set_ylabel(f"dollars: {outcome.dollars:.2f}")
    dollars.set_xlabel("hours")
    dollars.legend(frameon=False)
    for axes in (nodes, progress, dollars):
        axes.set_xlim(*ends)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
