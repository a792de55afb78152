"""Sample pictures of a drop's generation, as addresses that a browser shows: the strip on a data card.

An address reads one blob for 15 minutes. The blob is sent as a file to save, so a browser shows the blob only in an
<img>, where no script in it runs. SVG does not count as a picture here.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from shared.data_checks.cards import CardQuery, generation_named
from shared.drops.ports import DropPorts
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Blob, Place
from shared.runs.data import kept_listing
from trainers.data_checks.sample import choose
from trainers.data_checks.source import is_data

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")  # formats that every browser shows
SHOWN = 8
LARGEST = 4 << 20  # bytes; a browser would load a larger picture for seconds
ADDRESS_LIFE = 900  # seconds


class Pictures(Struct):
    of: str
    pictures: Annotated[
        dict[str, str], Meta(description=f"Addresses of up to {SHOWN} pictures by path, each for 15 minutes.")
    ]


def list_pictures(ports: DropPorts, query: CardQuery) -> Annotated[dict[str, Any], Pictures]:
    """Return addresses of some pictures, always the same ones. Pictures that have been overwritten are left out."""
    key, generation = generation_named(ports.drops, ports.routes, query.of)
    prefix = key.prefix()
    blobs = {
        blob.name.removeprefix(prefix): blob
        for blob in kept_listing(ports.blobs, generation.folder) or ()
        if blob.name.startswith(prefix) and blob.name.lower().endswith(ENDINGS) and 0 < blob.size <= LARGEST
    }
    paths = sorted(choose(sorted(filter(is_data, blobs)), SHOWN, generation.folder))
    urls = {
        path: ports.blobs.read_url(DROPS_CONTAINER, blobs[path].name, ADDRESS_LIFE)
        for path in paths
        if _is_same(ports.blobs.first(Place(DROPS_CONTAINER, blobs[path].name)), blobs[path])
    }
    return {"of": query.of, "pictures": urls}


def _is_same(there: Blob | None, listed: Blob) -> bool:
    return there is not None and there.name == listed.name and (there.md5, there.size) == (listed.md5, listed.size)
