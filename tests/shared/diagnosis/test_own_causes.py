"""A trainer adds causes in the causes.yaml of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.diagnosis.causes import Cause
from shared.diagnosis.judge import diagnose_ranks
from shared.diagnosis.own_causes import live_ailments, own_causes, refined
from shared.kernel.errors import BadSetting

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
        (OWN, Cause.USER_EXCEPTION, "The training's own code raised an exception on rank 1, at train.py:3 in main."),
    ):
        found = refined(diagnose_ranks({0: "", 1: text}), causes, {0: "", 1: text})
        assert (found.cause, found.summary) == (cause, summary)


def test_an_own_cause_of_a_running_run(trainers: Path) -> None:
    """An own cause applies to running runs only if it declares `live`."""
    (found,) = live_ailments(own_causes(trainers, "boxes"), LINE)
    assert (found.cause, found.name, found.evidence) == ("data_not_found", "no_boxes", (LINE.strip(),))
    assert list(live_ailments(own_causes(trainers, "boxes"), "step 1 loss 2\n")) == []
    assert own_causes(trainers, "other") == own_causes(trainers, "") == ()


@pytest.mark.parametrize(
    "text", ["a: 1", "- name: x", CAUSES.replace("data_not_found", "bad_luck"), CAUSES.replace("no box in", "(")]
)
def test_a_wrong_file_says_what_is_wrong(trainers: Path, text: str) -> None:
    """The error contains the file's name."""
    (trainers / "other").mkdir()
    (trainers / "other" / "causes.yaml").write_text(text)
    with pytest.raises(BadSetting, match=r"other/causes\.yaml"):
        own_causes(trainers, "other")
