"""Ports for the storage, signing and Azure ML registration of models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from shared.jobs.location import Location
from shared.kernel.versioned import Stored
from shared.models.model import Change, Model, Version
from shared.models.signing_key import SigningKey
from shared.removals.ports import RemovalPorts


@dataclass(frozen=True)
class Write:
    """The rows of one change of a model, written in one transaction."""

    model: Model
    changes: list[Change]
    version: Version | None = None


class Models(Protocol):
    """Models, their versions and histories."""

    def get(self, name: str) -> Stored[Model] | None:
        """Return the model, or None without a promoted run."""

    def all(self) -> list[Model]:
        """Return every model, sorted by name."""

    def write(self, before: Stored[Model] | None, write: Write) -> None:
        """Write the model over the read model (None: a new model), with new history lines and a version.

        Raises Changed, and writes nothing, if someone else wrote the model since.
        """

    def version(self, name: str, number: int) -> Version | None:
        """Return a version, even a released one."""

    def versions(self, name: str, limit: int = 100) -> list[Version]:
        """Return up to `limit` versions, newest first, without released ones."""

    def kept(self) -> Iterator[Version]:
        """Yield the kept versions of every model. Released versions are left out."""

    def set_asset(self, version: Version, asset: str) -> None:
        """Record the version's id in Azure ML's registry. A repeat changes nothing."""

    def history(self, name: str, limit: int = 100) -> list[Change]:
        """Return up to `limit` lines of the model's history, newest first."""

    def signing_keys(self) -> list[SigningKey]:
        """Return every public key that was recorded."""

    def put_signing_key(self, key: SigningKey) -> None:
        """Record a public key. An earlier record of this key is replaced."""


class Signer(Protocol):
    """A key for signatures with ECDSA on P-256 and SHA-256."""

    def public_key(self) -> bytes:
        """Return the public key as PEM."""

    def sign(self, data: bytes) -> bytes:
        """Return the signature of these bytes in DER."""


class Registry(Protocol):
    """Azure ML's model registry, for its studio and endpoints."""

    def workspace(self) -> str:
        """Return the URI of the workspace."""

    def register(self, version: Version, files: Location, description: str) -> str:
        """Register the version with the files at this place, and return the version's id. A repeat only reads the
        id.
        """


class ModelPorts(RemovalPorts, Protocol):
    """The ports of removals, the models, and their signer and registry."""

    @property
    def models(self) -> Models: ...
    @property
    def signer(self) -> Signer: ...
    @property
    def registry(self) -> Registry: ...
