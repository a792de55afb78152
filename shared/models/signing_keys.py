"""The public keys with which this deployment has signed models, each with the time in which it signed.

A deployment gets a new key when its administrator names another one, or when Key Vault makes a new version of the key.
The first promotion with the new key records it. Versions that earlier keys signed stay valid, because their keys stay
on the list. A key that somebody else may have can be withdrawn: then no signature of this key counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from shared.kernel.errors import Conflict, NotFound
from shared.models.decide import ChangeRequest
from shared.models.ports import Models, Signer
from shared.models.signature import key_digest
from shared.models.signing_key import SigningKey


@dataclass(frozen=True)
class KnownKeys:
    """All keys of the deployment. `current` is the SHA-256 of the key that signs now."""

    current: str
    keys: dict[str, SigningKey]

    def pem(self, sha256: str) -> bytes:
        """Return the public key as PEM. Raises ValueError for a key that is not the deployment's."""
        if sha256 not in self.keys:
            raise ValueError(self.why_not(sha256))
        return self.keys[sha256].pem.encode()

    def why_not(self, sha256: str) -> str:
        """Return the reason why a signature by this key does not count, or '' if it does."""
        if sha256 not in self.keys:
            return f"It was signed by key {sha256[:16]}, which is not a key of this deployment."
        key = self.keys[sha256]
        if key.withdrawn_at is None:
            return ""
        because = f": {key.why}" if key.why else ""
        return f"It was signed by key {sha256[:16]}, which was withdrawn at {_time(key.withdrawn_at)}{because}."


def known_keys(models: Models, signer: Signer, now: datetime) -> KnownKeys:
    """Return all keys, with the current one even if no promotion has recorded it yet."""
    pem = signer.public_key()
    current = key_digest(pem)
    keys = {key.sha256: key for key in models.signing_keys()}
    if current not in keys:
        first = min((version.at for version in models.kept() if version.signer == current), default=now)
        keys[current] = SigningKey(current, pem.decode(), first)
    return KnownKeys(current, keys)


def record_key(models: Models, signer: Signer, now: datetime) -> None:
    """Record the key that signs now, and the end of the one before. Raises Conflict if the key was withdrawn."""
    known = known_keys(models, signer, now)
    current = known.keys[known.current]
    if current.withdrawn_at is not None:
        raise Conflict(
            f"Key {current.sha256[:16]} was withdrawn at {_time(current.withdrawn_at)}, so it signs nothing more. "
            "Set TRAINYARD_SIGNING_KEY to another key.",
            "key_withdrawn",
        )
    for key in known.keys.values():
        if key.until is None and key.sha256 != current.sha256:
            models.put_signing_key(replace(key, until=now))
    if current.until is not None or current not in models.signing_keys():
        models.put_signing_key(replace(current, until=None))


def withdraw_key(models: Models, signer: Signer, sha256: str, asked: ChangeRequest) -> SigningKey:
    """Withdraw a key. A repeat changes nothing. Raises NotFound for a key that never signed here."""
    key = known_keys(models, signer, asked.at).keys.get(sha256)
    if key is None:
        raise NotFound(f"{sha256[:80]} is not a key of this deployment. `keys` lists its keys.")
    if key.withdrawn_at is None:
        key = replace(key, withdrawn_at=asked.at, by=asked.by.name, by_id=asked.by.id, why=asked.why)
        models.put_signing_key(key)
    return key


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
