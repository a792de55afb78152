"""docs/trainers.md, followed literally in a clone of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cloud import Cloud, Options
from tests.e2e.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trainers.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)  # language, where, content
DEPLOYED = ("function_app.py", "host.json", "routes.yaml", "functions", "shared", "trainers")


def blocks(language: str) -> list[tuple[str, str]]:
    """The (place, content) of each block in this language."""
    return [(where, content) for kind, where, content in BLOCK.findall(PAGE) if kind == language]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app's part of a clone, plus the folder that the page makes: script, job file, requirements."""
    folder = tmp_path_factory.mktemp("clone")
    for name in DEPLOYED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for where, content in [*blocks("python"), *blocks("yaml"), *blocks("text")]:
        file = folder / where
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, "utf-8")
    return folder


@pytest.fixture(scope="module")
def lab(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("home")
    with Cloud.start(home / "cloud", Options(app=clone, node_start_seconds=0.2)) as cloud:
        yield Lab(cloud, home)


def follow(step: tuple[str, str], clone: Path, **env: str) -> str:
    """Run the commands of a block in the place that it names, and return their output."""
    where, commands = step
    typed = commands.replace("python3 trainyard.py", "python -m cli")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
    done = subprocess.run(["sh", "-ec", typed], cwd=clone / where, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_takes_one_folder() -> None:
    """The page has three steps, and every file that it writes is in one folder."""
    assert re.findall(r"^## (\d)\. ", PAGE, re.MULTILINE) == ["1", "2", "3"]
    files = [where for language in ("python", "yaml", "text") for where, _ in blocks(language)]
    assert {Path(where).parent.as_posix() for where in files} == {"trainers/line"}


@pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")
@pytest.mark.timeout(240)
def test_the_page_leads_to_an_archived_model(clone: Path, lab: Lab) -> None:
    """After the page's steps the script has trained alone and in two processes, and a drop has become a model."""
    alone, dropping = blocks("sh")
    printed = follow(alone, clone)
    assert printed.count("done: loss") == 3  # one process, then two
    assert (clone / "trainers" / "model" / "model.pt").exists()

    said = follow(dropping, clone, TRAINYARD_CLOUD=str(lab.cloud.home), TRAINYARD_CWD=str(clone / "trainers"))
    assert "passes over the points; integer from 1" in said

    run = lab.archived("line/first")
    assert (run["state"], run["nodes"], run["metrics"]["last"]["train_loss"] < 0.1) == ("completed", 2, True)
    assert run["parameters"] == {"epochs": 50, "lr": 0.1}
    assert run["environment"].endswith("with a conda file"), "its own requirements, not the environment of all trainers"
    assert {"models/model.pt", "metrics/metrics.jsonl", "manifest.json"} <= lab.output(run).keys()
