"""The commands of the trainers' READMEs, run verbatim."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser

from tests.e2e.docs_blocks import ROOT, blocks
from tests.trainers import launch

PAGES = [*sorted((ROOT / "trainers").glob("*/README.md"))]
TYPED = [
    words
    for page in PAGES
    for block in blocks(page)
    if block.language == "sh" and block.why_not != "needs Azure"
    for words in block.commands
]
LAUNCHERS = (["torchrun"], ["python", "-m", "elastic.launch"])
NO_DATA = 2  # as every trainer ends where its data can't be used


def launched() -> Iterator[tuple[list[str], list[str]]]:
    """Return, for each command with a launcher, the launcher's words and the script's words."""
    for words in TYPED:
        for launcher in LAUNCHERS:
            if words[: len(launcher)] == launcher:
                at = next(number for number, word in enumerate(words) if word.endswith(".py"))
                yield words[len(launcher) :], words[at:]


def scripts() -> list[list[str]]:
    """Return the words of each script, once, however it is launched."""
    alone = [words[1:] for words in TYPED if words[0] == "python" and words[1].endswith("train.py")]
    every = [*alone, *(script for _, script in launched() if script[0] != "train.py")]
    return [list(words) for words in dict.fromkeys(map(tuple, every))]


@pytest.mark.parametrize("words", scripts(), ids=" ".join)
def test_a_script_takes_the_words_of_its_readme(words: list[str], digits_folder: Path, tmp_path: Path) -> None:
    """Run in trainers/ with folders in place of the capitals, a command works; if it needs other data than the
    digits, it reports that the folder has none, and ends with 2."""
    data = tmp_path / "data"
    is_digits = words[0] == "mnist/train.py" and "--epochs" in words
    data.mkdir()
    if is_digits:
        shutil.copytree(digits_folder, data, dirs_exist_ok=True)
    real = {"DIR": str(data), "OUT": str(tmp_path / "out"), "CHECKPOINTS": str(tmp_path / "checkpoints")}
    done = launch.finish(launch.fork([real.get(word, word) for word in words], launch.environment()))
    assert done.code == (0 if is_digits else NO_DATA), done
    assert is_digits or str(data) in done.err[-1]


def test_text_to_try_a_training_with_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The script that writes Python's own documentation takes a folder; here with a library of one module."""
    (words,) = [words[1:] for words in TYPED if words[0] == "python" and words[1].endswith("pythondocs.py")]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "one.py").write_text('"""What one does."""\n')
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "lib"))
    monkeypatch.setattr("sys.argv", [words[0], *(str(tmp_path) if word == "DIR" else word for word in words[1:])])
    runpy.run_path(str(launch.TRAINERS / words[0]), run_name="__main__")
    assert (tmp_path / "library" / "one.txt").read_text("utf-8") == "What one does.\n\n"


def test_a_launcher_takes_the_words_of_its_readme() -> None:
    """torchrun, and the launcher of elastic trainings, accept their options and find the script after them."""
    found = list(launched())
    assert len(found) >= 7
    for words, script in found:
        read = get_args_parser().parse_args(words)
        assert [read.training_script, *read.training_script_args] == script


def test_what_is_installed_is_there() -> None:
    """`pip install` of a folder of this repository names a folder that is a package."""
    named = [word.partition("[")[0] for words in TYPED if words[:2] == ["pip", "install"] for word in words[2:]]
    folders = [name for name in named if name.startswith("./")]
    assert folders
    assert [name for name in folders if not (ROOT / name / "pyproject.toml").is_file()] == []
