"""URLs for reading or writing one blob for a limited time, signed with the account's key or by the app's own identity.

With an identity, the service issues a user delegation key, which signs any number of URLs until it expires. It is
requested once in some hours, so a URL usually costs no request.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from shared.adapters.translation import translated

if TYPE_CHECKING:
    from azure.storage.blob import BlobSasPermissions, BlobServiceClient, UserDelegationKey

KEY_LIFE = timedelta(hours=6)  # the service allows 7 days; keys can only be revoked all at once
MARGIN = timedelta(minutes=5)  # for clock differences with the service, and before a key expires


class AddressSigner:
    """Safe to share between threads."""

    def __init__(self, service: BlobServiceClient) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._key: UserDelegationKey | None = None
        self._key_ends = datetime.min.replace(tzinfo=UTC)

    def read_url(self, container: str, name: str, seconds: float) -> str:
        """Return a URL that allows reading the blob, as a file to save, for this many seconds."""
        from azure.storage.blob import BlobSasPermissions

        # A browser must not run a file that a training wrote, so it always saves the file and never shows it.
        saved = f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}"
        return self._signed(container, name, seconds, BlobSasPermissions(read=True), content_disposition=saved)

    def write_url(self, container: str, name: str, seconds: float) -> str:
        """Return a URL that allows writing the blob. Reading is allowed, too, because a client lists the stored
        blocks.
        """
        from azure.storage.blob import BlobSasPermissions

        return self._signed(container, name, seconds, BlobSasPermissions(read=True, create=True, write=True))

    def create_url(self, container: str, name: str, seconds: float, replace: bool = False) -> str:
        """Return a URL for creating the blob. With `replace`, the URL also allows overwriting."""
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
        """Return a delegation key with a later expiry than the signature."""
        with self._lock:
            if self._key is None or ends + MARGIN > self._key_ends:
                now = datetime.now(UTC)
                with translated("the storage account did not return a key for signing"):
                    self._key = self._service.get_user_delegation_key(now - MARGIN, now + KEY_LIFE)
                self._key_ends = now + KEY_LIFE
            return self._key
