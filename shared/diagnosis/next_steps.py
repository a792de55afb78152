"""The next steps against a cause: general advice, and commands that can be pasted, with the name of the run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shared.diagnosis.causes import Cause, Diagnosis
from shared.diagnosis.change import advised_change
from shared.runs.model import Run
from shared.runs.pulse import Ailment

PROGRAM = "python3 trainyard.py"  # the command line replaces it with the way in which it was called
OF_DATA = (Cause.DATA_NOT_FOUND, Cause.CORRUPT_FILE, Cause.LABEL_OUT_OF_RANGE)
OF_PARAMETERS = (Cause.NAN_LOSS, Cause.DIVERGING, Cause.HOST_OOM)


def after_failure(run: Run, found: Diagnosis) -> tuple[str, ...]:
    """Return the retry with the advised changes, what the diagnosis advises, and the commands that show more."""
    steps = list(found.advice)
    if changes := _changes(found):
        steps.insert(0, f"Start it again with {changes}: {PROGRAM} retry {run.name} --as-advised")
    elif found.cause is Cause.PREEMPTION:
        steps.insert(0, f"Continue it from its last checkpoint: {PROGRAM} continue {run.name}")
    if found.cause is Cause.RANK_FIRST_FAILED and found.rank is not None:
        steps[0] = f"Read the log of this rank: {PROGRAM} logs {run.name} --rank {found.rank}"
    if found.cause in OF_DATA and run.asked.drop:
        steps.append(f"See what the check of its data found: {PROGRAM} data show {run.asked.drop}")
    if any(quote.number for quote in found.evidence):
        steps.append(f"Read the log around this line: {PROGRAM} logs {run.name} --why")
    return tuple(_named(run, step) for step in steps)


def while_running(run: Run, ailment: Ailment, on_hang: str = "") -> tuple[str, ...]:
    """Return how to end a run that is lost, what the ailment advises, and the command that shows more.

    `on_hang` is what the run's route does with a run that hangs, '' for nothing.
    """
    cause, said = Cause(ailment.cause), tuple(_named(run, step) for step in ailment.advice)
    nodes = f"See how its nodes are used: {PROGRAM} metrics {run.name} --nodes"
    if cause is Cause.DEADLOCK:
        again = f"Then start it again from its last checkpoint: {PROGRAM} continue {run.name}"
        return (_end(run), again, *_access(run), *said, *_next_time(run, on_hang), nodes)
    if cause is Cause.STRAGGLER:
        return (*(said if ailment.name else _other_nodes(run)), nodes)
    changed = advised_change(cause, run.asked.parameters) if cause in OF_PARAMETERS else {}
    if cause in OF_PARAMETERS and changed:
        options = " ".join(f"-p {name}={value}" for name, value in changed.items())
        again = f"Then start it again with {_words(changed)}: {PROGRAM} retry {run.name} {options}"
        return (_end(run), again, *said)
    return (*said, _end(run) if cause in (Cause.NAN_LOSS, Cause.DIVERGING) else nodes)


def _access(run: Run) -> tuple[str, ...]:
    """Return how to look into the run's processes. In Azure, only a job with services lets people in."""
    if run.asked.request.restricted.get("services") is None:
        return ()
    return ("Open a service of its job in Azure ML studio, and look where each process waits: py-spy dump --pid PID",)


def _next_time(run: Run, on_hang: str) -> tuple[str, ...]:
    if on_hang or not run.asked.route:
        return ()
    return (
        f"Let Trainyard start such runs again by itself: on_hang: retry, on route {run.asked.route} in routes.yaml.",
    )


def _other_nodes(run: Run) -> tuple[str, ...]:
    """Return how to leave a slow node."""
    end = f"End it, to leave the slow node: {PROGRAM} cancel {run.name}"
    return (end, f"Then start it again from its last checkpoint: {PROGRAM} continue {run.name}")


def _named(run: Run, step: str) -> str:
    """Return a step of the general advice, or of a trainer's own, with the names of the run and its drop."""
    step = re.sub(r"\bRUN\b", run.name, step)
    return re.sub(r"\bDROP\b", str(run.asked.drop), step) if run.asked.drop else step


def _end(run: Run) -> str:
    return f"End it, so that it costs nothing more: {PROGRAM} cancel {run.name}"


def _changes(found: Diagnosis) -> str:
    """Return the advised changes in words; '' without any."""
    job = found.change_job
    parts = [_words(found.change)] if found.change else []
    parts += [f"cluster {job['cluster']}"] if "cluster" in job else []
    parts += [f"a time limit of {int(job['timeout_seconds']) / 3600:.3g} h"] if "timeout_seconds" in job else []
    return " and ".join(parts)


def _words(parameters: Mapping[str, int | float]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
