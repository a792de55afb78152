"""People who remove drops and runs, perhaps just before they upload again, and what a removal may delete."""

from __future__ import annotations

from functools import partial
from typing import Any

from shared.drops.model import Drop
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blob
from shared.removals.remove import RemovalRequest, remove_drop, remove_run
from shared.runs.content import drop_blobs
from shared.runs.data import kept_listing
from shared.runs.model import FINAL
from tests.fakes.world import World
from tests.simulation.scheduler import Violation


def ask(simulation: Any) -> None:
    """Request the removal of a drop or of a run that is over."""
    world: World = simulation.world
    drops = [key for key in world.drops.rows if key.route in world.system.routes]
    runs = [name for name, row in world.runs.rows.items() if row.value.progress.state in FINAL]
    if drops and simulation.random.random() < 0.8:
        key = simulation.random.choice(drops)
        work = partial(remove_drop, simulation.system, simulation.system.removals, key, RemovalRequest())
        simulation.host.call("remove_drop", work)
        simulation.uploads += simulation.random.choice((0, 1, 3))  # some of these precede the removal
    elif runs:
        name = simulation.random.choice(runs)
        simulation.host.call(
            "remove_run", partial(remove_run, simulation.system, simulation.system.removals, name, RemovalRequest())
        )


class Requested:
    """The etags in each drop when its removal was requested, that is when the drop was marked: these blobs may be
    deleted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._etags: dict[DropKey, set[tuple[str, str]]] = {}

    def marked(self, before: Drop, drop: Drop) -> None:
        """Handle a write of a drop: if the write is a removal's mark, the current blobs may be deleted."""
        if drop.removed_at is not None and before.removed_at != drop.removed_at:
            there = drop_blobs(self._world.blobs, drop.key)
            self._etags.setdefault(drop.key, set()).update((blob.name, blob.etag) for blob in there)

    def removing(self, container: str, blobs: list[Blob]) -> None:
        """Check, just before blobs are deleted, that they existed at the request, and that no run was created for
        them since."""
        going = self._world.blobs.containers.get(container, {})
        for blob in blobs if container == "drops" else ():
            there = going.get(blob.name)
            if there is None or there.blob.etag != blob.etag:
                continue
            key = DropKey.of(blob.name)
            asked = (blob.name, blob.etag) in self._etags.get(key, ())
            _require(asked, f"a removal of drop {key} deletes {blob.name}, which was uploaded after its request")
            _require(
                not self._is_sealed(key, blob), f"a removal of drop {key} deletes {blob.name} of a later generation"
            )

    def _is_sealed(self, key: DropKey, blob: Blob) -> bool:
        """Return whether a generation that was sealed after the removal's request holds the blob."""
        row = self._world.drops.rows.get(key)
        if row is None or row.value.removed_at is not None:
            return False
        newest = self._world.drops.generations(key, 1)
        listed = kept_listing(self._world.blobs, newest[0].folder) if newest else None
        return any((each.name, each.etag) == (blob.name, blob.etag.strip(chr(34))) for each in listed or ())


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise Violation(otherwise)
