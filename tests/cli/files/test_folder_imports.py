"""The packages that a command's script imports, and which of them nobody asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.errors import CliError
from cli.files.folder_imports import import_line, imported, unnamed

SCRIPT = """
import os, torch
import torchvision.transforms as transforms
from sklearn.metrics import log_loss
from models import *
from .beside import x
from lib.deep import y
import google.cloud

try:
    import wandb
except ImportError:
    wandb = None


def plot():
    import matplotlib
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"train.py": SCRIPT, "models/__init__.py": "", "lib/deep.py": "", "bad.py": "import ("}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "torchrun --nproc_per_node 2 train.py --lr 1",
        "python -m train",
        "A=1 python ./train.py && ls",
    ],
)
def test_the_imports_of_the_script_are_its_packages(folder: Path, command: str) -> None:
    """Modules of the folder and of Python are none, and an import that may fail is none either."""
    assert imported(command, folder) == ("train.py", ("torch", "torchvision", "scikit-learn"))


@pytest.mark.parametrize(
    "command", ["python other.py", "python bad.py", "python ../train.py", "make", "python -m torch"]
)
def test_a_command_without_a_script_of_the_folder_says_nothing(folder: Path, command: str) -> None:
    assert imported(command, folder) == ("", ())


def test_packages_are_compared_as_pip_compares_them() -> None:
    assert unnamed(["scikit-learn", "torch", "PyYAML"], ["Scikit_Learn>=1", "torch[x]==2", "pyyaml"]) == []


def test_a_missing_package_is_named_before_anything_starts(folder: Path) -> None:
    """If nothing names a package, the job can't start. Otherwise another package may bring it along."""
    with pytest.raises(
        CliError, match=r"train\.py imports torch and torchvision and scikit-learn, and no file .*--env torch,"
    ):
        import_line("python train.py", folder, [], "")
    line = import_line("python train.py", folder, ["torch", "torchvision"], "requirements.txt")
    assert line.startswith("train.py imports scikit-learn, and requirements.txt does not ask for it.")
    assert line.endswith("--env requirements.txt,scikit-learn")
    assert import_line("make", folder, [], "") == ""
