"""The pinned requirement files contain the requested packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trainyard

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("requirements*.in"))


def names(lines: list[str]) -> dict[str, list[str]]:
    """Map each package name to its pinned versions; [] for a line that pins none."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if match := re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:==\s*([^\s;]+))?", line):
            found.setdefault(match[1].lower().replace("_", "-"), []).extend([match[2]] if match[2] else [])
    return found


def direct(source: Path) -> dict[str, list[str]]:
    lines = [line for line in source.read_text().splitlines() if line and not line.startswith(("#", "-r"))]
    return names(lines)


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_every_direct_requirement_is_pinned(source: Path) -> None:
    """Each entry of a .in file is in its .txt file, at the same version if the entry names one."""
    pinned = names([line for line in source.with_suffix(".txt").read_text().splitlines() if not line.startswith(" ")])
    for name, versions in direct(source).items():
        assert pinned.get(name), f"{name} of {source.name} is not pinned; compile the file again"
        assert set(versions) <= set(pinned[name])


def test_the_environment_keeps_the_uv_that_makes_it() -> None:
    """uv is pinned to the version that trainyard.py installs, because a program can't replace itself on every
    system."""
    pinned = (ROOT / "requirements-local.txt").read_text("utf-8").splitlines()
    assert trainyard.UV_PIN in pinned


def test_the_emulators_are_a_package_like_any_other() -> None:
    """The emulators are installed from their folder in this repository, with all their requirements."""
    assert "-e ./emulators[mlflow]" in (ROOT / "requirements-local.in").read_text("utf-8").splitlines()
    assert "-e ./emulators" in (ROOT / "requirements-local.txt").read_text("utf-8").splitlines()


def test_the_app_needs_no_torch() -> None:
    """Azure Functions installs neither torch nor packages that only nodes, emulators and tests need, because every
    starting instance downloads all packages."""
    deployed = names((ROOT / "requirements.txt").read_text().splitlines())
    assert not {
        "torch",
        "torchvision",
        "matplotlib",
        "scikit-learn",
        "trustme",
        "scipy",
        "tensorboard",
        "grpcio",
        "numpy",
        "optuna",
        "sqlalchemy",
    } & set(deployed)


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.name)
def test_every_direct_dependency_has_its_reason(source: Path) -> None:
    """docs/dependencies.md gives a reason for each direct dependency."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert [name for name in direct(source) if f"`{name}`" not in page] == []
