"""End a run: on request, or after Azure ML's rejection of the run's job."""

from __future__ import annotations

from dataclasses import replace

from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.person import NOBODY, Person
from shared.kernel.versioned import Stored
from shared.runs.codes import CancelCode
from shared.runs.decide import is_over
from shared.runs.model import Run, RunState
from shared.runs.ports import RunPorts
from shared.runs.progress.transitions import ask_for_submission, transition
from shared.runs.progress.workloads import workload


def give_up(ports: RunPorts, run: Run, why: str) -> None:
    """Fail a run after Azure ML's rejection of a job or a member's job; other members may be in submission.

    The jobs are canceled before the state is written, because a retry of this call stops at an ended run. They are
    canceled again after the write, because a concurrent submission may have added jobs in between. A later submission
    sees the state.
    """
    workload(run).cancel(ports, run)
    after = transition(ports, run.name, RunState.FAILED, why).value
    workload(after).cancel(ports, after)


def cancel_run(
    ports: RunPorts, name: str, why: str = "", by: Person = NOBODY, code: CancelCode = CancelCode.PERSON
) -> Run:
    """Mark the run as canceled, and queue the cancellation. An ended run stays unchanged, and so does a repeat.

    If the system cancels, `why` becomes the run's reason and `code` identifies the part of the system.

    The mark is durable: a concurrent submission sees it afterwards, and the hourly reconcile retries the cancellation.
    """

    def mark(stored: Stored[Run]) -> Run:
        if is_over(stored.value) or stored.value.cancel.asked_at is not None:
            return stored.value
        return _asked_to_end(ports, stored, why, by, code).value

    run = compare_and_set(ports.clock, f"Run {name}", lambda: ports.runs.get(name), mark)
    if not is_over(run):
        ask_for_submission(ports.queues, run)
    return run


def _asked_to_end(ports: RunPorts, stored: Stored[Run], why: str, by: Person, code: CancelCode) -> Stored[Run]:
    cancel = replace(stored.value.cancel, asked_at=ports.clock(), why=why, code=code, by=by.name, by_id=by.id)
    return ports.runs.update(stored, replace(stored.value, cancel=cancel))
