"""Where the data of a job are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.jobs.location import DROPS_STORE, Location, Where
from shared.jobs.readers.place_text import PLACE_FORM, has_expression, read_place
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.names import path_problem
from shared.kernel.places import DROPS_CONTAINER

if TYPE_CHECKING:
    from shared.kernel.storage import Blobs


@dataclass(frozen=True)
class Data:
    """Where the data are, and their place below the drops container if they are there.

    `single_file` is None where nobody looked: the job says what it takes. `asked`: someone named these data in so many
    words, so they win over a job that names others.
    """

    path: Location
    below_drops: str = ""
    single_file: bool | None = None
    asked: bool = True

    @property
    def drop(self) -> DropKey | None:
        """The drop that the path leads to or into."""
        return DropKey.of(self.below_drops) if "/" in self.below_drops.rstrip("/") else None


def data_of(drop: DropKey, single_file: bool) -> Data:
    """The data of a drop."""
    return Data(Location(DROPS_STORE, str(drop)), str(drop), single_file, asked=False)


def find_data(blobs: Blobs, text: str) -> Data:
    """The data that the text names, with whether those in the drops container are a file or a folder."""
    data = read_data(text)
    return replace(data, single_file=_single_file(blobs, data.below_drops.rstrip("/")))


def _single_file(blobs: Blobs, name: str) -> bool | None:
    """None if there is nothing, or it is elsewhere."""
    from shared.kernel.storage import Place

    if not name:
        return None
    if blobs.first(Place(DROPS_CONTAINER, f"{name}/")):
        return False
    exact = blobs.first(Place(DROPS_CONTAINER, name))
    return True if exact and exact.name == name else None


def below_drops(path: Where) -> str:
    """The place below the drops container that this path of a job's input leads to; '' for one elsewhere."""
    return path.path.strip("/") if isinstance(path, Location) and path.store == DROPS_STORE else ""


def read_data(text: str) -> Data:
    """`drops/<route>/<name>`, `<datastore>/<path>`, or the path of one of these as a job's file writes it."""
    read = read_place(text)
    place = read if isinstance(read, Location) else Location(*text.partition("/")[::2])
    below = place.path.strip("/")
    fault = path_problem(below) if below else "it leads to no folder or file."
    if has_expression(text):
        fault = "a job would take a part of it for an expression."
    if fault or not re.fullmatch(r"\w{1,255}", place.store, re.ASCII):
        why = fault or "it begins with no datastore's name."
        forms = f"drops/<route>/<name>, <datastore>/<path> or {PLACE_FORM}"
        raise Impossible(f"data is {text[:120]!r}: {why} Use {forms}.", "bad_data")
    return Data(place, place.path if place.store == DROPS_STORE and not place.workspace else "")
