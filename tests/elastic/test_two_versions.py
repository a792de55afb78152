"""Nodes of this version and of the two versions before it in one run: each joins a team of the other."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulators.testing import azurite
from tests.elastic.agents import EVERY, Agent, InPlace
from tests.elastic.agents import ROOT as REPOSITORY

# The last one whose nodes refuse rows with further fields, and the last one that says nothing of the form of its rows.
BEFORE = {"strict": "5b34737e", "tolerant": "b67c7616"}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite"), key=azurite.KEY) as running:
        yield running


@pytest.fixture(scope="module", params=BEFORE)
def old_trainers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trainers of an older version, taken from this repository's history."""
    commit = BEFORE[request.param]
    made = subprocess.run(["git", "-C", str(REPOSITORY), "archive", commit, "trainers"], capture_output=True)
    if made.returncode:
        pytest.skip(f"this clone has no history back to {commit}: git fetch --unshallow")
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "trainers"


def start_old(run: InPlace, trainers: Path) -> Agent:
    """Start a node of that version, as `run.start` starts one of this version."""
    log = run.folder / f"agent{len(run.agents)}.log"
    script = str(Path(__file__).with_name(run.worker))
    argv = [sys.executable, "-m", "elastic.launch", "--in-place", script, str(run.folder), str(EVERY)]
    with log.open("wb") as out:
        env = {**run.env, "PYTHONPATH": str(trainers)}
        process = subprocess.Popen(argv, cwd=trainers, env=env, stdout=out, stderr=subprocess.STDOUT)
    run.agents.append(Agent(process, log))
    return run.agents[-1]


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_node_joins_a_team_of_another_version(
    account: azurite.Azurite, old_trainers: Path, tmp_path: Path, first: str
) -> None:
    """A node of one version works, one of the other version joins, then one more of each. The oldest node is
    killed. All others continue without a lost step and end with 0."""
    with InPlace(tmp_path, account.table_url, f"{first}-{old_trainers.parent.name}", "1:4") as run:
        starts: list[Callable[[], Agent]] = [lambda: start_old(run, old_trainers), lambda: run.start()[0]]
        starts = starts if first == "old" else starts[::-1]
        for size, start in enumerate((*starts, *starts), 1):
            start()
            run.wait_for_steps(size, after=len(run.progress()), steps=5)
        run.agents[0].kill()
        run.wait_for_steps(3, after=len(run.progress()), steps=5)
        assert run.finish() == [0, 0, 0]
        run.assert_no_step_lost()
