"""Runs that give the views something to draw."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

from shared.elastic.model import Elastic, Member, Size
from shared.pipelines.model import PipelineSteps, Step, StepState
from shared.runs.model import Moment, RunState
from tests.fakes.parts import changed
from tests.page.lab import NOW, Lab, a_run

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


STEPS = (
    Step("prepare", StepState.COMPLETED, (), "job-1", NOW, NOW + timedelta(seconds=5)),
    Step("fit", StepState.FAILED, ("fit.train",), "job-2", NOW, NOW),
    Step("fit.train", StepState.FAILED, ("prepare",), "job-3", NOW, NOW, "It exited with 3."),
    Step("evaluate", StepState.SKIPPED, ("fit",)),
)


def elastic() -> Elastic:
    """Three members, one of which was lost and came back."""
    at = [NOW + timedelta(seconds=10 + 4 * i) for i in range(5)]
    members = [Member(i, 2 if i == 1 else 1, RunState.COMPLETED, at[2] if i == 1 else at[0]) for i in range(3)]
    return Elastic(1, 4, NOW + timedelta(hours=1), tuple(members), (Size(at[0], 3), Size(at[1], 2), Size(at[3], 3)))


def queue_a_run(lab: Lab) -> None:
    """A queued run, until the app notices that its job does not exist."""
    now = datetime.now(UTC)
    run = a_run("waits-for-nodes-0123456789abcdef", created_at=now)
    lab.system.runs.insert(changed(run, state=RunState.QUEUED, history=(Moment(RunState.QUEUED, now),)))


def two_that_compare(lab: Lab) -> None:
    """Two archived runs with curves: one whose members changed, and one with steps."""
    for i, name in enumerate(("cifar-1", "mnist-1")):
        points = [
            (step, 0.95 - i / 20 - 0.7 / (1 + step / 20), 0.1 + i / 9 + 2 / (1 + step / 9)) for step in range(230)
        ]
        rows = "".join(f'{{"step": {s}, "test_accuracy": {a}, "train_loss": {b}}}\n' for s, a, b in points)
        tried = a_run(
            name,
            parameters={"epochs": 5 * (i + 1), "batch_size": 64, "lr": 0.1 / (i + 1)},
            best_metrics={"test_accuracy": points[-1][1], "train_loss": points[-1][2]},
        )
        tried = tried.having(elastic() if i == 0 else PipelineSteps(STEPS))
        lab.archived(tried, {"metrics/metrics.jsonl": rows.encode(), "models/examples.png": PICTURE})
