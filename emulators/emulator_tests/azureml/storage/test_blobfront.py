"""The part's TLS front for Azurite, which the SDK's datastores use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient

from emulator_tests.azureml.clouds import Cloud
from emulators.storage.keys import ACCOUNT
from emulators.storage.services import Services

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def front(cloud: Cloud, account: Services) -> Iterator[BlobServiceClient]:
    bundle = cloud.part.info["env"]["REQUESTS_CA_BUNDLE"]
    with BlobServiceClient(f"{cloud.url}/{ACCOUNT}", credential=account.key, connection_verify=bundle) as client:
        client.create_container("fronted")
        yield client


def test_blobs_pass_through_unchanged(front: BlobServiceClient) -> None:
    """Names, metadata, empty bodies, lists, ranges and errors are equal to Azurite's own answers."""
    blob = front.get_blob_client("fronted", "ä b/ü&c=1.bin")
    blob.upload_blob(b"0123456789", metadata={"key": "value"})
    assert blob.download_blob(offset=3, length=4).readall() == b"3456"
    assert blob.get_blob_properties().metadata == {"key": "value"}
    front.get_blob_client("fronted", "empty").upload_blob(b"")
    assert list(front.get_container_client("fronted").list_blob_names()) == ["empty", "ä b/ü&c=1.bin"]
    blob.delete_blob()
    with pytest.raises(ResourceNotFoundError):
        blob.download_blob()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_large_blobs_take_no_memory(cloud: Cloud, front: BlobServiceClient) -> None:
    """Uploading and downloading 48 MiB in one request raises the part's peak memory by less than 16 MiB."""
    data = os.urandom(48 * MIB)
    blob = front.get_blob_client("fronted", "large")
    before = _peak_memory(cloud.part.process.pid)
    blob.upload_blob(data, overwrite=True)
    digest = hashlib.sha256()
    for chunk in blob.download_blob().chunks():
        digest.update(chunk)
    assert digest.digest() == hashlib.sha256(data).digest()
    assert _peak_memory(cloud.part.process.pid) - before < 16 * MIB


def _peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
