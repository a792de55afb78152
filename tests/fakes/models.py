"""Models in memory, a key that signs, and Azure ML's registry of models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.jobs.location import Location
from shared.jobs.readers.place_text import place_text
from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.models.model import Change, Model, Version
from shared.models.ports import Write
from shared.models.signing_key import SigningKey
from tests.fakes.records import Etags


class FakeModels:
    def __init__(self) -> None:
        self.rows: dict[str, Stored[Model]] = {}
        self.made: dict[tuple[str, int], Version] = {}
        self.lines: dict[tuple[str, int], Change] = {}
        self.keys: dict[str, SigningKey] = {}
        self._etags = Etags()

    def get(self, name: str) -> Stored[Model] | None:
        return self.rows.get(name)

    def all(self) -> list[Model]:
        return [self.rows[name].value for name in sorted(self.rows)]

    def write(self, before: Stored[Model] | None, write: Write) -> None:
        there = self.rows.get(write.model.name)
        if (there.etag if there else None) != (before.etag if before else None):
            raise Changed(f"model {write.model.name} changed in between")
        self.rows[write.model.name] = Stored(write.model, self._etags.next())
        self.lines |= {(each.model, each.order): each for each in write.changes}
        if write.version:
            self.made[write.version.model, write.version.number] = write.version

    def version(self, name: str, number: int) -> Version | None:
        return self.made.get((name, number))

    def versions(self, name: str, limit: int = 100) -> list[Version]:
        of_name = [version for version in self.kept() if version.model == name]
        return sorted(of_name, key=lambda version: -version.number)[:limit]

    def kept(self) -> Iterator[Version]:
        return (version for _, version in sorted(self.made.items()) if version.let_go_at is None)

    def set_asset(self, version: Version, asset: str) -> None:
        key = version.model, version.number
        self.made[key] = replace(self.made[key], asset=asset)

    def history(self, name: str, limit: int = 100) -> list[Change]:
        lines = [line for (model, _), line in self.lines.items() if model == name]
        return sorted(lines, key=lambda line: -line.order)[:limit]

    def signing_keys(self) -> list[SigningKey]:
        return list(self.keys.values())

    def put_signing_key(self, key: SigningKey) -> None:
        self.keys[key.sha256] = key


class FakeSigner:
    """A key in memory, with the same cryptography as a key in a file. The same `secret` gives the same key."""

    def __init__(self, secret: int = 0) -> None:
        self._secret = secret

    @cached_property
    def key(self) -> EllipticCurvePrivateKey:
        return derive_private_key(self._secret, SECP256R1()) if self._secret else generate_private_key(SECP256R1())

    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data, ECDSA(SHA256()))


class FakeRegistry:
    def __init__(self) -> None:
        self.models: dict[str, tuple[str, str]] = {}

    def workspace(self) -> str:
        return "azureml://subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"

    def register(self, version: Version, files: Location, description: str) -> str:
        self.models.setdefault(str(version), (place_text(files), description))
        return f"azureml:{version.model}:{version.number}"
