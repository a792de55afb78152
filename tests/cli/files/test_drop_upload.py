"""Uploads to a real Azurite: which files are sent, in which order, and the state after an interruption."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ServiceRequestError
from azure.storage.blob import BlobClient, ContainerClient

from cli.errors import CliError, NotFound, Unreachable
from cli.files import arguments, blocks
from cli.files.drop_upload import BY, OWNER, Plan, Uploaded, free_name, items, plan, target_name, upload
from emulators.process import wait_for
from emulators.storage import services
from emulators.storage.services import Services

ACCESS_LOG = "access.log"  # in the storage's folder


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    home = tmp_path_factory.mktemp("account")
    with services.start(home, access_log=str(home / ACCESS_LOG)) as running:
        with ContainerClient.from_connection_string(running.connection_string, "drops") as drops:
            drops.create_container()
        yield running


@pytest.fixture
def drops(account: Services) -> Iterator[ContainerClient]:
    with ContainerClient.from_connection_string(account.connection_string, "drops") as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five files, one of them in a subfolder, and a job file."""
    for name in ("a.bin", "b.bin", "größe 1.bin", "below/c.bin", "job.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def send(drops: ContainerClient, folder: Path, name: str) -> Uploaded:
    return upload(drops, planned(drops, folder, name), lambda _: None)


def planned(drops: ContainerClient, folder: Path, name: str) -> Plan:
    return plan(drops, f"mnist/{name}", items(folder, "mnist", name), lambda _: None)


def there(drops: ContainerClient, name: str) -> dict[str, str]:
    """The drop's blobs, with the MD5 that the storage has for each."""
    blobs = drops.list_blobs(f"mnist/{name}/")
    return {b.name.removeprefix(f"mnist/{name}/"): bytes(b.content_settings.content_md5 or b"").hex() for b in blobs}


def test_the_marker_comes_last(drops: ContainerClient, folder: Path, account: Services) -> None:
    """All files are uploaded with their MD5s: the data first, then the job file, then the marker."""
    done = send(drops, folder, "order")

    def written() -> list[str]:
        return re.findall(r"PUT /devstoreaccount1/drops/mnist/order/(\S+) ", (account.home / ACCESS_LOG).read_text())

    wait_for(lambda: "_SUCCESS" in written(), 60, "the access log to tell of the marker")
    assert (done.files, done.kept, done.marked) == (5, 0, True)
    assert written()[-2:] == ["job.yaml", "_SUCCESS"]
    kept = there(drops, "order")
    assert kept.pop("_SUCCESS") is not None
    assert kept == {name: hashlib.md5(name.encode()).hexdigest() for name in kept}
    assert len(kept) == 5


def test_drops_whose_names_begin_alike_are_not_listed(
    drops: ContainerClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploading a drop called 1 among thousands from 10 to 1999 lists only its own blobs."""
    for number in range(30):
        drops.upload_blob(f"mnist/alike{number}/x", b"")
    send(drops, folder, "alike")
    listed: list[str] = []
    whole = ContainerClient.list_blobs

    def noted(self: ContainerClient, *args: Any, **options: Any) -> Iterator[Any]:
        for blob in whole(self, *args, **options):
            listed.append(blob.name)
            yield blob

    monkeypatch.setattr(ContainerClient, "list_blobs", noted)
    assert planned(drops, folder, "alike").added == ()
    assert len([name for name in listed if not name.startswith("mnist/alike/")]) <= 1


def test_an_interrupted_upload_goes_on(drops: ContainerClient, folder: Path) -> None:
    """An interrupted upload leaves no marker; the next one sends only the missing files, then the marker."""

    def breaks(_: int) -> None:
        raise KeyboardInterrupt

    drops.upload_blob("mnist/broken/a.bin", b"a.bin")  # without an MD5 the blob may be incomplete
    with pytest.raises(KeyboardInterrupt):
        upload(drops, planned(drops, folder, "broken"), breaks)
    before = there(drops, "broken")
    assert "_SUCCESS" not in before
    done = send(drops, folder, "broken")

    assert (done.files + done.kept, done.marked) == (5, True)
    assert set(there(drops, "broken")) == {"a.bin", "b.bin", "größe 1.bin", "below/c.bin", "job.yaml", "_SUCCESS"}


def test_the_same_size_is_not_the_same_file(drops: ContainerClient, folder: Path) -> None:
    """Unchanged files are not sent; a file of the same size with other bytes is sent, and then a new marker."""
    send(drops, folder, "again")
    assert send(drops, folder, "again") == Uploaded(0, 0, 5, False)
    (folder / "a.bin").write_bytes(b"A.BIN")

    assert send(drops, folder, "again") == Uploaded(1, 5, 4, True)
    assert there(drops, "again")["a.bin"] == hashlib.md5(b"A.BIN").hexdigest()


def test_a_lost_marker_is_written(drops: ContainerClient, folder: Path) -> None:
    """If only the marker is missing, only the marker is written."""
    send(drops, folder, "lost")
    drops.delete_blob("mnist/lost/_SUCCESS")

    assert send(drops, folder, "lost") == Uploaded(0, 0, 5, True)
    assert "_SUCCESS" in there(drops, "lost")


def test_an_archive_is_one_blob(drops: ContainerClient, tmp_path: Path) -> None:
    """A single archive needs no marker; anything else that is not a folder with files is refused, by name."""
    (tmp_path / "digits.zip").write_bytes(b"PK")
    done = send(drops, tmp_path / "digits.zip", target_name(tmp_path / "digits.zip", "digits"))

    assert (done.files, done.marked) == (1, True)
    assert [blob.name for blob in drops.list_blobs("mnist/digits.zip")] == ["mnist/digits.zip"]
    (tmp_path / "empty").mkdir()
    for name, error in (("empty", CliError), ("nowhere", NotFound)):
        with pytest.raises(error, match=name):
            items(tmp_path / name, "mnist", "x")


def test_an_archive_takes_parameters(drops: ContainerClient, tmp_path: Path) -> None:
    """With -p or --nodes an archive's drop is a folder, with the archive and a job file that names the archive as
    the data."""
    (archive := tmp_path / "digits.tar.gz").write_bytes(b"x")
    job = arguments.job_file(archive, {"epochs": 5}, nodes=2)
    name = target_name(archive, "small.tar.gz", in_a_folder=True)
    with arguments.written(job) as file:
        todo = arguments.with_job_file(items(archive, "mnist", name), f"mnist/{name}", file)
        upload(drops, plan(drops, f"mnist/{name}", todo, lambda _: None), lambda _: None)
    assert there(drops, "small").keys() == {"digits.tar.gz", "job.json", "_SUCCESS"}
    assert json.loads(drops.download_blob("mnist/small/job.json").readall()) == {
        "inputs": {"data": {"type": "uri_file", "path": "digits.tar.gz"}, "epochs": 5},
        "resources": {"instance_count": 2},
    }


def test_what_will_change_is_known_before(drops: ContainerClient, folder: Path) -> None:
    """The plan lists added, changed, unchanged and missing files and the last uploader, and writes nothing."""
    upload(drops, planned(drops, folder, "plan"), lambda _: None, said={BY: "größe@laptop:/home/ada", OWNER: ""})
    (folder / "a.bin").write_bytes(b"A.BIN")
    (folder / "b.bin").unlink()
    (folder / "d.bin").write_bytes(b"d")
    before = there(drops, "plan")
    todo = planned(drops, folder, "plan")

    assert [item.blob for item in todo.added] == ["mnist/plan/d.bin"]
    assert [item.blob for item in todo.changed] == ["mnist/plan/a.bin"]
    assert (todo.gone, len(todo.same), todo.by) == (("mnist/plan/b.bin",), 3, "größe@laptop:/home/ada")
    assert there(drops, "plan") == before


def test_delete_makes_the_drop_like_the_folder(drops: ContainerClient, folder: Path) -> None:
    """Missing files stay in the drop unless --delete is given; then a new marker closes the drop."""
    send(drops, folder, "gone")
    (folder / "b.bin").unlink()
    assert send(drops, folder, "gone").marked is False
    done = upload(drops, planned(drops, folder, "gone"), lambda _: None, delete=True)

    assert (done.files, done.deleted, done.marked) == (0, 1, True)
    assert "b.bin" not in there(drops, "gone")


def test_a_free_name(drops: ContainerClient, folder: Path) -> None:
    """The next free number is appended to the name, and for an archive before its extension."""
    for name in ("twin", "twin-2", "twin.tar.gz"):
        drops.upload_blob(f"mnist/{name}/x" if "." not in name else f"mnist/{name}", b"")
    assert [free_name(drops, "mnist", name) for name in ("twin", "twin.tar.gz")] == ["twin-3", "twin-2.tar.gz"]


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("x.tar.gz", "small", "small.tar.gz"),
        ("x.TGZ", "small", "small.TGZ"),
        ("x.zip", "small.tar", "small.tar"),
        ("x.zip", "", "x.zip"),
    ],
)
def test_an_archive_keeps_its_extension(tmp_path: Path, file: str, name: str, expected: str) -> None:
    """An archive under a name without an extension gets its own extension, because the name marks a drop as an
    archive."""
    (tmp_path / file).write_bytes(b"PK")
    assert target_name(tmp_path / file, name) == expected


def test_an_account_that_is_away(folder: Path) -> None:
    """If the storage account does not answer, the error says so and the command may be retried."""
    away = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;BlobEndpoint=http://127.0.0.1:9/a;"
    with (
        ContainerClient.from_connection_string(away, "drops", retry_total=0) as drops,
        pytest.raises(Unreachable, match="does not answer"),
    ):
        send(drops, folder, "x")


def test_a_drops_name_leads_nowhere_else(run: Callable[..., int], tmp_path: Path, capsys: Any) -> None:
    """A name with .., . or an empty part is refused in a sentence, before any request or upload."""
    (tmp_path / "digits").mkdir()
    for target in ("mnist/../x", "mnist/./x", "mnist/a//b", "../x", "/"):
        assert run("drop", "digits", target, "--url", "http://127.0.0.1:9") == 1
        assert "write route/name, without empty parts" in capsys.readouterr().err


def test_an_interrupted_large_file_goes_on_where_it_was(
    drops: ContainerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploaded blocks are not sent again; the progress counts all bytes; the blob has the file's MD5."""
    monkeypatch.setattr(blocks, "BLOCK", 1 << 16)
    content = random.Random(1).randbytes(20 * (1 << 16) + 5)
    (tmp_path / "large.bin").write_bytes(content)
    staged: list[str] = []
    stage = BlobClient.stage_block

    def counted(self: BlobClient, block_id: str, *args: Any, **kwargs: Any) -> Any:
        if len(staged) == 7:
            raise ServiceRequestError("the connection was cut")
        staged.append(block_id)
        return stage(self, block_id, *args, **kwargs)

    monkeypatch.setattr(BlobClient, "stage_block", counted)
    with pytest.raises(Unreachable):
        send(drops, tmp_path, "large")
    assert there(drops, "large") == {}
    first = set(staged)
    seen: list[int] = []
    staged[:] = [""] * 8  # no connection is cut from here on
    upload(drops, planned(drops, tmp_path, "large"), seen.append)
    assert len(staged[8:]) == 21 - len(first)
    assert first.isdisjoint(staged[8:])
    assert sum(seen) == len(content)
    assert there(drops, "large")["large.bin"] == hashlib.md5(content).hexdigest()
    assert drops.download_blob("mnist/large/large.bin").readall() == content
