"""A failed run has its cause in its row, its answers and its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.api import records
from shared.diagnosis.causes import Cause, Certainty, Diagnosis
from shared.diagnosis.change import advised_change
from shared.diagnosis.failed_run import notice_facts, with_signal
from shared.diagnosis.judge import diagnose_ranks
from shared.diagnosis.next_steps import after_failure
from shared.notices.compose import compose
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
    """Return a run that ended in this state, with a log of each rank."""
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


def test_the_last_step_after_a_failure_shows_the_log_at_the_quoted_line(world: World) -> None:
    run = ended(world, "Failed", OOM)
    found = run.feature(Diagnosis)
    assert found is not None
    assert found.advice[-1] == f"Read the log around this line: python3 trainyard.py logs {run.name} --why"


@pytest.mark.parametrize(
    ("change", "change_job", "words"),
    [
        ({}, {"cluster": "big"}, "with cluster big: "),
        ({}, {"timeout_seconds": 5400}, "with a time limit of 1.5 h: "),
        ({"lr": 0.01}, {}, "with lr=0.01: "),
    ],
)
def test_the_first_step_is_the_retry_with_the_advised_change(
    world: World, change: Any, change_job: Any, words: str
) -> None:
    run = ended(world, "Completed")
    found = Diagnosis(Cause.TIME_LIMIT, Certainty.CERTAIN, "", change=change, change_job=change_job)
    retry = f"python3 trainyard.py retry {run.name} --as-advised"
    assert after_failure(run, found)[0] == f"Start it again {words}{retry}"


def test_the_advice_of_a_trainer_has_the_names_of_the_run_and_its_drop(world: World) -> None:
    run = ended(world, "Completed")
    found = Diagnosis(Cause.DATA_NOT_FOUND, Certainty.CERTAIN, "", advice=("logs RUN", "data show DROP"))
    assert after_failure(run, found)[:2] == (f"logs {run.name}", f"data show {run.asked.drop}")


def test_runs_that_did_not_fail_have_no_diagnosis(world: World) -> None:
    """The logs of such runs are not read."""
    assert ended(world, "Completed", OOM).feature(Diagnosis) is None


def test_a_failed_run_without_logs_has_what_the_platform_said() -> None:
    """Without any evidence, the cause is not known."""
    assert diagnose_ranks({}, "PreemptionError: the node was preempted", 1).cause is Cause.PREEMPTION
    assert diagnose_ranks({}, "", 1).cause is Cause.NOT_KNOWN
    assert diagnose_ranks({0: "epoch 1 loss 0.1\n"}, "").cause is Cause.NOT_KNOWN


def test_a_huge_log_is_read_from_its_end(world: World) -> None:
    """Line numbers are unknown then."""
    found = ended(world, "Failed", ECHO, "step 1 loss 1.0\n" * 80_000 + OOM).feature(Diagnosis)
    assert found is not None
    assert (found.cause, found.evidence[0].number) == (Cause.CUDA_OOM, 0)


def test_the_notice_of_a_failed_run_has_the_cause_and_what_to_do(world: World) -> None:
    """The notice also has the last line of the log."""
    run = ended(world, "Failed", OOM)
    found = run.feature(Diagnosis)
    assert found is not None
    assert notice_facts(run) == {"cause": found.summary, "what to do": found.advice[0]}
    notice = compose(world.runs, "RunArchived", "1", run.created_at, {"run": run.name})
    assert notice is not None
    assert notice.facts["cause"] == found.summary


def test_a_signal_is_named_if_no_log_shows_a_cause(world: World) -> None:
    """A process that crashes writes nothing, so the platform's message names the rank."""
    run = ended(world, "Completed")
    unknown = diagnose_ranks({0: "epoch 1 loss 0.5\n", 1: ""}, "", -11)
    found = with_signal(unknown, -11, 1)
    assert (found.cause, found.rank) == (Cause.RANK_FIRST_FAILED, 1)
    assert found.summary == "A process failed without a message on rank 1: signal SIGSEGV ended it."
    assert after_failure(run, found)[0].endswith(f"python3 trainyard.py logs {run.name} --rank 1")
    assert with_signal(unknown, 139, 1) == found
    assert with_signal(unknown, 1, 1) is unknown
    known = diagnose_ranks({0: OOM}, "", -9)
    assert with_signal(known, -9, 0) is known


@pytest.mark.parametrize(
    ("cause", "parameters", "change"),
    [
        (Cause.CUDA_OOM, {"batch_size": 64, "lr": 0.1}, {"batch_size": 32}),
        (Cause.HOST_OOM, {"batch_size": 1, "lr": 0.1}, {}),
        (Cause.NAN_LOSS, {"lr": "0.03", "batch_size": 64}, {"lr": 0.003}),
        (Cause.DATALOADER_WORKER, {"num_workers": 4}, {"num_workers": 0}),
        (Cause.DATALOADER_WORKER, {"num_workers": 0}, {}),
        (Cause.CUDA_OOM, {"batch_size": "all"}, {}),
        (Cause.USER_EXCEPTION, {"batch_size": 64}, {}),
    ],
)
def test_only_parameters_that_help_are_advised(cause: Cause, parameters: dict[str, object], change: object) -> None:
    """A parameter is advised only when its new value differs."""
    assert advised_change(cause, parameters) == change


def test_a_rank_that_ended_without_a_word_is_the_first_that_failed() -> None:
    """A segmentation fault logs no line; the other rank lost its connection, or timed out waiting."""
    silent = "epoch 1 step 1 loss 0.5\nepoch 1 step 2 loss 0.4\n"
    found = diagnose_ranks({0: ECHO, 1: silent}, "", 1)
    assert (found.cause, found.rank, found.evidence[0].rank) == (Cause.RANK_FIRST_FAILED, 1, 0)
    late = ECHO.replace("Connection closed by peer", "Timed out waiting 6000ms for recv from")
    assert diagnose_ranks({0: late, 1: silent}, "", 1).cause is Cause.RENDEZVOUS_OR_RESET


def test_a_killed_worker_of_a_data_loader_outweighs_the_connection_that_the_other_rank_lost() -> None:
    """The parent takes a batch from its dead worker, so the exception is a lost connection, too."""
    library = '  File "/usr/lib/python3.11/'
    frames = (
        'Traceback (most recent call last):\n  File "train.py", line 150, in _train\n    for batch in loader:\n'
        f'{library}site-packages/torch/utils/data/dataloader.py", line 1291, in _try_get_data\n    data = get()\n'
        f'{library}multiprocessing/resource_sharer.py", line 57, in detach\n    with connection(self._id) as conn:\n'
    )
    raised = "ConnectionResetError: [Errno 104] Connection reset by peer\n"
    crashed = "object type name: ConnectionResetError\nobject repr     : ConnectionResetError(104, 'reset by peer')\n"
    for text in (frames + raised, frames, f"{crashed}lost sys.stderr\n{frames}"):
        found = diagnose_ranks({0: ECHO, 1: text}, "", 1)
        assert (found.cause, found.rank) == (Cause.DATALOADER_WORKER, 1)


def test_the_last_lines_of_a_process_that_failed_may_tell_why() -> None:
    """No rule knows the form of the line, but its words."""
    text = "epoch 1 loss 0.5\ntrainer: disk is out of storage, quitting\n"
    assert diagnose_ranks({0: text}, "", 1).cause is Cause.DISK_FULL
    assert diagnose_ranks({0: text}, "", 0).cause is not Cause.DISK_FULL
