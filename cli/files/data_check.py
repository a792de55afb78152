"""The check of a folder before the upload, with the app's rules for closing a drop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..results import DataChecked
from .drop_upload import Item

if TYPE_CHECKING:
    from trainers.data_checks import check, data, source
else:
    try:  # an installed command line has the package under this name
        from trainyard_data_checks import check, data, source
    except ImportError:
        from trainers.data_checks import check, data, source

WHOLE = 1 << 30  # bytes of a folder that is read completely, which takes some seconds


def check_items(items: list[Item], drop: str, rule: Mapping[str, Any]) -> DataChecked:
    """Check the files that an upload would make the drop. `rule` is the part `data` of the API's check of a route."""
    if not rule or rule["mode"] == "off":
        return {"verdict": "off", "refusals": [], "warnings": [], "notes": [], "card": {}}
    paths = [(item.blob.removeprefix(f"{drop}/") if item.blob != drop else item.path.name, item.path) for item in items]
    bounds = {key: int(value) if key in ("sample", "few") else value for key, value in rule["bounds"].items()}
    settings = replace(data.Settings(), **bounds, document=WHOLE, decode=True)
    folder = source.Folder(Path(), WHOLE, paths)
    result = check.check(folder, check.Task(rule["declared"], settings, seed=drop))
    refusals, warnings, notes = (
        [str(finding) for finding in result.findings if finding.severity == severity]
        for severity in ("refuse", "warn", "note")
    )
    verdict = "refused" if refusals and rule["mode"] == "refuse" else "warned" if refusals or warnings else "fine"
    card = asdict(result.card)
    return {"verdict": verdict, "refusals": refusals, "warnings": warnings, "notes": notes, "card": card}
