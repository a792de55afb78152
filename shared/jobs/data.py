"""Where the data of a job are."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.jobs.spec import DROPS_DATASTORE
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible
from shared.kernel.names import path_problem
from shared.kernel.places import DROPS_CONTAINER

if TYPE_CHECKING:
    from shared.kernel.storage import Blobs

_AZUREML = re.compile(
    r"azureml://(?:subscriptions/[\w.-]+/resource[gG]roups/[\w.()-]+/workspaces/[\w.-]+/)?datastores/(\w+)/paths/(.+)"
)


@dataclass(frozen=True)
class Data:
    """A path as Azure ML writes it, and its place below the drops container if it is there.

    `single_file` is None where nobody looked: the job says what it takes. `asked`: someone named these data in so many
    words, so they win over a job that names others.
    """

    path: str
    below_drops: str = ""
    single_file: bool | None = None
    asked: bool = True

    @property
    def drop(self) -> DropKey | None:
        """The drop that the path leads to or into."""
        return DropKey.of(self.below_drops) if "/" in self.below_drops.rstrip("/") else None


def data_of(drop: DropKey, single_file: bool) -> Data:
    """The data of a drop."""
    return Data(f"azureml://datastores/{DROPS_DATASTORE}/paths/{drop}", str(drop), single_file, asked=False)


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


def below_drops(path: str) -> str:
    """The place below the drops container that this path of a job's input leads to; '' for one elsewhere."""
    match = _AZUREML.fullmatch(path)
    return match[2].strip("/") if match and match[1] == DROPS_DATASTORE else ""


def read_data(text: str) -> Data:
    """`drops/<route>/<name>`, `<datastore>/<path>`, or the azureml:// path of one of these."""
    match = _AZUREML.fullmatch(text)
    datastore, _, path = (match[1], "/", match[2]) if match else text.partition("/")
    below = path.strip("/")
    fault = path_problem(below) if below else "it leads to no folder or file."
    if "${{" in text:
        fault = "Azure ML would read ${{ as an expression."
    if fault or not re.fullmatch(r"\w{1,255}", datastore, re.ASCII):
        why = fault or "it begins with no datastore's name."
        forms = "drops/<route>/<name>, <datastore>/<path> or azureml://datastores/<datastore>/paths/<path>"
        raise Impossible(f"data is {text[:120]!r}: {why} Use {forms}.", "bad_data")
    if match and "/workspaces/" in text.partition("/datastores/")[0]:
        return Data(text)
    return Data(f"azureml://datastores/{datastore}/paths/{path}", path if datastore == DROPS_DATASTORE else "")
