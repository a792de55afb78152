"""`up` and `down`, as separate programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulators.process import heed_ctrl_c, wait_for
from local import down, record

ROOT = Path(__file__).resolve().parents[2]


def command(*argv: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, "-m", *argv], cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment
    )


def are_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "cloud"


@pytest.fixture
def up(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A running `up` that has printed its banner."""
    argv = [sys.executable, "-m", "local", "up", "--home", str(home)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, cwd=ROOT, text=True, preexec_fn=heed_ctrl_c, **pipes) as process:
        wait_for(lambda: record.read(home) or process.poll() is not None, 60, "the cloud to be up")
        yield process
        process.kill()


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc to see which processes are left")
def test_ctrl_c_leaves_nothing_behind(up: subprocess.Popen[str], home: Path) -> None:
    """up explains how to drop data. Ctrl-C ends it with status 0 and ends every part; its state stays."""
    found = record.read(home)
    assert found is not None
    with urllib.request.urlopen(f"{found.api}/health", timeout=30) as response:
        assert response.status == 200
    up.send_signal(signal.SIGINT)
    said, _ = up.communicate(timeout=60)
    assert up.returncode == 0
    key = found.connection_string.partition("AccountKey=")[2].partition(";")[0]
    assert key not in said
    assert f"{home}/cloud.json" in said
    assert said.index("Stopping") < said.index("Nothing is left running")
    assert "upload_blob" in said
    assert "Nothing is left running" in said
    assert are_gone([*found.parts.values()])
    assert (home / "storage").is_dir()


def test_down_stops_it_and_purge_removes_its_state(up: subprocess.Popen[str], home: Path) -> None:
    """A second up prints where the first one is. down, which finds the cloud as other commands do, ends it. --purge
    leaves no folder; of a failed demo with its own cloud, only files that are not a cloud's stay."""
    beside = record.beside(home)
    beside.mkdir(mode=0o700)
    for name in ("lock", "thesis.txt"):
        (beside / name).touch()
    second = command("local", "up", "--home", home)
    found = record.read(home)
    assert found is not None
    assert second.returncode == 1
    assert found.api in second.stdout
    assert command("local", "down", "--purge", TRAINYARD_CLOUD=str(home)).returncode == 0
    assert up.wait(30) == 0
    assert not home.exists()
    assert [path.name for path in beside.iterdir()] == ["thesis.txt"]
    (home / "logs").mkdir(parents=True)
    said = command("local", "down", "--home", home, "--purge").stdout
    assert said == f"No local cloud is running.\nThere is no local cloud's state in {home}.\n"
    assert (home / "logs").is_dir()


def test_a_wrong_routes_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    """The error is printed without a log or a traceback, and nothing is left running."""
    (tmp_path / "routes.yaml").write_text("routes: {m: {trainer: nope, cluster: cpu}}")
    done = command("local", "up", "--home", tmp_path / "cloud", TRAINYARD_ROUTES=str(tmp_path / "routes.yaml"))
    assert done.returncode == 1
    assert "route 'm' names trainer 'nope'; there are " in done.stdout
    assert done.stdout.endswith(" The local cloud has stopped.\n")
    assert "Traceback" not in done.stdout
    assert record.read(tmp_path / "cloud") is None


def test_a_purge_that_breaks_off_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock, which marks a folder as a cloud's, is removed last."""
    for name in record.STATE:
        (tmp_path / name).mkdir() if name in ("azureml", "storage") else (tmp_path / name).touch()
    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            down.purge(tmp_path)
    assert down.purge(tmp_path) == f"Removed {tmp_path}."


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_supervisor_takes_its_parts_with_it(up: subprocess.Popen[str], home: Path) -> None:
    """If the supervisor is killed, every part ends by itself, and the supervisor's stale record is ignored."""
    found = record.read(home)
    assert found is not None
    up.kill()
    wait_for(lambda: are_gone([*found.parts.values()]), 120, "the parts to end")
    assert (home / "cloud.json").exists()
    assert record.read(home) is None
