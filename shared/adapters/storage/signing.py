"""Addresses that read or write one blob for a while, signed with the account's key, or by the app's own identity.

With an identity the service gives a user delegation key, which signs as many addresses as one likes until it ends. It
is asked for once in some hours, so an address usually costs no request.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from shared.adapters.translation import translated

if TYPE_CHECKING:
    from azure.storage.blob import BlobSasPermissions, BlobServiceClient, UserDelegationKey

KEY_LIFE = timedelta(hours=6)  # the service allows 7 days; a key can't be taken back, other than all of them at once
MARGIN = timedelta(minutes=5)  # between our clock and the service's, and before a key's end


class Signer:
    """May be used by several threads."""

    def __init__(self, service: BlobServiceClient) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._key: UserDelegationKey | None = None
        self._key_ends = datetime.min.replace(tzinfo=UTC)

    def read_url(self, container: str, name: str, seconds: float) -> str:
        """The blob's address with a signature that allows reading it, as a file to save, for so many seconds."""
        from azure.storage.blob import BlobSasPermissions

        # A browser must not run what a training wrote, so it is never shown, always saved.
        saved = f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}"
        return self._signed(container, name, seconds, BlobSasPermissions(read=True), content_disposition=saved)

    def write_url(self, container: str, name: str, seconds: float) -> str:
        """The same for writing it. Reading is allowed too: that is how storage tells which blocks it has already."""
        from azure.storage.blob import BlobSasPermissions

        return self._signed(container, name, seconds, BlobSasPermissions(read=True, create=True, write=True))

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        """The same for making it and nothing else; with `replace` also for writing over what is there."""
        from azure.storage.blob import BlobSasPermissions

        return self._signed(container, name, seconds, BlobSasPermissions(create=True, write=replace))

    def _signed(self, container: str, name: str, seconds: float, rights: BlobSasPermissions, **more: Any) -> str:
        from azure.storage.blob import generate_blob_sas

        address = self._service.get_blob_client(container, name).url.partition("?")[0]
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        signature = generate_blob_sas(
            str(self._service.account_name),
            container,
            name,
            permission=rights,
            expiry=ends,
            protocol="https" if address.startswith("https:") else "https,http",
            **more,
            **self._secret(ends),
        )
        return f"{address}?{signature}"

    def _secret(self, ends: datetime) -> dict[str, Any]:
        if key := getattr(self._service.credential, "account_key", None):
            return {"account_key": key}
        return {"user_delegation_key": self._delegated(ends)}

    def _delegated(self, ends: datetime) -> UserDelegationKey:
        """A key that lives longer than the signature that it is for."""
        with self._lock:
            if self._key is None or ends + MARGIN > self._key_ends:
                now = datetime.now(UTC)
                with translated("the storage account gave no key to sign with"):
                    self._key = self._service.get_user_delegation_key(now - MARGIN, now + KEY_LIFE)
                self._key_ends = now + KEY_LIFE
            return self._key
