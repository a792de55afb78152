"""Diagnosis: each failed run has the cause of its failure in its row and its archive, from the logs of its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shared.diagnosis.causes import Cause, Diagnosis
from shared.diagnosis.facts import RunIsSick
from shared.diagnosis.failed_run import notice_facts, with_diagnosis
from shared.diagnosis.health import RunHealth
from shared.diagnosis.on_hang import restart_if_hung
from shared.diagnosis.viewed import viewed
from shared.diagnosis.watch import begin_checks
from shared.events.announce import queue_notice
from shared.events.ports import EventPorts
from shared.kernel.parts import FeaturePart, View
from shared.runs import facts as runs
from shared.runs.features import Feature, RunOutline
from shared.runs.model import Run
from shared.runs.pulse import Ailment

SHOWN = Annotated[
    Diagnosis | None,
    Meta(description="Null for a run that neither failed nor reached its time limit, or is not archived yet."),
]


def shown(run: Run) -> Any:
    """Return the run's diagnosis as plain values."""
    return msgspec.to_builtins(run.feature(Diagnosis))


@dataclass(frozen=True)
class RunHealthAnswer:
    """The problems of a running run at the last check."""

    ailments: Annotated[list[Ailment], Meta(description="Empty for a run that makes progress.")]
    checked_at: Annotated[
        datetime | None,
        Meta(description="A time at most five minutes before the last check; in lists, of the last finding."),
    ]


HEALTH = Annotated[RunHealthAnswer | None, Meta(description="Null for a run that was never checked while it ran.")]


def health_of(run: Run) -> Any:
    """Return the run's health as plain values."""
    found = run.feature(RunHealth)
    return msgspec.to_builtins(RunHealthAnswer(list(found.ailments), found.checked_at)) if found else None


def notify_of_sick_run(ports: EventPorts, fact: RunIsSick) -> None:
    """Notify once per run and ailment."""
    run, ailment = fact.run.name, fact.ailment
    data = {"run": run, "why": ailment.summary, "advice": next(iter(ailment.advice), "")}
    queue_notice(ports, "RunIsSick", f"{run}/{ailment.cause}/{ailment.name}", data)


def outline_of(run: Run) -> RunOutline:
    found = run.feature(Diagnosis)
    if found is None or found.cause in (Cause.NOT_KNOWN, Cause.USER_EXCEPTION):
        return RunOutline()  # the log's last line says more, such as the exception itself
    return RunOutline(cause=found.summary)


FEATURE = Feature(
    parts=(
        FeaturePart("diagnosis", Diagnosis, view=View(SHOWN, shown)),
        FeaturePart("health", RunHealth, view=View(HEALTH, health_of)),
    ),
    outline=outline_of,
    notice_facts=notice_facts,
    viewed=viewed,
    reactions={
        runs.RunStarted: (begin_checks,),
        runs.RunReconciled: (begin_checks,),
        runs.RunEnded: (restart_if_hung,),
        RunIsSick: (notify_of_sick_run,),
    },
    in_the_same_write={runs.RunBeingArchived: (with_diagnosis,)},
)
