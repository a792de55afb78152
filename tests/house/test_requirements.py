"""The pinned requirement files hold what was asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trainyard

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(ROOT.glob("requirements*.in"))


def names(lines: list[str]) -> dict[str, list[str]]:
    """Package name to the versions it is pinned to; [] for a line that pins none."""
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
    """What stands in a .in file stands in its .txt, at the same version where it names one."""
    pinned = names([line for line in source.with_suffix(".txt").read_text().splitlines() if not line.startswith(" ")])
    for name, versions in direct(source).items():
        assert pinned.get(name), f"{name} of {source.name} is not pinned; compile the file again"
        assert set(versions) <= set(pinned[name])


def test_the_environment_keeps_the_uv_that_makes_it() -> None:
    """uv is pinned as trainyard.py installs it: a program can't replace itself everywhere."""
    pinned = (ROOT / "requirements-local.txt").read_text("utf-8").splitlines()
    assert trainyard.UV_PIN in pinned


def test_the_emulators_are_a_package_like_any_other() -> None:
    """They come from their folder in this repository, with all that they require."""
    assert "-e ./emulators[mlflow]" in (ROOT / "requirements-local.in").read_text("utf-8").splitlines()
    assert "-e ./emulators" in (ROOT / "requirements-local.txt").read_text("utf-8").splitlines()


def test_the_app_needs_no_torch() -> None:
    """What Azure Functions installs holds neither torch nor what only nodes, emulators and tests need: every instance
    that starts fetches all of it."""
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
    """docs/dependencies.md says for each direct dependency why it is there."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert [name for name in direct(source) if f"`{name}`" not in page] == []
