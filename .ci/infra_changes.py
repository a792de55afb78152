"""Print the differences between two snapshots of infra/, by resource, as Markdown: `infra_changes.py BEFORE AFTER`.

A snapshot is what `bicep snapshot` writes: every resource that the deployment engine predicts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Resource = dict[str, Any]


def changes(before: Path, after: Path) -> str:
    """Return a line for each resource that is added, removed or changed, and below it the changes."""
    old, new = resources(before), resources(after)
    lines = [f"- **new** {name}" for name in sorted(new.keys() - old.keys())]
    lines += [f"- **gone** {name}" for name in sorted(old.keys() - new.keys())]
    for name in sorted(old.keys() & new.keys()):
        if details := list(differences(old[name], new[name], "")):
            lines += [f"- **changed** {name}", *(f"  - {detail}" for detail in details)]
    head = f"### infra/: {len(old)} resources before, {len(new)} after"
    return "\n".join([head, "", *(lines or ["No resource changes."])]) + "\n"


def resources(file: Path) -> dict[str, Resource]:
    """Return the resources by type and name, or by the expression of the name; numbered where two are equal."""
    found: dict[str, Resource] = {}
    for resource in json.loads(file.read_text("utf-8"))["predictedResources"]:
        name = f"`{resource['type']}` {shown(resource['id'].rpartition('/providers/')[2] or resource['name'])}"
        number = sum(other.partition(" #")[0] == name for other in found)
        found[f"{name} #{number + 1}" if number else name] = resource
    return found


def differences(old: Any, new: Any, place: str) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [line for key in keys for line in differences(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))]
    return [] if old == new else [f"`{place}`: {shown(old)} → {shown(new)}"]


def shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text if len(text) <= 200 else text[:197] + '...'}`"


if __name__ == "__main__":
    sys.stdout.write(changes(Path(sys.argv[1]), Path(sys.argv[2])))
