"""The states of a pipeline's steps, from Azure ML's statuses of the steps that have started. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from shared.jobs.kinds import kind_of
from shared.jobs.model import StepStatus
from shared.jobs.spec import JobSpec
from shared.pipelines.model import Step, StepState

WHY_LIMIT = 500  # characters


def steps_at_first(job: JobSpec) -> tuple[Step, ...]:
    """The steps of a pipeline before any step has started; no steps for another kind of job.

    A step that is itself a pipeline needs its own last steps, and its first steps need what the step itself needs. The
    nodes belong to the inner steps.
    """
    every = {step.name: step for step in kind_of(job).parts(job)}
    above = {name: name.rpartition(".")[0] for name in every}
    own_needs = {name: {_within(above[name], need) for need in step.needs} for name, step in every.items()}
    made = []
    for name, step in every.items():
        inner = {each for each in every if above[each] == name}
        last = inner - {need for each in inner for need in own_needs[each]}
        needs, outer = own_needs[name], above[name]
        while not needs and outer:
            needs, outer = own_needs[outer], above[outer]
        nodes = 0 if inner else step.job.node_count
        made.append(Step(name, StepState.WAITING, tuple(sorted(last or needs)), cluster=step.job.cluster, nodes=nodes))
    return tuple(made)


def _within(above: str, name: str) -> str:
    return f"{above}.{name}" if above else name


def with_statuses(steps: Sequence[Step], statuses: Iterable[StepStatus], ended: bool) -> tuple[Step, ...]:
    """The current steps. `ended`: the pipeline has ended, and the waiting steps become skipped."""
    by_name = {each.name: each for each in statuses}
    return tuple(_with_status(step, by_name.get(step.name), ended) for step in steps)


def _with_status(step: Step, status: StepStatus | None, ended: bool) -> Step:
    if status is None:
        never = ended and step.state is StepState.WAITING
        return replace(step, state=StepState.SKIPPED) if never else step
    why = status.error[:WHY_LIMIT]
    state = StepState(status.state)
    return replace(step, state=state, job=status.job, began=status.began, ended=status.ended, why=why)


def why_failed(steps: Sequence[Step]) -> tuple[str, str]:
    """(why the pipeline failed, the job whose log has the details).

    The reason names the first failed step, other failed steps, and the steps that never started.
    """
    failed = [step for step in steps if step.state is StepState.FAILED]
    if not failed:
        return "", ""
    skipped = [step.name for step in steps if step.state is StepState.SKIPPED]
    first = min(failed, key=lambda step: (step.ended is None, step.ended, -step.name.count(".")))
    apart = (step for step in failed if step is not first and not first.name.startswith(f"{step.name}."))
    others = [f"Step {step.name!r} failed too." for step in apart]
    never = [f"Not started: {', '.join(skipped)}."] if skipped else []
    words = f"Step {first.name!r} failed{': ' + first.why if first.why else '.'}"
    return " ".join([words, *others, *never]), first.job
