"""Facts about a node that the run's trainer wrote to ./outputs/environment.json (see trainers/node_facts.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from shared.kernel.errors import BadInput, NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs

FILE = "/environment.json"
LIMIT = 4 << 20  # bytes
MOST_NODES = 100  # files that are read


def read_node_facts(blobs: Blobs, folder: str, names: Iterable[str]) -> dict[str, Any]:
    """The facts of the first node in an archive; {} if no file has any. `names`: the archive's files, relative to its
    folder."""
    return next(iter(read_all_node_facts(blobs, folder, names, 1).values()), {})


def read_all_node_facts(
    blobs: Blobs, folder: str, names: Iterable[str], most: int = MOST_NODES
) -> dict[str, dict[str, Any]]:
    """The facts of each node, member or step, by its folder in `outputs/` ('' for a single job)."""
    files = sorted(name for name in names if name.startswith("outputs/") and name.endswith(FILE))
    read = ((name[len("outputs/") : -len(FILE)].strip("/"), _read(blobs, f"{folder}/{name}")) for name in files[:most])
    return {place: facts for place, facts in read if facts}


def _read(blobs: Blobs, name: str) -> dict[str, Any]:
    try:
        facts = json.loads(blobs.read(OUTPUT_CONTAINER, name, LIMIT))
    except (ValueError, RecursionError, BadInput, NotFound):
        return {}
    return _of_pip(facts) if isinstance(facts, dict) else {}


def _of_pip(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a file from `python -m pip inspect`, for code without a trainer; other facts unchanged.

    https://pip.pypa.io/en/stable/reference/inspect-report/
    """
    if not isinstance(installed := facts.get("installed"), list) or "packages" in facts:
        return facts
    about = [each.get("metadata") for each in installed if isinstance(each, dict)]
    packages = {str(each["name"]): str(each.get("version", "")) for each in about if each and "name" in each}
    environment = about_system if isinstance(about_system := facts.get("environment"), dict) else {}
    return {"python": environment.get("python_full_version"), "packages": packages} | {
        "system": environment.get("platform_release"), "processor": environment.get("platform_machine"),
    }  # fmt: skip


def hardware(facts: Mapping[str, Any]) -> str:
    """The training hardware: `2 of Tesla T4, driver 535.183.01, CUDA 12.6`, or the processor; '' if unknown."""
    gpus, driver, cuda = facts.get("gpus"), facts.get("driver"), facts.get("cuda")
    if isinstance(gpus, list) and gpus:
        return f"{len(gpus)} of {gpus[0]}, driver {driver or 'unknown'}, CUDA {cuda or 'unknown'}"
    if not (processor := facts.get("processor")):
        return ""
    return f"{processor}, {facts.get('cores')} cores, no GPU" + (
        f", although driver {driver} is installed" if driver else ""
    )
