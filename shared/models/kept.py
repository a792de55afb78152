"""Answer other folders' questions about versions: which versions need a run or a drop, and which run a name means."""

from __future__ import annotations

from shared.kernel.drop_key import DropKey
from shared.models.find import run_of
from shared.models.ports import Models


class KeptVersions:
    """Implements `shared.removals.ports.Named` and `shared.schedules.ports.Versions`."""

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

    def run_of(self, text: str) -> str | None:
        return run_of(self._models, text)
