"""Record the run of a complete drop. Each step may be a repeat."""

from __future__ import annotations

from dataclasses import replace

from shared.drops.facts import DropComplete
from shared.drops.model import Drop
from shared.runs.decide import first_moment
from shared.runs.facts import RunRecorded
from shared.runs.features import Origin, begun, owner_of_drop
from shared.runs.intake.from_job import run_of
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.model import People, Run, RunState
from shared.runs.ports import RunPorts


def record_run(ports: RunPorts, fact: DropComplete) -> None:
    """Write the run's row, except for a drop of a route without training.

    Raises BadInput if the row is impossible.
    """
    if not fact.drop.run:
        return
    run = _run(ports, fact.drop)
    if ports.runs.insert(run) or ports.runs.get(run.name).value.progress.state is RunState.RECEIVED:
        ports.happened(RunRecorded(run))


def _run(ports: RunPorts, drop: Drop) -> Run:
    job, shorter = within_lifetime(ports.capacity, drop.request)
    route = ports.routes.get(drop.key.route)
    now = drop.sealed_at or ports.clock()
    bounds = (route.min_nodes, route.resubmissions) if route else (0, 0)
    run = run_of(drop.run, job, bounds, now)
    run = replace(
        run,
        asked=replace(
            run.asked,
            drop=str(drop.key),
            route=drop.key.route,
            fingerprint=drop.fingerprint,
            experiment=run.asked.experiment or drop.key.route,
            generation=drop.generation,
        ),
        people=_owner(run.people, drop),
        money=replace(run.money, project=ports.admission.project_of(job.tags, drop.key.route)),
    )
    run = replace(run, progress=replace(run.progress, history=first_moment(run, shorter)))
    return begun(ports, run, Origin(None, route, route.limits)) if route else run


def _owner(people: People, drop: Drop) -> People:
    """The owner that the drop's name proves, otherwise the owner that the uploader named."""
    proven = owner_of_drop(drop.key)
    return replace(people, owner=proven.name or drop.owner, owner_id=proven.id)
