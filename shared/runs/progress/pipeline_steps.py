"""How the steps of a pipeline stand, from what Azure ML tells of those that have begun. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.jobs.model import StepStatus
from shared.jobs.readers.pipeline import steps as steps_of
from shared.jobs.spec import JobSpec
from shared.runs.decide import first_line
from shared.runs.model import Step, StepState

WHY_LIMIT = 500  # characters


def steps_at_first(job: JobSpec) -> tuple[Step, ...]:
    """The steps of the pipeline itself, before one has begun; none of another job. Those within a step are its own."""
    own = (step for step in steps_of(job) if "." not in step.name)
    return tuple(Step(step.name, StepState.WAITING, tuple(sorted(step.needs))) for step in own)


def as_told(steps: Sequence[Step], told: Iterable[StepStatus], ended: bool) -> tuple[Step, ...]:
    """The steps as they stand now. `ended`: the pipeline is over, so what has not begun never will."""
    by_name = {each.name: each for each in told}
    return tuple(_as_told(step, by_name.get(step.name), ended) for step in steps)


def _as_told(step: Step, told: StepStatus | None, ended: bool) -> Step:
    if told is None:
        never = ended and step.state is StepState.WAITING
        return Step(step.name, StepState.SKIPPED, step.needs) if never else step
    why = first_line(told.error)[:WHY_LIMIT]
    return Step(step.name, StepState(told.state), step.needs, told.job, told.began, told.ended, why)


def why_failed(steps: Sequence[Step]) -> tuple[str, str]:
    """(why the pipeline failed, the job whose log says more): the first step that did, and those that never began."""
    failed = [step for step in steps if step.state is StepState.FAILED]
    if not failed:
        return "", ""
    skipped = [step.name for step in steps if step.state is StepState.SKIPPED]
    first = min(failed, key=lambda step: (step.ended is None, step.ended))
    others = [f"Step {step.name!r} failed too." for step in failed if step is not first]
    never = [f"Not started: {', '.join(skipped)}."] if skipped else []
    words = f"Step {first.name!r} failed{': ' + first.why if first.why else '.'}"
    return " ".join([words, *others, *never]), first.job
