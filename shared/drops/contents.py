"""What lies in a drop now."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blob, Place
from shared.system import DROPS_CONTAINER, System


def drop_blobs(system: System, key: DropKey) -> Iterator[Blob]:
    """The drop's blobs: those in its folder, or the one that has its very name."""
    inside = system.blobs.list(Place(DROPS_CONTAINER, key.prefix()))
    first = next(inside, None)
    if first is not None:
        return itertools.chain([first], inside)
    exact = system.blobs.first(Place(DROPS_CONTAINER, str(key)))
    return iter([exact] if exact is not None and exact.name == str(key) else [])
