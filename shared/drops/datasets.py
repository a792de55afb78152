"""Implements the port Datasets of runs: the content of drops."""

from __future__ import annotations

from dataclasses import dataclass

from shared.drops.model import DropState, generation_of
from shared.drops.ports import Drops
from shared.kernel.drop_key import DropKey
from shared.runs.ports import Content


@dataclass(frozen=True)
class DropDatasets:
    """The port Datasets, from the drops' records."""

    drops: Drops

    def of(self, drop: DropKey) -> Content | None:
        """See shared.runs.ports.Datasets."""
        stored = self.drops.get(drop)
        if stored is None:
            return None
        collecting = stored.value.why if stored.value.state is DropState.OPEN else ""
        return Content(stored.value.fingerprint, stored.value.generation, collecting)

    def kept_in(self, drop: DropKey, generation: int, fingerprint: str) -> str:
        """See shared.runs.ports.Datasets. A removed drop starts again with generation 1."""
        kept = self.drops.generations(drop)
        if (stored := self.drops.get(drop)) and stored.value.generation:
            kept = [generation_of(stored.value), *kept]
        return next((each.folder for each in kept if (each.number, each.fingerprint) == (generation, fingerprint)), "")
