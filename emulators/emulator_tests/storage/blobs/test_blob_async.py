"""The package's asynchronous client sends many parallel requests."""

from __future__ import annotations

import asyncio
import os

from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import ContainerClient as SyncContainerClient
from azure.storage.blob.aio import BlobServiceClient

from emulator_tests.storage.conftest import Side
from emulators.storage.keys import ACCOUNT, KEY


def test_fifty_at_once(side: Side, container: SyncContainerClient) -> None:
    """Parallel uploads, lists, downloads and deletes of one client do not affect each other."""
    data = {f"{number:02}": os.urandom(1000 + number) for number in range(50)}

    async def work() -> tuple[list[bytes], list[str]]:
        key = AzureNamedKeyCredential(ACCOUNT, KEY)
        async with BlobServiceClient(side.blob_url, key, retry_total=0) as service:
            client = service.get_container_client(container.container_name)
            await asyncio.gather(*(client.upload_blob(name, content) for name, content in data.items()))
            names = [blob.name async for blob in client.list_blobs(results_per_page=20)]
            read = await asyncio.gather(*(_read(client, name) for name in names))
            await asyncio.gather(*(client.delete_blob(name) for name in names))
            return list(read), names

    read, names = asyncio.run(work())
    assert names == sorted(data)
    assert dict(zip(names, read, strict=True)) == data
    assert list(container.list_blobs()) == []


async def _read(client: object, name: str) -> bytes:
    download = await client.download_blob(name)  # type: ignore[attr-defined]
    return bytes(await download.readall())
