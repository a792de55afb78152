"""The job of a folder of code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.files.folder_job import with_own_packages


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"setup.py": "from setuptools import setup\nsetup(packages=['net'])"}, "."),
        ({"pyproject.toml": '[project]\nname = "net"', "src/net/__init__.py": ""}, ".:src"),
        ({"pyproject.toml": "[build-system]", "src/__init__.py": ""}, "."),
        ({"setup.cfg": "[metadata]\nname = net"}, "."),
        ({"pyproject.toml": "[tool.ruff]", "setup.cfg": "[flake8]", "requirements.txt": "torch"}, None),
        ({}, None),
    ],
)
def test_the_packages_of_a_project_are_found(tmp_path: Path, files: dict[str, str], path: str | None) -> None:
    """A folder with only the settings of tools is no project, and its job is unchanged."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    made = with_own_packages({"command": "python train.py"}, tmp_path)
    assert made.get("environment_variables") == (None if path is None else {"PYTHONPATH": path})
