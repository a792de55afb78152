"""How a registry's folder of asset files is read, without a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulators.azureml.workspace.registries import Registries
from emulators.azureml.workspace.registry_files import Reading


def read(folder: Path, **files: str) -> Reading:
    """Return a registry `team` with these files. `__` in a name stands for a slash, and `_` before the ending for a
    dot."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/")[::-1].replace("_", ".", 1)[::-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reading = Reading("team", lambda place: f"https://a.blob.core.windows.net/registries/{place}")
    reading.read(folder)
    return reading


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: d\npath: ../../etc/passwd", "must lie below the folder of the file"),
        ("name: d\npath: /etc/passwd", "must lie below the folder of the file"),
        ("name: d\npath: ./nothing", "no file at ./nothing"),
        ("name: d", "needs a path"),
        ("version: 1", "mapping with a name"),
        ("a: [b", "while parsing"),
        ("- 1", "mapping with a name"),
        ("name: d\nversion: 2024-13-45\npath: x", "month must be in 1..12"),
        (f"name: {'[' * 2000}", "recursion"),
    ],
)
def test_a_file_that_can_not_be_read_stops_no_other(tmp_path: Path, text: str, why: str) -> None:
    """An unreadable file is a problem with a reason, and the registry has the other files."""
    found = read(tmp_path, data__bad_yml=text, data__good_yml="name: good\npath: azureml://datastores/d/paths/x")
    assert [(asset.name, asset.version) for asset in found.written] == [("good", "1")]
    assert why in found.problems["data/bad.yml"]


def test_what_lies_beside_a_file_is_sent_under_its_content(tmp_path: Path) -> None:
    """Equal content has equal addresses, and different content has different ones. Only a folder's address ends in
    a slash."""
    files = {
        "models__net__w_txt": "one",
        "models__net_yml": "name: net\npath: net",
        "data__d_yml": "name: d\npath: d.txt",
    }
    first, again = read(tmp_path / "a", data__d_txt="x", **files), read(tmp_path / "b", data__d_txt="x", **files)
    other = read(tmp_path / "c", data__d_txt="y", **files)
    assert set(first.sent) == set(again.sent)
    model, data = first.written
    assert (model.properties["modelUri"][-1], data.properties["dataUri"].rpartition("/")[2]) == ("/", "d.txt")
    assert (other.written[0], other.written[1]) != (model, data)
    assert other.written[0] == model


def test_a_file_that_moves_makes_another_folder(tmp_path: Path) -> None:
    """Moving a file changes the folder's address, so no old file remains in the folder."""
    says = {"models__net_yml": "name: net\npath: net"}
    [before] = read(tmp_path / "a", models__net__w_txt="x", **says).sent
    [after] = read(tmp_path / "b", models__net__in__w_txt="x", **says).sent
    assert before.removesuffix("/w.txt") != after.removesuffix("/in/w.txt")


def test_files_whose_names_no_blob_can_have_are_a_problem(tmp_path: Path) -> None:
    """The reason has the file's name, and the registry has the other assets."""
    (tmp_path / "models" / "net").mkdir(parents=True)
    (tmp_path / "models" / "net" / os.fsdecode(b"caf\xe9")).touch()
    found = read(tmp_path, models__net_yml="name: net\npath: net", models__other_yml="name: o\npath: azureml:a:1")
    assert [asset.name for asset in found.written] == ["o"]
    assert found.problems["models/net.yml"] == (
        "The name of a blob must be UTF-8, and that of the file b'caf\\xe9' is not."
    )


def test_what_a_version_can_not_be_is_a_problem_of_its_registry(tmp_path: Path) -> None:
    """An unknown type, or a repeated version with other content, is a named problem. The first version stays."""
    found = read(
        tmp_path,
        data__a_yml="name: d\ntype: tensor\npath: azureml://datastores/d/paths/x",
        environments__a_yml="name: e\nimage: python:3.11",
        environments__b_yml="name: e\nimage: python:3.12",
        components__c_yml="name: c\ncommand: x\ncode: azureml:c:1\nsince: 2024-01-01",
    )
    registries = Registries()
    registries.replace({"team": found.written}, {})
    problems = registries.get("TEAM").problems
    assert "dataType is 'tensor'" in problems["data/d:1"]
    assert "with another image" in problems["environments/e:1"]
    assert "date is not JSON serializable" in problems["components/c:1"]
    assert registries.get("team").assets.get("environments", "e", "1").properties["image"] == "python:3.11"
