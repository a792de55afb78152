"""A trainer, or a kind of run, adds causes in the causes.yaml of its folder."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shared.diagnosis.causes import Cause
from shared.diagnosis.judge import diagnose_ranks
from shared.diagnosis.own_causes import causes_of_kind, live_ailments, own_causes, refined, trainer_of
from shared.jobs.command import Command
from shared.jobs.readers.trainer import trainer_template
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadSetting
from shared.runs.progress.single_job import SingleJob

CAUSES = """
- name: no_boxes
  cause: data_not_found
  words: ['no box in \\d+ pictures']
  summary: No picture has a box.
  advice: ['Check the annotations.']
  live: true
"""
LINE = "warning: no box in 12 pictures\n"
OWN = 'Traceback (most recent call last):\n  File "train.py", line 3, in main\n    run()\nOverflow: 3\n'
COMMAND = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nRuntimeError: it failed\n'
GPU = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.fixture
def trainers(tmp_path: Path) -> Path:
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "causes.yaml").write_text(CAUSES)
    return tmp_path


def test_an_own_cause_says_more_than_an_exception(trainers: Path) -> None:
    """An own cause overrides a plain exception, but not a cause that the general rules are sure of."""
    causes = own_causes(trainers, "boxes")
    for text, cause, summary in (
        (LINE + OWN, Cause.DATA_NOT_FOUND, "No picture has a box."),
        (LINE + GPU, Cause.CUDA_OOM, "The GPU ran out of memory on rank 1."),
        (LINE + COMMAND, Cause.DATA_NOT_FOUND, "No picture has a box."),
        (OWN, Cause.USER_EXCEPTION, "The training's own code raised an exception on rank 1, at train.py:3 in main."),
    ):
        found = refined(diagnose_ranks({0: "", 1: text}), causes, {0: "", 1: text})
        assert (found.cause, found.summary) == (cause, summary)


def test_a_run_without_a_route_has_the_causes_of_the_trainer_whose_command_it_runs(trainers: Path) -> None:
    """`submit TRAINER` makes such runs; more arguments may follow the command."""
    (trainers / "boxes" / "job.yaml").write_text(
        "command: python boxes/train.py --lr ${{inputs.lr}}\ninputs: {lr: 1}\n"
    )
    (trainers / "plain").mkdir()
    (trainers / "plain" / "job.yaml").write_text("command: python plain/train.py\n")
    job, _ = trainer_template(trainers, "boxes")
    more = Command((*job.command.parts, " --more 1"))
    assert trainer_of(trainers, replace(job, command=more)) == "boxes"
    assert trainer_of(trainers, trainer_template(trainers, "plain")[0]) == ""
    assert trainer_of(trainers, JobSpec()) == ""


def test_an_own_cause_of_a_running_run(trainers: Path) -> None:
    """An own cause applies to running runs only if it declares `live`."""
    (found,) = live_ailments(own_causes(trainers, "boxes"), LINE)
    assert (found.cause, found.name, found.evidence) == ("data_not_found", "no_boxes", (LINE.strip(),))
    assert list(live_ailments(own_causes(trainers, "boxes"), "step 1 loss 2\n")) == []
    assert own_causes(trainers, "other") == own_causes(trainers, "") == ()


def test_a_kind_of_run_has_the_causes_in_the_folder_of_its_module(tmp_path: Path) -> None:
    """The file has the same form as a trainer's, beside the module with the class of the kind."""
    (tmp_path / "workload.py").write_text(
        "from shared.runs.progress.single_job import SingleJob\n\nclass Own(SingleJob):\n    kind = 'own'\n"
    )
    (tmp_path / "causes.yaml").write_text(CAUSES)
    spec = importlib.util.spec_from_file_location("own_workload", tmp_path / "workload.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["own_workload"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert [each.name for each in causes_of_kind(module.Own())] == ["no_boxes"]
    assert causes_of_kind(SingleJob()) == ()


@pytest.mark.parametrize(
    "text",
    [
        "a: 1",
        "- name: x",
        "- {",
        CAUSES.replace("data_not_found", "bad_luck"),
        CAUSES.replace("no box in", "("),
        CAUSES.replace("['no box in \\d+ pictures']", "no box"),
        CAUSES.replace("['Check the annotations.']", "Check them."),
    ],
)
def test_a_wrong_file_says_what_is_wrong(trainers: Path, text: str) -> None:
    """The error contains the file's name."""
    (trainers / "other").mkdir()
    (trainers / "other" / "causes.yaml").write_text(text)
    with pytest.raises(BadSetting, match=r"other/causes\.yaml"):
        own_causes(trainers, "other")
