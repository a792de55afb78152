"""Reserve the greatest cost of a run in its grant, before the run is recorded and again before it is submitted.

Each way of making a run ends here. Each run names its owner, and the owner of everything that a grant's program makes
is the grant: requests, drops, retries, continuations, trials, moved runs, and schedules.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from shared.grants import decide
from shared.grants.decide import Asked
from shared.grants.facts import GrantUsed
from shared.grants.model import Grant, grant_of
from shared.grants.ports import GRANTS
from shared.jobs.kinds import kind_of
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Conflict
from shared.kernel.versioned import Stored
from shared.runs.decide import is_over
from shared.runs.features import part_of
from shared.runs.find_run import find_run
from shared.runs.model import Run
from shared.runs.ports import Refusal, RunPorts, Runs
from shared.runs.progress.workloads import workload

log = logging.getLogger(__name__)


def reserve(ports: RunPorts, run: Run) -> None:
    """Reserve the run's greatest cost in its grant. A repeat changes nothing. A person's run reserves nothing.

    Raises Conflict, with the remedy, if the grant does not allow the run.
    """
    if not (name := grant_of(run.people.owner_id)):
        return
    asked = _asked(run)

    def write(stored: Stored[Grant] | None) -> None:
        if stored is None:
            raise Conflict(f"There is no grant {name}.", "no_grant")
        before = stored.value
        after = decide.reserve(before, asked, ports.clock())
        if isinstance(after, Refusal):
            _announce_refusal(ports, stored, after)
            raise Conflict(after.why, after.code)
        if after != before and not _is_done(ports.runs, run):
            ports.store(GRANTS).replace(stored, after)

    compare_and_set(ports.clock, f"Grant {name}", lambda: ports.store(GRANTS).get(name), write)


def release(ports: RunPorts, run: Run) -> None:
    """Release the reservation of a run that will not start. A recorded run keeps its reservation until its end."""
    if not (name := grant_of(run.people.owner_id)) or find_run(ports.runs, run.name):
        return

    def write(stored: Stored[Grant] | None) -> None:
        if stored and (after := decide.release(stored.value, run.name)) != stored.value:
            ports.store(GRANTS).replace(stored, after)

    compare_and_set(ports.clock, f"Grant {name}", lambda: ports.store(GRANTS).get(name), write)


def refusal(ports: RunPorts, run: Run) -> Refusal | None:
    """Return why the grant would not let the run start now; None if the run could start. Reserves nothing."""
    if not (name := grant_of(run.people.owner_id)):
        return None
    stored = ports.store(GRANTS).get(name)
    if stored is None:
        return Refusal("no_grant", f"There is no grant {name}.")
    decision = decide.reserve(stored.value, _asked(run), ports.clock())
    return decision if isinstance(decision, Refusal) else None


def shrink_at_end(ports: RunPorts, run: Run) -> None:
    """Shrink the reservation of an ended run to the most that the run can have cost. The books settle the cost
    later.
    """
    if not (name := grant_of(run.people.owner_id)) or not workload(run).has_own_nodes:
        return

    def write(stored: Stored[Grant] | None) -> None:
        if stored and (after := decide.ended_early(stored.value, run)) != stored.value:
            ports.store(GRANTS).replace(stored, after)

    compare_and_set(ports.clock, f"Grant {name}", lambda: ports.store(GRANTS).get(name), write)


def _is_done(runs: Runs, run: Run) -> bool:
    """Return whether a run of this name has ended. A repeated request then returns that run and reserves nothing."""
    found = find_run(runs, run.name)
    return found is not None and is_over(found)


def _asked(run: Run) -> Asked:
    job, greatest = run.asked.request, run.money.greatest
    parts = [each.job for each in kind_of(job).parts(job) if not each.is_pipeline] or [job]
    clusters = {run.asked.cluster, *(each.cluster for each in parts), run.on_cluster, run.moves.to} - {""}
    sweep = job.sweep if not workload(run).has_own_nodes else None
    return Asked(
        run.name,
        run.asked.route,
        tuple(sorted(clusters)),
        None if greatest is None else greatest + decide.warm_dollars(run),
        run.money.price_from or f"No price is known for the nodes of {run.asked.cluster or job.cluster}.",
        slots=sweep.at_once if sweep else 1,
        runs=sweep.most_trials if sweep else 1,
        keeps_warm=bool(run.asked.keep_warm_seconds),
        has_limit=bool(job.timeout_seconds) or all(each.timeout_seconds for each in parts),
        part_of=part_of(run),
    )


def _announce_refusal(ports: Any, stored: Stored[Grant], why: Refusal) -> None:
    """Announce once that the budget is used up, because a run was refused for its cost."""
    grant = stored.value
    if why.code != "over_grant" or grant.told >= decide.MARKS[0]:
        return
    ports.happened(GrantUsed(grant.id, decide.MARKS[0], f"Grant {grant.id} ({grant.purpose}): {why.why}"))
    ports.store(GRANTS).replace(stored, replace(grant, told=decide.MARKS[0]))
