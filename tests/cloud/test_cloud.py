"""The supervisor starts the parts in order, restarts dead parts, and ends all of them at the end."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient, QueueServiceClient

from emulators.azureml.kernel import identity
from emulators.process import PartFailed, wait_for
from local import cloud, record, up
from local.declaration import Declaration


def ping(api: str) -> str:
    with urllib.request.urlopen(f"{api}/ping", timeout=10) as response:
        return str(response.read(), "utf-8")


def is_alive(pid: int) -> bool:
    """Whether this process runs. A process that ended but was not waited for counts as gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def upload(connection_string: str, name: str) -> None:
    with BlobClient.from_connection_string(connection_string, "drops", name) as blob:
        blob.upload_blob(b"x")


def test_an_upload_becomes_a_message(running: cloud.Cloud) -> None:
    """A blob written to drops is announced in the queue drop-events; a blob elsewhere is not."""
    with BlobClient.from_connection_string(running.connection_string, "output", "other") as blob:
        blob.upload_blob(b"x")
    upload(running.connection_string, "mnist/a/b")
    with QueueClient.from_connection_string(running.connection_string, "drop-events") as queue:
        wait_for(lambda: queue.peek_messages(), 60, "the event of the upload")
        assert len(queue.peek_messages(32)) == 1


@pytest.mark.parametrize(("kind", "call"), [("BlobRenamed", "RenameFile"), ("BlobCreated", "SftpCommit")])
def test_events_that_azurite_has_no_call_for(running: cloud.Cloud, kind: str, call: str) -> None:
    """A rename and a file uploaded by SFTP, published to the storage topic, reach the app as in Azure."""
    subject = "/blobServices/default/containers/drops/blobs/mnist/a/renamed"
    event = {
        "id": uuid.uuid4().hex,
        "subject": subject,
        "eventType": f"Microsoft.Storage.{kind}",
        "data": {"api": call},
    }
    body = json.dumps([{**event, "eventTime": "2026-01-01T00:00:00Z", "dataVersion": ""}]).encode()
    headers = {"aeg-sas-key": "any", "Content-Type": "application/json"}
    topic = Declaration(record.REPOSITORY / "infra").storage_topic
    request = urllib.request.Request(f"{running.eventgrid}/topics/{topic}/api/events", body, headers)
    context = ssl.create_default_context(cafile=str(running.certs))
    with QueueClient.from_connection_string(running.connection_string, "drop-events") as queue:
        queue.clear_messages()
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            assert answer.status == 200
        messages = wait_for(lambda: list(queue.peek_messages()), 60, "the event")
    assert json.loads(base64.b64decode(messages[0].content))["eventType"] == f"Microsoft.Storage.{kind}"


def test_the_lines_that_up_shows_drop_a_folder(running: cloud.Cloud, tmp_path: Path) -> None:
    """The Python lines of up's banner, run unchanged, upload the files of my-folder and then the marker."""
    (tmp_path / "my-folder" / "deep").mkdir(parents=True)
    (tmp_path / "my-folder" / "a.txt").write_bytes(b"a")
    (tmp_path / "my-folder" / "deep" / "b.txt").write_bytes(b"b")
    shown = up.banner(running.record, running.home, 1.0)
    assert f"TRAINYARD_CLOUD={running.home} " in shown  # other commands use another folder by default
    assert "TRAINYARD_CLOUD" not in up.banner(running.record, record.HOME, 1.0)
    lines = [line for line in shown.splitlines() if line.startswith("    ") and "trainyard.py" not in line]
    program = textwrap.dedent("\n".join(lines))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    with ContainerClient.from_connection_string(running.connection_string, "drops") as drops:
        names = list(drops.list_blob_names(name_starts_with="mnist/my-drop/"))
    assert names == ["mnist/my-drop/_SUCCESS", "mnist/my-drop/a.txt", "mnist/my-drop/deep/b.txt"]


def test_every_queue_and_container_is_there(running: cloud.Cloud) -> None:
    """The queues, containers and tables that infra/ declares exist before the app starts."""
    wanted = Declaration(record.REPOSITORY / "infra").storage
    with QueueServiceClient.from_connection_string(running.connection_string) as queues:
        assert {queue.name for queue in queues.list_queues()} >= set(wanted.queues)
    with BlobServiceClient.from_connection_string(running.connection_string) as blobs:
        assert {container.name for container in blobs.list_containers()} >= set(wanted.containers)
    with TableServiceClient.from_connection_string(running.connection_string) as tables:
        assert {table.name for table in tables.list_tables()} >= set(wanted.tables)


def test_a_wrong_filter_loses_events_here_too(app: Path, tmp_path: Path) -> None:
    """The local cloud uses the filter of infra/, so a mistake in the filter loses the event of an upload."""
    infra = shutil.copytree(record.REPOSITORY / "infra", tmp_path / "infra")
    file = infra / "modules" / "subscriptions.bicep"
    file.write_text(file.read_text().replace("/containers/drops/", "/containers/dropz/"))
    with cloud.Cloud.start(tmp_path / "home", cloud.Options(app=app, infra=infra)) as running:
        upload(running.connection_string, "mnist/a/b")
        context = ssl.create_default_context(cafile=str(running.certs))
        with urllib.request.urlopen(f"{running.eventgrid}/control/barrier", timeout=20, context=context) as answer:
            assert json.load(answer)["matched"] == 0
        with QueueClient.from_connection_string(running.connection_string, "drop-events") as queue:
            assert not queue.peek_messages()


def test_a_missing_role_is_found_here_too(app: Path, tmp_path: Path) -> None:
    """Without the role to deliver, Azure would refuse the subscription; the local cloud doesn't start, and prints
    the reason."""
    infra = shutil.copytree(record.REPOSITORY / "infra", tmp_path / "infra")
    file = infra / "modules" / "roles.bicep"
    file.write_text(file.read_text().replace("    roleId: queueSender", "    roleId: tableContributor"))
    with pytest.raises(PartFailed, match=r"queues/drop-events: the identity of .* may not write there"):
        cloud.Cloud.start(tmp_path / "home", cloud.Options(app=app, infra=infra))
    lock = record.Lock.acquire(tmp_path / "home")
    assert lock is not None
    lock.release()


def test_the_app_has_the_declared_roles_in_the_workspace(running: cloud.Cloud) -> None:
    """The app's identity can read the workspace's jobs, but can't delete its cluster."""
    context = ssl.create_default_context(cafile=str(running.certs))
    place = f"{running.azureml}{running.record.workspace_id}"

    def ask(method: str, path: str) -> str:
        headers = {"Authorization": f"Bearer {identity.token()}"}
        request = urllib.request.Request(f"{place}/{path}?api-version=2024-04-01", headers=headers, method=method)
        try:
            return str(urllib.request.urlopen(request, timeout=20, context=context).status)
        except urllib.error.HTTPError as error:
            return str(json.load(error)["error"]["code"])

    assert ask("GET", "jobs") == "200"
    assert ask("DELETE", "computes/cpu-cluster") == "AuthorizationFailed"


def test_the_record_says_where_everything_is(running: cloud.Cloud) -> None:
    """Another process reads the same addresses from cloud.json as the supervisor has."""
    found = record.read(running.home)
    assert found is not None
    assert ping(found.api) == "pong"
    assert (found.connection_string, found.pid) == (running.connection_string, os.getpid())
    assert set(found.parts) == {"storage", "eventgrid", "azureml", "host"}


def test_a_second_cloud_on_the_folder_is_refused(running: cloud.Cloud) -> None:
    """A second supervisor for the same folder is refused, with the address of the first one's cloud."""
    with pytest.raises(cloud.AlreadyRunning) as refused:
        cloud.Cloud.start(running.home)
    assert refused.value.record is not None
    assert refused.value.record.api == running.api


@pytest.mark.parametrize("part", ["host", "eventgrid", "azureml", "storage"])
def test_a_dead_part_comes_back_at_its_address(running: cloud.Cloud, part: str) -> None:
    """A killed part is restarted at its address, and the cloud works as before."""
    before = running.record
    os.kill(before.parts[part], 9)
    assert wait_for(running.heal, 60, f"the restart of {part}") == [part]
    after = record.read(running.home)
    assert after is not None
    assert after.parts[part] != before.parts[part]
    assert (after.api, after.azureml, after.eventgrid) == (before.api, before.azureml, before.eventgrid)
    assert after.connection_string == before.connection_string
    assert ping(after.api) == "pong"
    assert running.heal() == []


def test_a_part_that_keeps_dying_ends_the_patience(running: cloud.Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the allowed number of restarts the supervisor gives up, and names the part and its log."""
    monkeypatch.setattr(cloud, "RESTARTS", 0)
    os.kill(running.record.parts["host"], 9)
    with pytest.raises(PartFailed, match="host has ended"):
        wait_for(running.heal, 60, "the supervisor to give up")
    monkeypatch.undo()
    assert running.heal() == ["host"]


def test_a_stop_leaves_nothing_and_the_state_survives(app: Path, tmp_path: Path) -> None:
    """After a stop no process and no cloud.json is left. The next start finds the earlier blobs, and its API has
    the same address."""
    with cloud.Cloud.start(tmp_path, cloud.Options(app=app)) as first:
        upload(first.connection_string, "mnist/a/b")
        api = first.api
        os.kill(first.record.parts["azureml"], 9)  # a part that died by itself doesn't disturb the stop
        pids = first.record.parts.values()
    assert not any(map(is_alive, pids))
    assert not (tmp_path / "cloud.json").exists()
    assert record.read(tmp_path) is None
    with (
        cloud.Cloud.start(tmp_path, cloud.Options(app=app)) as second,
        BlobClient.from_connection_string(second.connection_string, "drops", "mnist/a/b") as blob,
    ):
        assert blob.download_blob().readall() == b"x"
        assert second.api == api


def test_a_port_that_another_program_has_is_said(tmp_path: Path) -> None:
    """The host restarts at its port; if another program has taken the port, `up` prints that the address is new."""
    said: list[str] = []
    assert cloud.port_before(tmp_path, said.append) == 0  # the first start
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (tmp_path / cloud.HOST_PORT).write_text(str(port))
        assert cloud.port_before(tmp_path, said.append) == 0
    assert said == [f"another program has port {port}: the page and the API get a new address"]
    assert cloud.port_before(tmp_path, said.append) == port


def test_a_part_that_cannot_start_takes_the_others_with_it(app: Path, tmp_path: Path) -> None:
    """If the app can't start, the error includes the end of its log, and nothing is left running or locked."""
    (broken := tmp_path / "app").mkdir()
    (broken / "function_app.py").write_text("raise ValueError('no such app')")
    (broken / "host.json").write_text('{"version": "2.0"}')
    with pytest.raises(PartFailed, match="no such app"):
        cloud.Cloud.start(tmp_path / "home", cloud.Options(app=broken))
    lock = record.Lock.acquire(tmp_path / "home")
    assert lock is not None
    lock.release()


def test_a_stale_record_counts_as_none(tmp_path: Path) -> None:
    """A cloud.json whose supervisor is gone is ignored, even if another process has its process id now."""
    record.Record(os.getpid(), "http://x/api", "", "", "", "", "", "", "").write(tmp_path)
    assert json.loads((tmp_path / "cloud.json").read_text())["pid"] == os.getpid()
    assert record.read(tmp_path) is None
