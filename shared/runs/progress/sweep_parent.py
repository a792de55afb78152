"""A run that is a sweep: it has no job of its own. Its trials are runs of theirs (shared/sweeps), which take the nodes
and cost the money; this one has what they have in common, and in the end the archive of the best."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from shared.jobs.assets import Assets
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Impossible
from shared.runs.model import Run, RunState
from shared.runs.node_use import Use, end_of
from shared.runs.progress.workload import Look, MembersView, Ports, Seen, Submitted


class SweepParent:
    """See Workload."""

    def jobs(self, run: Run) -> dict[int, str]:  # noqa: ARG002 the port's, here and below
        return {}

    def live_jobs(self, run: Run) -> list[str]:  # noqa: ARG002
        return []

    def on_nodes(self, run: Run) -> set[str]:  # noqa: ARG002
        return set()

    def request(self, run: Run, job: str, rendezvous: str, now: datetime) -> JobSpec:  # noqa: ARG002
        """The job of a trial, before anything is drawn for it."""
        return replace(run.asked.request, sweep=None)

    def fewest_nodes(self, run: Run) -> int:
        return run.asked.request.node_count

    def losses(self, run: Run) -> int:  # noqa: ARG002
        return 0

    def uses(self, run: Run, now: datetime) -> list[Use]:  # noqa: ARG002
        return [Use(run.name, "", run.created_at, ended=end_of(run))]

    def bounds(self, run: Run) -> tuple[int, int]:
        return 0, run.asked.resubmissions

    def overdue(self, run: Run, now: datetime) -> str | None:  # noqa: ARG002
        return None

    def can_move(self, run: Run) -> bool:  # noqa: ARG002
        return False

    def members(self, run: Run) -> MembersView | None:  # noqa: ARG002
        return None

    def logs_to_mlflow(self, run: Run) -> bool:  # noqa: ARG002
        return False

    def jobs_change(self, run: Run) -> bool:  # noqa: ARG002
        return False

    def can_wait(self, run: Run, told: RunState, scarce: bool) -> bool:  # noqa: ARG002
        return True

    def worth_a_look(self, run: Run, seen: Seen) -> bool:  # noqa: ARG002
        return False

    def submit(self, ports: Ports, run: Run) -> Submitted:  # noqa: ARG002
        """Nothing is sent: the look at the sweep, which the fact of its submission causes, makes the trials."""
        return Submitted(Assets(None, None, ""), ())

    def sent(self, run: Run, jobs: tuple[str, ...]) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def look(self, run: Run, seen: Seen, now: datetime) -> Look | None:  # noqa: ARG002
        return None

    def act(self, ports: Ports, run: Run, look: Look) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def cancel(self, ports: Ports, run: Run) -> None:
        """The look at the sweep ends its trials."""

    def evict(self, ports: Ports, run: Run, index: int) -> str:  # noqa: ARG002
        raise Impossible(f"Run {run.name} is a sweep; evict a node of one of its trials.", "not_elastic")

    def log_folder(self, run: Run, job: str) -> str:  # noqa: ARG002
        return "logs/"

    def output_folder(self, run: Run, job: str) -> str:  # noqa: ARG002
        return "outputs/"

    def ranks(self, run: Run) -> list[int] | None:  # noqa: ARG002
        return []

    def log_of(self, run: Run, rank: int) -> tuple[str, int] | None:
        """The log of the best trial, once it is known."""
        return (run.trials.best, rank) if run.trials.best else None


PARENT = SweepParent()
