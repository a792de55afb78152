"""Where models are kept, who signs them, and Azure ML's own registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from shared.jobs.location import Location
from shared.kernel.versioned import Stored
from shared.models.model import Change, Model, Version
from shared.removals.ports import RemovalPorts


@dataclass(frozen=True)
class Write:
    """What one change of a model writes, all or nothing."""

    model: Model
    changes: list[Change]
    version: Version | None = None


class Models(Protocol):
    """Models, their versions and histories."""

    def get(self, name: str) -> Stored[Model] | None:
        """The model, or None if nobody promoted anything to it."""

    def all(self) -> list[Model]:
        """All models, by name."""

    def write(self, before: Stored[Model] | None, write: Write) -> None:
        """Write the model over the one that was read (None: there was none), its new lines of history, and a version.

        Raises Changed, and nothing is written, if somebody else wrote the model since.
        """

    def version(self, name: str, number: int) -> Version | None:
        """A version, also one that was let go."""

    def versions(self, name: str, limit: int = 100) -> list[Version]:
        """Up to `limit` versions, the newest first, without those that were let go."""

    def kept(self) -> Iterator[Version]:
        """The versions of all models that were not let go."""

    def set_asset(self, version: Version, asset: str) -> None:
        """Write down the version's id in Azure ML's registry. Twice is once."""

    def history(self, name: str, limit: int = 100) -> list[Change]:
        """Up to `limit` lines of the model's history, the newest first."""


class Signer(Protocol):
    """A key that signs by ECDSA on P-256 with SHA-256."""

    def public_key(self) -> bytes:
        """The public key as PEM."""

    def sign(self, data: bytes) -> bytes:
        """The signature of these bytes, in DER."""


class Registry(Protocol):
    """Azure ML's registry of models, for its studio and endpoints."""

    def workspace(self) -> str:
        """The URI of the workspace."""

    def register(self, version: Version, files: Location, description: str) -> str:
        """The id of the version there, with its files at this place. Registered once, then only looked up."""


class ModelPorts(RemovalPorts, Protocol):
    """Those of removals, the models, and where they are signed and registered."""

    @property
    def models(self) -> Models: ...
    @property
    def signer(self) -> Signer: ...
    @property
    def registry(self) -> Registry: ...
