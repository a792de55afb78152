"""A blob lease with which one listener excludes all other listeners of its kind on a storage account."""

from __future__ import annotations

import asyncio
import logging

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError
from azure.storage.blob import StorageErrorCode
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, ContainerClient

from emulators.host.stop import Stop

log = logging.getLogger("host.leases")


class Lease:
    """A lease on one blob, renewed for `seconds` at a time. Other hosts retry at this interval.

    Create it, call `acquire`, keep `renew` running, and call `release` at the end.
    """

    def __init__(self, container: ContainerClient, name: str, seconds: int) -> None:
        self._seconds = seconds
        self._container = container
        self._blob: BlobClient = container.get_blob_client(name)
        self._lease: BlobLeaseClient | None = None
        self._name = name

    async def acquire(self, stop: Stop) -> bool:
        """Wait until this host has the lease. Returns False if the host stops first. A missing container or blob is
        created."""
        waiting = False
        while not stop.is_set():
            try:
                await self._ensure_blob()
                self._lease = await self._blob.acquire_lease(self._seconds)
                return True
            except AzureError as exc:
                held = isinstance(exc, HttpResponseError) and exc.status_code == 409
                if not waiting:
                    log.info("%s: waiting: %s", self._name, "another host holds it" if held else exc)
                waiting = True
            await stop.within(self._seconds)
        return False

    async def renew(self) -> None:
        """Renew the lease repeatedly. Returns when a renewal fails, because another host may then have the lease."""
        assert self._lease is not None
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                await self._lease.renew()
            except AzureError as exc:
                log.warning("%s: the lease is lost: %s", self._name, exc)
                self._lease = None
                return

    async def release(self) -> None:
        """Release the lease if this host holds it. After an error, which is logged, the lease expires by itself."""
        if self._lease is None:
            return
        try:
            await self._lease.release()
        except AzureError as exc:
            log.warning("%s: cannot release: %s", self._name, exc)
        self._lease = None

    async def _ensure_blob(self) -> None:
        try:
            await self._blob.upload_blob(b"", overwrite=False)
        except ResourceExistsError:
            return
        except HttpResponseError as exc:
            if getattr(exc, "error_code", None) == StorageErrorCode.CONTAINER_NOT_FOUND:
                await self._container.create_container()
                await self._blob.upload_blob(b"", overwrite=False)
            elif exc.status_code != 412:  # 412: leased, so it exists
                raise
