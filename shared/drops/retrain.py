"""Train a drop's content again on request. Without a request, content makes only one run."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from shared.drops.model import Drop, DropState
from shared.drops.ports import DropPorts, Drops
from shared.jobs.spec import again
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Conflict, NotFound
from shared.runs.intake.from_job import run_of
from shared.runs.intake.insert_run import name_with_route, record
from shared.runs.intake.job_lifetime import within_lifetime
from shared.runs.model import Moment, Run, RunState


def train_again(ports: DropPorts, drop: DropKey, key: str | None = None, owner: str = "", owner_id: str = "") -> Run:
    """A new run with the job of the drop's newest generation. A repeated key returns the existing run.

    Raises NotFound for an unknown drop, and Conflict for an open drop, which makes its own run when it closes.
    """
    stored_drop, now = _trained(ports.drops, drop), ports.clock()
    kind, what = ("key", key) if key else ("token", ports.new_token())
    name = name_with_route(ports.runs, kind, drop.route, what)
    route = ports.routes.get(drop.route)
    bounds = (route.min_nodes, route.resubmissions) if route else (0, 0)
    job, shorter = within_lifetime(ports.capacity, again(stored_drop.request, stored_drop.run, name))
    why = f"Generation {stored_drop.generation} of drop {drop} is being trained again. {shorter}".strip()
    run = run_of(name, job, bounds, now)
    run = replace(
        run,
        asked=replace(
            run.asked,
            drop=str(drop),
            route=drop.route,
            fingerprint=stored_drop.fingerprint,
            experiment=run.asked.experiment or drop.route,
            digest=hashlib.sha256(f"again {drop} {stored_drop.generation}".encode()).hexdigest(),
            retry_of=stored_drop.run,
            generation=stored_drop.generation,
        ),
        progress=replace(run.progress, history=(Moment(RunState.RECEIVED, now, why),)),
        people=replace(run.people, owner=owner, owner_id=owner_id),
    )
    return record(ports, run)


def _trained(drops: Drops, drop: DropKey) -> Drop:
    """The drop, if its newest generation made a run."""
    stored = drops.get(drop)
    if stored is None:
        raise NotFound(f"No upload to drops/{drop} was seen.")
    if stored.value.state is not DropState.SEALED:
        raise Conflict(
            f"Drop {drop} is {stored.value.state}, so there is nothing to train again. {stored.value.why}", "not_sealed"
        )
    if not stored.value.run:
        raise Conflict(
            f"Route {drop.route!r} does not train, so there is nothing to train again. Name the drop as data: "
            f"submit TRAINER --data drops/{drop}.",
            "trains_nothing",
        )
    if stored.value.removed_at is not None:
        raise Conflict(f"Drop {drop} is being removed, so there is nothing to train again.", "being_removed")
    return stored.value
