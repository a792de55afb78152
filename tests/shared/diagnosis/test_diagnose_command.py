"""`python3 trainyard.py diagnose`: the command for people who have only a log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.diagnosis.__main__ import main

LOG = "epoch 1 loss 0.5\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


def test_it_prints_the_cause_the_line_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints text, or one JSON object."""
    (tmp_path / "log.txt").write_text(LOG)
    assert main([str(tmp_path / "log.txt")]) == 0
    text = capsys.readouterr().out
    assert "Cause: cuda_oom. Certainty: certain." in text
    assert "line 2: RuntimeError: CUDA out of memory" in text
    assert main([str(tmp_path / "log.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cause"] == "cuda_oom"


def test_nothing_in_a_log_speaks_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences are removed or shown as text."""
    (tmp_path / "log.txt").write_bytes(b"\x1b]0;title\x07ValueError: \x1b[2J\xc2\x9bboom\x08\n")
    main([str(tmp_path / "log.txt")])
    assert not {"\x1b", "\x07", "\x08", "\x9b"} & set(capsys.readouterr().out)


def test_a_file_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file exits with status 3, as in other commands."""
    assert main(["/nowhere/log.txt"]) == 3
    assert "/nowhere/log.txt can't be read: No such file or directory" in capsys.readouterr().err


def test_an_empty_log_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An empty log has no lines, so a cause found by exit code quotes none."""
    (tmp_path / "log").write_text("\n")
    assert main([str(tmp_path / "log")]) == 0
    assert capsys.readouterr().out == "The log is empty.\nCause: not_known. Certainty: none.\n"
    assert main([str(tmp_path / "log"), "--exit-code", "137"]) == 0
    assert "line" not in capsys.readouterr().out.split("Cause")[1].split("-")[0]
