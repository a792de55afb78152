"""The demo, as a newcomer runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from local import record
from tests.gate.scripts import ROOT, load

recording = load("recording")


def demo(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", "demo", "--home", str(home), *argv]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.timeout(300)
def test_the_digits_become_a_model(tmp_path: Path) -> None:
    """The default demo succeeds with at least 90 % on two processes, and its output matches the README's picture."""
    done = demo(tmp_path, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["state"], told["nodes"], told["world_size"]) == ("completed", 2, 2)
    assert told["test_accuracy"] >= 0.9
    assert told["cluster"] == {"name": "cpu-cluster", "nodes": 0}
    assert any(name.endswith("/manifest.json") for name in told["output"])
    assert any("/models/" in name for name in told["output"])
    assert Path(told["plot"]).read_bytes().startswith(b"\x89PNG")
    assert list(told["phases"]) == ["cloud", "upload", "seal", "submit", "allocate", "train", "archive", "to_zero"]
    assert record.read(tmp_path) is None
    printed = done.stdout[: done.stdout.rindex("\n{") + 1]
    lines = [line for _, line in recording.shortened((0.0, line) for line in printed.splitlines())]
    picture = recording.PICTURE.read_text("utf-8")
    assert recording.shape(lines) == recording.shape(recording.printed_in(picture)), (
        "the picture is old: .ci/recording.py"
    )


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    """--data with a folder that lacks the files ends with status 1 and the missing names, before any cloud starts."""
    done = demo(tmp_path / "home", "--data", str(tmp_path))
    assert done.returncode == 1
    assert "train-images-idx3-ubyte" in done.stdout
    assert not (tmp_path / "home" / "storage").exists()
