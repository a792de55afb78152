"""The trainer's statement about the saved weights: their metrics, their step, and which direction is better.

A trainer writes this statement into models/model.json, which may contain further keys:

    {"metrics": {"val_accuracy": 0.91}, "step": 400, "goals": {"val_accuracy": "maximize"}}
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.metric_goal import Goal
from shared.kernel.errors import BadInput, NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs
from shared.runs.decide import METRICS_KEPT, finite

FILE = "models/model.json"
LIMIT = 1 << 20  # bytes


@dataclass(frozen=True)
class Saved:
    """The metrics of the saved weights, the step at which they were saved (None: unknown), and goals by metric."""

    metrics: dict[str, float] = field(default_factory=dict)
    step: int | None = None
    goals: dict[str, str] = field(default_factory=dict)


def read_saved(blobs: Blobs, folder: str, names: Collection[str]) -> Saved:
    """Return the statements in the archive's model.json, without parts of another form. `names`: the archive's
    files.
    """
    if f"{folder}/{FILE}" not in names:
        return Saved()
    try:
        document = json.loads(blobs.read(OUTPUT_CONTAINER, f"{folder}/{FILE}", LIMIT))
    except (ValueError, RecursionError, BadInput, NotFound):
        return Saved()
    if not isinstance(document, dict):
        return Saved()
    step = document.get("step")
    return Saved(
        {name: number for name, value in _items(document, "metrics") if (number := finite(value)) is not None},
        step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < 1 << 53 else None,
        {name: value for name, value in _items(document, "goals") if value in [*Goal]},
    )


def _items(document: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    section = document.get(key)
    return list(section.items())[:METRICS_KEPT] if isinstance(section, dict) else []
