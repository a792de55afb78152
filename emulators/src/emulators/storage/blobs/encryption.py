"""Encryption with keys that the client provides, and with encryption scopes. Pure.

Nothing is encrypted here. The service stores the SHA-256 of a blob's key or the name of its scope, and requires them in
requests as Azure does. Every valid name is a scope.

https://learn.microsoft.com/azure/storage/blobs/encryption-customer-provided-keys

https://learn.microsoft.com/azure/storage/blobs/encryption-scope-overview
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError, invalid_header

SCOPE = "x-ms-encryption-scope"
HASH = "x-ms-encryption-key-sha256"
ACCOUNT_KEY = "$account-encryption-key"  # the name of the account's own encryption, where no scope is set
NAME = re.compile(r"[A-Za-z0-9-]{3,63}")


@dataclass(frozen=True)
class Encryption:
    """How a blob is encrypted in addition to the account's own encryption: the SHA-256 of a key, in base64, or a
    scope."""

    key: str = ""
    scope: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {name: value for name, value in ((HASH, self.key), (SCOPE, self.scope)) if value}

    def open(self, asked: Encryption) -> None:
        """Return if a request with this encryption may read the blob. Raises StorageError, 409."""
        if self.key and not asked.key:
            raise _not_provided()
        if asked.key and not self.key:
            sentence = "The blob is not encrypted, but a customer specified encryption was provided in the request."
            raise StorageError(409, "BlobDoesNotUseCustomerSpecifiedEncryption", sentence)
        if asked.key != self.key:
            raise _mismatch()

    def change(self, asked: Encryption, default: str) -> None:
        """Return if a request with this encryption may write to the blob. `default` is the container's scope.

        Raises StorageError, 409.
        """
        self.open(asked)
        if not self.key and (asked.scope or default) != self.scope:
            raise _mismatch() if asked.scope else _not_provided()


def asked_for(call: Call, prefix: str = "x-ms-") -> Encryption:
    """Return the encryption in a request. `x-ms-source-` is the prefix for the source of a copy.

    Raises StorageError: 400 for an invalid key or scope, 403 for a scope that the signature does not have.
    """
    key = _key(call, prefix)
    signed = call.text("ses") if "sig" in call.query else ""
    scope = call.headers.get(SCOPE, "") or signed
    if scope and not NAME.fullmatch(scope):
        raise invalid_header(SCOPE, scope)
    if key and scope:
        raise invalid_header(f"{prefix}encryption-key", "a key, beside an encryption scope")
    if signed and scope != signed:
        sentence = f"The signature is for the encryption scope {signed}, not for {scope}."
        raise StorageError(403, "AuthorizationFailure", sentence)
    return Encryption(key, "" if prefix != "x-ms-" else scope)


def of_new(asked: Encryption, default: str, fixed: bool) -> Encryption:
    """Return the encryption of a new blob in a container with this default scope. Raises StorageError, 403, if the
    container's scope is `fixed` and the request asks for another encryption."""
    if fixed and asked not in (Encryption(), Encryption(scope=default)):
        sentence = "The request is forbidden by the encryption policy of the container."
        raise StorageError(403, "RequestForbiddenByContainerEncryptionPolicy", sentence)
    return asked if asked.key or asked.scope else Encryption(scope=default)


def of_container(call: Call) -> tuple[str, bool]:
    """Return the default scope of a new container, and whether blobs may have no other. Raises StorageError, 400."""
    scope, name = call.headers.get("x-ms-default-encryption-scope", ""), "x-ms-deny-encryption-scope-override"
    fixed = call.headers.get(name, "false").lower()
    if scope == ACCOUNT_KEY:
        scope = ""
    if scope and not NAME.fullmatch(scope):
        raise invalid_header("x-ms-default-encryption-scope", scope)
    if fixed not in ("true", "false") or (fixed == "true" and not scope):
        raise invalid_header(name, fixed)
    return scope, fixed == "true"


def _key(call: Call, prefix: str) -> str:
    """Return the SHA-256 of the request's key, in base64, '' without a key. Raises StorageError, 400."""
    name = f"{prefix}encryption-key"
    if (text := call.headers.get(name)) is None:
        return ""
    if call.headers.get(f"{prefix}encryption-algorithm", "").upper() != "AES256":
        raise invalid_header(f"{prefix}encryption-algorithm", call.headers.get(f"{prefix}encryption-algorithm", ""))
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise invalid_header(name, "a key that is not 32 bytes in base64")
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode()
    if call.headers.get(f"{name}-sha256", digest) != digest:
        raise invalid_header(f"{name}-sha256", call.headers[f"{name}-sha256"])
    return digest


def _mismatch() -> StorageError:
    sentence = "The given customer specified encryption does not match the encryption used to encrypt the blob."
    return StorageError(409, "BlobCustomerSpecifiedEncryptionMismatch", sentence)


def _not_provided() -> StorageError:
    sentence = "The blob is encrypted with customer specified encryption, but it was not provided in the request."
    return StorageError(409, "BlobUsesCustomerSpecifiedEncryption", sentence)


def check_blocks(staged: str | None, asked: Encryption) -> None:
    """Raise StorageError, 409, if the uncommitted blocks of a blob have another encryption. None: the blob has no
    uncommitted blocks."""
    if staged is not None and staged != written(asked):
        raise _mismatch()


def written(encryption: Encryption) -> str:
    """Return an encryption as text, '' for the account's own encryption."""
    return f"key {encryption.key}" if encryption.key else f"scope {encryption.scope}" if encryption.scope else ""
