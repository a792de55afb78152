"""The usage of a run's nodes: one line of facts, a cell of the list, and curves by node."""

from __future__ import annotations

from typing import Any

from ..api import run_list
from ..terminal_text import Text, one_line
from . import plot
from .costs import share

NOTHING = "Nothing was measured: Azure measures once a minute, and its values come some minutes late."
PLOTTED = {  # without a name: the most useful metrics. The units are those of GET runs/{run}/usage
    "cpu": "processors, percent",
    "memory": "memory, MB",
    "gpu": "GPUs, percent",
    "gpu_memory": "GPU memory, MB",
}
_ABOUT = ("time", "node", "device")
_ADDED = ("gpu_energy",)  # summed over a node's GPUs; all other metrics are averaged

Samples = list[dict[str, Any]]
Points = list[tuple[float, float]]


def facts(used: dict[str, Any] | None) -> dict[str, Text]:
    """Return the facts about the nodes; empty if nothing was measured."""
    if not used or not used.get("sentence"):
        return {}
    advice = {"advice": Text(one_line(used["advice"]), "yellow")} if used.get("advice") else {}
    return {"nodes used": Text(one_line(used["sentence"])), **advice}


def brief(run: dict[str, Any]) -> str:
    """Return how busy the GPUs were, or else the processors: `gpu 31 %`. '' if this was not measured."""
    value = run_list.used_of(run)
    if value is None:
        return ""
    return f"{'gpu' if (run.get('usage') or {}).get('gpu') is not None else 'cpu'} {share(value / 100)}"


def metrics_of(samples: Samples) -> list[str]:
    return sorted({name for row in samples for name in row if name not in _ABOUT})


def titled(name: str) -> str:
    return PLOTTED.get(name, name.replace("_", " "))


def curves(samples: Samples, names: list[str]) -> dict[str, plot.Curves]:
    """Return the curves of these metrics by node, over the minutes since the first sample. Without names: PLOTTED."""
    if not samples:
        return {}
    begin = min(row["time"] for row in samples)
    nodes = {node: f"node {number}" for number, node in enumerate(sorted({row["node"] for row in samples}))}
    found: dict[str, plot.Curves] = {}
    for name in names or PLOTTED:
        by_place: dict[tuple[str, float], list[float]] = {}
        for row in samples:
            if name in row and name not in _ABOUT:
                by_place.setdefault((nodes[row["node"]], (row["time"] - begin) / 60), []).append(row[name][0])
        by_node: dict[str, Points] = {}
        for (node, minute), values in sorted(by_place.items()):
            value = sum(values) / (1 if name in _ADDED else len(values))
            by_node.setdefault(node, []).append((minute, value))
        if by_node:
            found[name] = {**by_node}
    return found
