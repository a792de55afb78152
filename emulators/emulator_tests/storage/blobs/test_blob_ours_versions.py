"""Versions: the state of a blob before a change is kept, and can be read by its version id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import (
    BlobClient,
    BlobProperties,
    BlobSasPermissions,
    ContainerClient,
    ContentSettings,
    generate_blob_sas,
)

from emulator_tests.storage import inside
from emulator_tests.storage.raw import Raw
from emulators.storage.blobs.extents import Upload
from emulators.storage.blobs.model import Blob
from emulators.storage.blobs.store import Blobs
from emulators.storage.keys import ACCOUNT, KEY


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("versions")
    with inside.start(home, published_key=True, versioning=True) as running:
        yield running.connection_string


@pytest.fixture
def box(account: str, request: pytest.FixtureRequest) -> Iterator[ContainerClient]:
    with ContainerClient.from_connection_string(account, f"box-{abs(hash(request.node.name))}") as container:
        container.create_container()
        yield container


def put(blob: BlobClient, text: str) -> str:
    return str(blob.upload_blob(text, overwrite=True)["version_id"])


def versions(box: ContainerClient) -> list[BlobProperties]:
    return list(box.list_blobs(include=["versions"]))


def test_an_overwritten_blob_stays_as_a_version(box: ContainerClient) -> None:
    """The old content and metadata can be read by the version id. The list has the oldest version first."""
    blob = box.get_blob_client("a")
    first, second = put(blob, "one"), put(blob, "two")
    third = str(blob.set_blob_metadata({"k": "v"})["version_id"])
    assert [(one.version_id, bool(one.is_current_version)) for one in versions(box)] == [
        (first, False), (second, False), (third, True)
    ]  # fmt: skip
    assert [blob.download_blob(version_id=one).readall() for one in (first, second, third)] == [b"one", b"two", b"two"]
    assert blob.get_blob_properties(version_id=second).metadata == {}
    assert [one.name for one in box.list_blobs()] == ["a"]


def test_a_deleted_blob_has_versions_only(box: ContainerClient) -> None:
    """Deleting a blob makes its current version a previous one. A new blob adds the next version."""
    blob = box.get_blob_client("a")
    first = put(blob, "one")
    blob.delete_blob()
    with pytest.raises(ResourceNotFoundError):
        blob.get_blob_properties()
    assert list(box.list_blobs()) == []
    for include in ("versions", "deletedwithversions"):
        (only,) = box.list_blobs(include=[include])
        assert (only.version_id, only.has_versions_only) == (first, True)
    assert blob.download_blob(version_id=first).readall() == b"one"
    second = put(blob, "two")
    assert [(one.version_id, one.has_versions_only) for one in versions(box)] == [(first, None), (second, None)]


def test_one_version_can_be_deleted(box: ContainerClient) -> None:
    """A previous version can be deleted, and so can the current one, after which the blob is gone."""
    blob = box.get_blob_client("a")
    first, second = put(blob, "one"), put(blob, "two")
    blob.delete_blob(version_id=first)
    assert [one.version_id for one in versions(box)] == [second]
    blob.delete_blob(version_id=second)
    assert versions(box) == []


def test_a_version_is_restored_by_copying(box: ContainerClient) -> None:
    """A version can be the source of a copy."""
    blob = box.get_blob_client("a")
    first = put(blob, "one")
    put(blob, "two")
    blob.start_copy_from_url(f"{blob.url}?versionid={first}")
    assert blob.download_blob().readall() == b"one"
    assert len(versions(box)) == 3


def test_appends_change_the_current_version(box: ContainerClient) -> None:
    """Appends, properties and tags create no version of an append blob. A snapshot does."""
    blob = box.get_blob_client("log")
    blob.create_append_blob()
    blob.append_block(b"1")
    blob.set_blob_tags({"a": "b"})
    blob.set_http_headers(ContentSettings(content_type="text/plain"))
    assert len(versions(box)) == 1
    snapshot = blob.create_snapshot()
    assert [one.version_id for one in versions(box)][1] == snapshot["version_id"]


def test_properties_of_a_block_blob_have_versions(box: ContainerClient) -> None:
    """Every write to a block blob creates a version, except for staged blocks, tags and tiers."""
    blob = box.get_blob_client("a")
    first = put(blob, "one")
    blob.set_http_headers(ContentSettings(content_type="text/plain"))
    blob.stage_block("MQ==", b"1")
    blob.set_standard_blob_tier("Cool")
    assert [one.version_id for one in versions(box)][:-1] == [first]
    assert blob.get_blob_properties(version_id=first).content_settings.content_type == "application/octet-stream"


@pytest.mark.parametrize(("query", "status"), [
    ("versionid=yesterday", 400), ("versionid=2020-01-01T00:00:00.0000000Z", 404),
    ("versionid=2020-01-01T00:00:00.0000000Z&snapshot=2020-01-01T00:00:00.0000000Z", 400),
])  # fmt: skip
def test_names_of_versions(box: ContainerClient, query: str, status: int) -> None:
    """An invalid time, a missing version, and a version of a snapshot are refused."""
    put(box.get_blob_client("a"), "one")
    assert Raw(box.url.rpartition("/")[0]).ask("GET", f"{box.container_name}/a", query).status == status


def test_a_signature_of_a_version(box: ContainerClient) -> None:
    """A version's signature allows reading only this version. Deleting a version needs the permission x."""
    blob = box.get_blob_client("a")
    first = put(blob, "one")
    put(blob, "two")
    end = datetime.now(UTC) + timedelta(hours=1)
    may = BlobSasPermissions(read=True, delete=True)
    sas = generate_blob_sas(
        ACCOUNT, box.container_name, "a", version_id=first, account_key=KEY, permission=may, expiry=end
    )
    with BlobClient.from_blob_url(f"{blob.url}?{sas}") as guest:
        assert guest.download_blob(version_id=first).readall() == b"one"
        with pytest.raises(HttpResponseError, match="AuthorizationPermissionMismatch"):
            guest.delete_blob(version_id=first)


def test_a_list_goes_on_within_a_blob(box: ContainerClient) -> None:
    """Pages of two entries list each version once."""
    names = [put(box.get_blob_client(name), text) for name in ("a", "b") for text in ("1", "2", "3")]
    pages = box.list_blobs(include=["versions"], results_per_page=2).by_page()
    assert [[one.version_id for one in page] for page in pages] == [names[:2], names[2:4], names[4:]]


def test_a_container_takes_its_versions_along(tmp_path: Path) -> None:
    """Deleting a container removes the bytes that only a version uses."""
    store = Blobs(tmp_path / "blobs.sqlite", tmp_path / "blobs", versioning=True)
    container = store.create_container("box", {})
    for text in (b"one", b"two"):
        upload = Upload(data=text, size=len(text), md5=b"")
        store.write(container.id, "a", Blob("BlockBlob", version=store.new_version()), upload, keeps=True)
    store.delete_container(container)
    while store.purge():
        pass
    assert [store._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("versions", "blobs")] == [
        0,
        0,
    ]
    store.close()


def test_an_account_may_stop_and_go_on(tmp_path: Path) -> None:
    """With `versioning` switched off, changing a blob keeps its last version, and the blob itself has no version."""
    found = list[str]()
    for versioning in (True, False, True):
        with (
            inside.start(tmp_path, published_key=True, versioning=versioning) as running,
            BlobClient.from_connection_string(running.connection_string, "box", "a") as blob,
        ):
            if not found:
                blob._get_container_client().create_container()
            found.append(put(blob, f"{versioning}"))
            with ContainerClient.from_connection_string(running.connection_string, "box") as box:
                names = [one.version_id for one in versions(box)]
    first, none, last = found
    assert none == "None"
    assert (names[0], names[-1], len(names)) == (first, last, 3)
