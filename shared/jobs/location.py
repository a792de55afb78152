"""Places of a job's data, code and outputs, independent of any compute backend. Pure.

Each reader of a job format creates these values, and the writer of each compute backend converts them to the backend's
form (shared/jobs/readers/place_text.py for Azure ML).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

DROPS_STORE = "drops"
OUTPUT_STORE = "workspaceblobstore"  # the datastore of outputs and uploaded folders


@dataclass(frozen=True)
class Location:
    """A file or folder in one of the workspace's stores; a folder's path ends with '/'.

    A store is one blob container. `workspace` is set if the job names the workspace explicitly.
    """

    store: str
    path: str
    workspace: str = ""

    def __str__(self) -> str:
        """The short form, which requests accept too: `drops/mnist/a/`."""
        return f"{self.store}/{self.path}"


@dataclass(frozen=True)
class Asset:
    """A registered object with an id in the compute backend.

    This is code, data, an environment, a component, a model, or another job's output.
    """

    id: str

    def __str__(self) -> str:
        return self.id


class Placeholder(Enum):
    """The parts of a place with a value at the job's build."""

    RUN = "the run's name"
    OUTPUT = "the output's name"
    DEFAULT_STORE = "the store of outputs"


@dataclass(frozen=True)
class Pattern:
    """The place of an output as text with placeholders, `<store>/<path>`."""

    parts: tuple[str | Placeholder, ...]

    def filled(self, values: Mapping[Placeholder, str]) -> Location:
        """The location with these values for the placeholders."""
        text = "".join(values[part] if isinstance(part, Placeholder) else part for part in self.parts)
        store, _, path = text.partition("/")
        return Location(store, path)


Where = str | Location | Asset  # text: a path relative to the job, an address, or a text that no reader understands


def is_relative(where: Where) -> bool:
    """Whether this is a path relative to the job."""
    return isinstance(where, str) and where != "" and ":" not in where and not where.startswith("/")


def is_of_this_machine(where: Where) -> bool:
    """Whether this is a local file of the submitting machine."""
    return isinstance(where, str) and where.startswith(("/", "file:"))
