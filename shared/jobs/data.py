"""Find the data of a job."""

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
    """The place of a job's data, and the path below the drops container for data in a drop.

    `single_file` is None if unknown: the job's declaration then decides. `asked`: the user named this data explicitly,
    so it overrides the job's own data.
    """

    path: Location
    below_drops: str = ""
    single_file: bool | None = None
    asked: bool = True

    @property
    def drop(self) -> DropKey | None:
        """The drop to which, or into which, the path leads."""
        return DropKey.of(self.below_drops) if "/" in self.below_drops.rstrip("/") else None


def data_of(drop: DropKey, single_file: bool) -> Data:
    """The data of a drop."""
    return Data(Location(DROPS_STORE, str(drop)), str(drop), single_file, asked=False)


def find_data(blobs: Blobs, text: str) -> Data:
    """The data that the text names; data in the drops container is checked for being a file or a folder."""
    data = read_data(text)
    return replace(data, single_file=_single_file(blobs, data.below_drops.rstrip("/")))


def _single_file(blobs: Blobs, name: str) -> bool | None:
    """Whether the data is a single file; None if there is no data, or the data is elsewhere."""
    from shared.kernel.storage import Place

    if not name:
        return None
    if blobs.first(Place(DROPS_CONTAINER, f"{name}/")):
        return False
    exact = blobs.first(Place(DROPS_CONTAINER, name))
    return True if exact and exact.name == name else None


def below_drops(path: Where) -> str:
    """The path below the drops container of this input's path; '' for a path elsewhere."""
    return path.path.strip("/") if isinstance(path, Location) and path.store == DROPS_STORE else ""


def read_data(text: str) -> Data:
    """Parse `drops/<route>/<name>`, `<datastore>/<path>`, or such a path in the form of a job file."""
    read = read_place(text)
    place = read if isinstance(read, Location) else Location(*text.partition("/")[::2])
    below = place.path.strip("/")
    fault = path_problem(below) if below else "it is not the path of a folder or file."
    if has_expression(text):
        fault = "a job would read a part of it as an expression."
    if fault or not re.fullmatch(r"\w{1,255}", place.store, re.ASCII):
        why = fault or "it does not begin with the name of a datastore."
        forms = f"drops/<route>/<name>, <datastore>/<path> or {PLACE_FORM}"
        raise Impossible(f"data is {text[:120]!r}: {why} Use {forms}.", "bad_data")
    return Data(place, place.path if place.store == DROPS_STORE and not place.workspace else "")
