"""What versions keep: their runs, and the data that they were trained on."""

from __future__ import annotations

from shared.kernel.drop_key import DropKey
from shared.models.ports import Models


class KeptVersions:
    """The answer to `shared.removals.ports.Named`."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def needing_run(self, run: str) -> list[str]:
        return [str(version) for version in self._models.kept() if run == version.run]

    def needing_drop(self, drop: DropKey) -> list[str]:
        key = str(drop)
        return [
            str(version)
            for version in self._models.kept()
            if any(place in (key, drop.route) or place.startswith(f"{key}/") for place in version.reads)
        ]
