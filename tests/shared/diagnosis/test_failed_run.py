"""A failed run has its cause in its row, in its answers and in its manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.api import records
from shared.diagnosis.causes import Cause, Diagnosis
from shared.diagnosis.judge import diagnose_ranks
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from tests.fakes.world import World, trainers_folder

OOM = "epoch 1 loss 0.5\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
ECHO = "epoch 1 loss 0.5\nRuntimeError: Connection closed by peer [127.0.0.1]:2014\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


def ended(world: World, state: str, *logs: str) -> Run:
    """A run that ended in this state, with a log of each rank."""
    name = create.create_run(world.system, RunRequest(template="mnist", data="drops/shelf/a")).name
    world.run_until_idle()
    for rank, text in enumerate(logs):
        path = f"ExperimentRun/dcid.{name}/user_logs/std_log_process_{rank}.txt"
        world.blobs.put("azureml", path, text.encode())
    for status in ("Running", state):
        world.job_goes(name, status)
        world.deliver_all()
        world.clock.advance(4)
        world.run_until_idle()
    return world.only_run()


def test_a_failed_run_says_which_rank_failed_first_and_why(world: World) -> None:
    """Rank 0 lost its connection, because rank 1 ran out of memory."""
    run = ended(world, "Failed", ECHO, OOM)
    found = run.feature(Diagnosis)
    assert found is not None
    assert (found.cause, found.rank, found.evidence[0].number) == (Cause.CUDA_OOM, 1, 2)
    assert world.manifest(run)["run"]["diagnosis"]["cause"] == "cuda_oom"
    assert json.loads(json.dumps(records.run(run)))["diagnosis"]["evidence"][0]["rank"] == 1


def test_runs_that_did_not_fail_have_no_diagnosis(world: World) -> None:
    """Nor do their logs get read for it."""
    assert ended(world, "Completed", OOM).feature(Diagnosis) is None


def test_a_failed_run_without_logs_has_what_the_platform_said() -> None:
    """And an answer without evidence is that nothing is known."""
    assert diagnose_ranks({}, "PreemptionError: the node was preempted", 1).cause is Cause.PREEMPTION
    assert diagnose_ranks({}, "", 1).cause is Cause.NOT_KNOWN
    assert diagnose_ranks({0: "epoch 1 loss 0.1\n"}, "").cause is Cause.NOT_KNOWN


def test_a_huge_log_is_read_from_its_end(world: World) -> None:
    """The numbers of its lines are not known then."""
    found = ended(world, "Failed", ECHO, "step 1 loss 1.0\n" * 80_000 + OOM).feature(Diagnosis)
    assert found is not None
    assert (found.cause, found.evidence[0].number) == (Cause.CUDA_OOM, 0)
