"""fetch with answers that no sound deployment gives, and with interrupted downloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.api import fetch
from cli.api.fetch import File
from cli.commands import predict
from cli.errors import CliError

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
CONTENT = b"weights"


def archive(server: Any, name: str = "models/model.pt", etag: str = '"0x1"', **faults: Any) -> None:
    """A run `r` with one file, sound except for the given faults."""
    md5 = hashlib.md5(CONTENT).hexdigest()
    row = {"name": name, "size": len(CONTENT), "md5": md5, "etag": "0x1", **faults.pop("row", {})}
    place = faults.pop("place", f"/output/e/r/{name}")
    server.says("/api/runs/r", {"run": "r", "state": "completed"})
    server.says("/api/runs/r/artifacts", {"complete": True})
    manifest = faults.pop("manifest", json.dumps({"files": [row]}).encode())
    server.says("/api/runs/r/artifacts/manifest.json", b"", 302, location=f"{server.root}/output/e/r/manifest.json")
    server.says("/output/e/r/manifest.json", manifest)
    location = f"{server.root}{place}?sig=secret"
    server.says(f"/api/runs/r/artifacts/{name}", b"", 302, location=location)
    server.says(f"{place}?sig=secret", faults.pop("content", CONTENT), etag=etag)


def test_a_sound_file_is_kept(server: Any, run: Run, capsys: Capture, tmp_path: Path) -> None:
    """A file that matches the manifest is saved under its name; the storage never receives the API's key."""
    archive(server)
    server.says("/api/runs?limit=1", {"runs": [], "continue": None})
    run("login", server.url, "--key", "secret-key")
    assert run("fetch", "r") == 0
    assert (tmp_path / "r" / "models" / "model.pt").read_bytes() == CONTENT
    assert json.loads((tmp_path / "r" / "manifest.json").read_bytes())["files"][0]["name"] == "models/model.pt"
    keys = {path.startswith("/api"): headers.get("x-functions-key") for path, headers in server.asked}
    assert keys == {True: "secret-key", False: None}


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"content": b"weighty"}, "MD5"),
        ({"content": b"weight"}, "6 bytes instead of 7"),
        ({"row": {"md5": ""}, "etag": '"0x2"'}, "etag"),
        ({"place": "/output/e/other/models/model.pt"}, "linked to another file"),
        ({"place": "/output/e/r/models/old/model.pt"}, "linked to another file"),
        ({"name": "../model.pt"}, "is outside the folder"),
        ({"name": "C:/model.pt"}, "is outside the folder"),
        ({"manifest": b"half of i"}, "manifest.json of r can't be read"),
    ],
    ids=["content", "size", "etag", "another run", "another file", "up", "drive", "manifest"],
)
def test_what_does_not_fit_is_not_kept(
    server: Any, run: Run, capsys: Capture, tmp_path: Path, faults: dict[str, Any], words: str
) -> None:
    """Wrong bytes, another run's file, or a name that leaves the folder give an error and no file, not even a
    partial one."""
    archive(server, **faults)
    assert run("fetch", "r", "--url", server.url) == 1
    assert words in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_is_there_is_not_fetched_again(server: Any, run: Run, tmp_path: Path, capsys: Capture) -> None:
    """A file with the manifest's MD5 is left alone, and its download is not requested."""
    archive(server)
    assert run("fetch", "r", "--url", server.url) == 0
    server.asked.clear()
    assert run("fetch", "r", "--url", server.url, "--json") == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["new"] == 0
    assert [path for path, _ in server.asked] == [
        "/api/find?name=r", "/api/runs/r/artifacts", "/api/runs/r/artifacts/manifest.json", "/output/e/r/manifest.json",
        "/api/runs/r",
    ]  # fmt: skip


class Breaking:
    """A source that interrupts `broken` with Ctrl-C after three bytes while `endless` continues, as long as
    `breaks` is set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.breaks = True

    @contextmanager
    def artifact(self, run: str, name: str, offset: int = 0) -> Iterator[httpx.Response]:
        self.asked.append((name, offset))

        def content() -> Iterator[bytes]:
            if name == "endless" and self.breaks:
                yield from repeat(b"x" * 1024)
            elif self.breaks:
                yield CONTENT[:3]
                raise KeyboardInterrupt
            yield (CONTENT if name == "broken" else b"x" * 8)[offset:]

        yield httpx.Response(206 if offset else 200, headers={"etag": '"0x1"'}, content=content())


@pytest.mark.parametrize("md5", ["", hashlib.md5(CONTENT).hexdigest()])
def test_an_interrupted_fetch_goes_on_within_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, md5: str) -> None:
    """Ctrl-C ends all downloads at their next piece; the same call then requests only the rest, and after that
    nothing."""
    monkeypatch.setattr(fetch, "CHUNK", 1)
    source = Breaking()
    told: list[int] = []
    files = [File("broken", len(CONTENT), md5, "0x1"), File("endless", 8, "", "0x1")]
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(source, "r", files, tmp_path, told.append)
    [kept] = tmp_path.glob(".broken.*.part")
    assert kept.read_bytes() == CONTENT[:3]
    next(tmp_path.glob(".endless.*.part"), tmp_path / "none").unlink(missing_ok=True)
    told.clear()
    source.breaks = False
    assert fetch.fetch(source, "r", files, tmp_path, told.append) == files
    assert (tmp_path / "broken").read_bytes() == CONTENT
    assert ("broken", 2) in source.asked  # the last saved byte is requested again
    assert sum(told) == len(CONTENT) + 8
    asked = len(source.asked)
    assert fetch.fetch(source, "r", files, tmp_path, told.append) == []
    assert len(source.asked) == asked
    assert list(tmp_path.glob(".*.part")) == []


def test_an_unfinished_archive_is_not_fetched(server: Any, run: Run, capsys: Capture, tmp_path: Path) -> None:
    """Until the archive is complete there is nothing to fetch, and the message says how to wait."""
    server.says("/api/runs/r/artifacts", {"complete": False, "files": []})
    assert run("fetch", "r", "--url", server.url) == 1
    assert "--wait" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(28, "No space left on device"),
            "No space is left in {to}/models for models/model.pt (7 bytes). Finished files stay",
        ),
        (OSError(30, "Read-only file system", "f"), "f: Read-only file system."),
        (OSError("odd"), "odd."),
    ],
)
def test_a_full_disk_is_said_in_a_sentence(
    server: Any, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError, said: str
) -> None:
    """A refusal of the system is a sentence without a traceback; for a full disk it also says what needs the space,
    and how to resume."""

    def refuse(*_: Any) -> None:
        raise error

    archive(server)
    monkeypatch.setattr(fetch, "_download", refuse)
    assert run("fetch", "r", "--to", "to", "--url", server.url) == 1
    assert f"trainyard: {said.format(to=tmp_path / 'to')}" in capsys.readouterr().err.splitlines()[-1]


def test_what_is_deleted_during_a_fetch_is_said(server: Any, run: Run, capsys: Capture) -> None:
    """A file that was removed after the manifest was read is reported as gone, and no other file takes its name."""
    archive(server)
    del server.answers["/output/e/r/models/model.pt?sig=secret"]
    assert run("fetch", "r", "--url", server.url) == 3
    assert (
        "models/model.pt of r no longer exists: it was deleted after the archive was listed." in capsys.readouterr().err
    )


def test_a_file_is_no_folder_to_fetch_into(server: Any, run: Run, capsys: Capture, tmp_path: Path) -> None:
    """A file given to --to is left alone, and the message explains --to."""
    archive(server)
    (tmp_path / "mine").write_text("mine")
    assert run("fetch", "r", "--to", "mine", "--url", server.url) == 1
    assert f"{tmp_path / 'mine'} is a file; --to names a folder" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("row", [{"name": "a\0b", "size": 1}, {"name": None, "size": "x"}, {"size": 1}])
def test_a_manifest_of_odd_rows_is_said_in_a_sentence(server: Any, run: Run, capsys: Capture, row: Any) -> None:
    """Invalid names and sizes are refused, and nothing is written."""
    archive(server)
    server.says("/output/e/r/manifest.json", {"files": [row]})
    assert run("fetch", "r", "--url", server.url) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_model_that_is_damaged_is_said_without_advice_to_trust_it(
    server: Any, run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """predict passes on its program's own sentences, and explains other errors; a missing file exits with 3."""
    archive(server, "models/model.json")
    row = {"name": "models/model.json", "size": len(CONTENT), "md5": hashlib.md5(CONTENT).hexdigest()}
    server.says("/api/runs/r/artifacts", {"complete": True, "files": [row]})
    assert run("predict", "r", "none.png", "--url", server.url) == 3
    (tmp_path / "one.png").write_bytes(b"")
    program = tmp_path / "program.py"
    monkeypatch.setattr(predict, "PROGRAM", program)
    for code, words in (
        ("raise RuntimeError('Re-running torch.load with weights_only set to False ...')", "it is damaged"),
        ("import sys; sys.exit('bad') if 0 else (sys.stderr.write('expected an image'), sys.exit(2))", "an image"),
    ):
        program.write_text(code)
        assert run("predict", "r", "one.png", "--url", server.url) == 1
        said = capsys.readouterr().err
        assert words in said
        assert "weights_only" not in said
    ended = {"run": "r", "experiment": "e", "state": "completed", "archived_at": "2026-01-31T12:00:00+00:00"}
    server.says("/api/runs/r", ended)
    server.says("/api/runs?experiment=e&state=completed&limit=1", {"runs": [ended]})
    for files, words in (
        ([], "r is completed and left no models. A job leaves models in its output `models`"),
        ([row | {"name": "models/net.pt"}], "has no model.json, so no trainer of Trainyard wrote it"),
    ):
        server.says("/api/runs/r/artifacts", {"complete": True, "files": files})
        assert run("predict", "r", "one.png", "--url", server.url) == 1
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        (["mlflow/model/model.json", "mlflow/model/model.pt"], "mlflow/model"),
        (["models/model.json", "mlflow/m/model.json"], "models"),
        (["mlflow/m/MLmodel", "mlflow/m/data/model.pth"], "a model that was saved with MLflow, in mlflow/m"),
        (["logs/std_log.txt"], ""),
    ],
)
def test_predict_finds_a_model_that_was_saved_through_mlflow(files: list[str], outcome: str) -> None:
    """A trainer's model is found where MLflow keeps it; a model that would run code when loaded is refused, with
    its location."""
    if " " not in outcome:
        assert predict._models_folder("r", files) == outcome
        return
    with pytest.raises(CliError, match=outcome):
        predict._models_folder("r", files)


def test_a_place_that_can_not_be_written_is_said_without_a_traceback(
    server: Any, run: Run, capsys: Capture, tmp_path: Path
) -> None:
    """A file in the folder's place, or a folder in a file's place, gives a sentence with the path."""
    archive(server)
    there = tmp_path / "there"
    there.write_text("mine")
    for target in (there, there / "below"):
        assert run("fetch", "r", "--to", str(target), "--url", server.url) == 1
        said = capsys.readouterr().err
        assert str(there) in said
        assert "Traceback" not in said
    assert there.read_text() == "mine"
