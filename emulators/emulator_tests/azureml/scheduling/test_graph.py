"""The states of a pipeline's steps determine its next actions."""

from __future__ import annotations

import pytest

from emulators.azureml.kernel.models import Status
from emulators.azureml.scheduling.graph import GraphDecision, decide

DONE, RUNS, BAD, OFF = Status.COMPLETED, Status.RUNNING, Status.FAILED, Status.CANCELED
#      a       d
#     / \
#    b   c
NEEDS: dict[str, set[str]] = {"a": set(), "b": {"a"}, "c": {"a"}, "d": set()}


@pytest.mark.parametrize(
    ("begun", "continues", "decision"),
    [
        ({}, False, GraphDecision(start=("a", "d"))),
        ({"a": RUNS, "d": DONE}, False, GraphDecision()),
        ({"a": DONE, "d": DONE}, False, GraphDecision(start=("b", "c"))),
        ({"a": DONE, "b": DONE, "c": DONE, "d": DONE}, False, GraphDecision(ended=True)),
        ({"a": BAD, "d": RUNS}, False, GraphDecision(cancel=("d",), failed=("a",), never=("b", "c"))),
        ({"a": BAD, "d": OFF}, False, GraphDecision(failed=("a", "d"), never=("b", "c"), ended=True)),
        ({"a": BAD, "d": RUNS}, True, GraphDecision(failed=("a",), never=("b", "c"))),
        ({"a": BAD, "d": DONE}, True, GraphDecision(failed=("a",), never=("b", "c"), ended=True)),
        ({"a": DONE, "d": BAD}, True, GraphDecision(start=("b", "c"), failed=("d",))),
    ],
)
def test_decisions(begun: dict[str, Status], continues: bool, decision: GraphDecision) -> None:
    """A step starts when its predecessors are completed. A failure ends the whole pipeline or only the dependent
    steps."""
    assert decide(NEEDS, begun, continues=continues) == decision


def test_a_canceled_pipeline_starts_nothing() -> None:
    """Running steps are canceled, and the pipeline ends after them."""
    canceled = decide(NEEDS, {"a": RUNS}, continues=True, canceled=True)
    assert canceled == GraphDecision(cancel=("a",), never=("b", "c", "d"))
    assert decide(NEEDS, {"a": OFF}, continues=True, canceled=True).ended


def test_a_skipped_step_and_its_dependents_do_not_start() -> None:
    """The pipeline completes without them."""
    assert decide(NEEDS, {}, continues=False, skipped=("a",)) == GraphDecision(start=("d",), never=("a", "b", "c"))
    ended = decide(NEEDS, {"d": DONE}, continues=False, skipped=("a",))
    assert (ended.ended, ended.failed) == (True, ())
