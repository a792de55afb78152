"""The files of an uploaded folder, and its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.errors import CliError
from cli.files.drop_upload import items
from cli.files.snapshot import snapshot
from cli.files.walk import files_below


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    (tmp_path / "folder" / "a.txt").write_text("a")
    (tmp_path / "folder" / "sub" / "b.txt").write_text("b")
    (tmp_path / "secret").write_text("s")
    return tmp_path / "folder"


def test_a_link_to_a_file_of_the_folder_is_that_file(folder: Path) -> None:
    """The link is uploaded under its own name, with the content of its target."""
    (folder / "sub" / "c.txt").symlink_to("../a.txt")
    assert [name for name, _ in files_below(folder)] == ["a.txt", "sub/b.txt", "sub/c.txt"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../secret", "points outside the folder"),
        ("../../secret", "points to ../../secret, which does not exist"),
        ("..", "points outside the folder"),
        ("sub", "points to a folder"),
        ("nothing", "points to nothing, which does not exist"),
        ("link", "points to link, which does not exist"),
    ],
)
def test_other_links_are_refused_by_name(folder: Path, target: str, reason: str) -> None:
    """A link out of the folder, to a folder or to nothing stops a drop and a job's folder; the error names the
    link."""
    (folder / "link").symlink_to(target)
    for send in (snapshot, lambda source: items(source, "mnist", "x")):
        with pytest.raises(CliError, match="link " + reason.replace(".", r"\.")):
            send(folder)


def test_a_link_that_is_left_out_stops_nothing(folder: Path) -> None:
    """Links that the ignore file leaves out are not checked."""
    (folder / "data").symlink_to("/")
    (folder / ".amlignore").write_text("data/\n")
    assert [file.name for file in snapshot(folder)] == [".amlignore", "a.txt", "sub/b.txt"]


def test_a_folder_may_itself_be_reached_by_a_link(folder: Path, tmp_path: Path) -> None:
    """A link on the command line stands for its target."""
    (tmp_path / "latest").symlink_to(folder)
    assert [file.name for file in snapshot(tmp_path / "latest")] == ["a.txt", "sub/b.txt"]


@pytest.mark.parametrize("target", [".env", "secrets/key", "secrets/deep/key"])
def test_a_link_to_a_file_that_is_left_out_is_refused(tmp_path: Path, target: str) -> None:
    """The content of an ignored file, or of a file in an ignored folder, is not uploaded under a link's name
    either."""
    file = tmp_path / target
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("PASSWORD=hunter2")
    (tmp_path / ".amlignore").write_text(".env\nsecrets/\n")
    (tmp_path / "train.py").symlink_to(target)
    (tmp_path / "other.py").write_text("pass")
    with pytest.raises(CliError, match=f"train.py points to {target}, which is ignored"):
        snapshot(tmp_path)
    (tmp_path / "train.py").unlink()
    (tmp_path / "chain").symlink_to("train.py")
    (tmp_path / "train.py").symlink_to("other.py")
    assert [sent.name for sent in snapshot(tmp_path)] == [".amlignore", "chain", "other.py", "train.py"]
