"""Facts about a node that the run's trainer wrote to ./outputs/environment.json (see trainers/node_facts.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from shared.kernel.errors import BadInput, NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs

FILE = "/environment.json"
LIMIT = 1 << 20  # bytes


def read_node_facts(blobs: Blobs, folder: str, names: Iterable[str]) -> dict[str, Any]:
    """The node facts in an archive; {} if no file has any. `names`: the archive's files, relative to its folder."""
    name = next((name for name in sorted(names) if name.startswith("outputs/") and name.endswith(FILE)), "")
    if not name:
        return {}
    try:
        facts = json.loads(blobs.read(OUTPUT_CONTAINER, f"{folder}/{name}", LIMIT))
    except (ValueError, BadInput, NotFound):
        return {}
    return facts if isinstance(facts, dict) else {}


def hardware(facts: Mapping[str, Any]) -> str:
    """The training hardware: `2 of Tesla T4, driver 535.183.01, CUDA 12.6`, or the processor; '' if unknown."""
    gpus, driver, cuda = facts.get("gpus"), facts.get("driver"), facts.get("cuda")
    if isinstance(gpus, list) and gpus:
        return f"{len(gpus)} of {gpus[0]}, driver {driver or 'unknown'}, CUDA {cuda or 'unknown'}"
    if not (processor := facts.get("processor")):
        return ""
    return f"{processor}, {facts.get('cores')} cores, no GPU" + (f", though driver {driver} is there" if driver else "")
