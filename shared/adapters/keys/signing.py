"""The key that TRAINYARD_SIGNING_KEY names: a PEM file, or a key in Key Vault, which never leaves the vault.

Either key is read on first use, and its package is imported then.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.adapters.translation import translated
from shared.kernel.errors import BadSetting, TrainyardError
from shared.models.ports import Signer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SETTING = "TRAINYARD_SIGNING_KEY"
_VAULT_KEY = re.compile(r"https://[\w.-]+(:\d+)?/keys/[\w-]+(/[0-9a-f]{32})?")


def signer_of(setting: str) -> Signer:
    """Return the signer named by the setting. Reads nothing and sends no request yet."""
    if not setting:
        return NoKey()
    return VaultKey(setting) if _VAULT_KEY.fullmatch(setting) else FileKey(Path(setting))


class NoKey:
    """No key is configured, so nothing can be promoted: a proof must be checkable later."""

    def public_key(self) -> bytes:
        raise BadSetting(
            f"{SETTING} is not set, so models can't be signed. Give it a PEM file with a P-256 key, or the address of "
            "a key in Key Vault, https://<vault>.vault.azure.net/keys/<name>."
        )

    def sign(self, data: bytes) -> bytes:
        raise BadSetting(f"{SETTING} is not set, so {len(data)} bytes can't be signed.")


class FileKey:
    """A private key in a PEM file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._file.read_bytes(), None)
        except (OSError, ValueError, TypeError) as exc:
            raise BadSetting(f"{SETTING} names {self._file}, which does not contain a private key: {exc}.") from exc
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise BadSetting(f"{SETTING} names {self._file}, whose key does not use the curve P-256 (secp256r1).")
        return key

    def public_key(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.hashes import SHA256

        return self._key.sign(data, ECDSA(SHA256()))


class VaultKey:
    """A key in Key Vault, used with the app's identity, which needs the role Key Vault Crypto User on it.

    The version of the key is that of the first use, so that the public key and the signatures of one process agree.
    After a refusal, such as for a version that was disabled, the next use reads the newest version.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    @cached_property
    def _client(self) -> Any:
        from azure.identity import DefaultAzureCredential
        from azure.keyvault.keys import KeyClient

        return KeyClient(self._address.partition("/keys/")[0], DefaultAzureCredential())

    @cached_property
    def _key(self) -> Any:
        name, _, version = self._address.partition("/keys/")[2].partition("/")
        with translated(f"could not read the signing key {self._address}"):
            return self._client.get_key(name, version or None)

    def public_key(self) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicNumbers
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = self._key.key
        if key.crv != "P-256":
            raise BadSetting(f"{SETTING} names {self._address}, a key of curve {key.crv or 'none'}; use a P-256 key.")
        numbers = EllipticCurvePublicNumbers(int.from_bytes(key.x, "big"), int.from_bytes(key.y, "big"), SECP256R1())
        return numbers.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, data: bytes) -> bytes:
        import hashlib

        from azure.keyvault.keys.crypto import SignatureAlgorithm
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        crypto = self._client.get_cryptography_client(self._key.name, key_version=self._key.properties.version)
        try:
            with translated(f"the key {self._address} could not sign"):
                raw = crypto.sign(SignatureAlgorithm.es256, hashlib.sha256(data).digest()).signature
        except TrainyardError:
            del self._key
            raise
        return encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
