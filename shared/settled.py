"""Which of the messages that were set aside are settled: what they asked for is done, by another message or a timer.

After a long outage there are many of these. They are deleted, so that what is left is what somebody has to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from shared.drops import collect
from shared.events import incoming
from shared.events.incoming import Json
from shared.kernel import places
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound, TrainyardError
from shared.runs.decide import is_over
from shared.runs.model import Run, run_of_job

MOST = 1000  # messages of one queue that one round looks at


class Ports(collect.Ports, Protocol):
    """What is needed here from outside."""


def clear(ports: Ports, queues: Iterable[str]) -> None:
    """Delete the settled messages of these poison queues."""
    for poison in queues:
        if (queue := poison.removesuffix("-poison")) in _SETTLED:
            ports.queues.clear(poison, partial(is_settled, ports, queue), MOST)


def is_settled(ports: Ports, queue: str, text: str) -> bool:
    """Whether this message of that queue has nothing left to do. False where that can't be known now."""
    try:
        return queue in _SETTLED and _SETTLED[queue](ports, incoming.decode(text.encode()))
    except TrainyardError:
        return False


def _run(ports: Ports, name: str) -> Run | None:
    try:
        return ports.runs.get(name).value
    except NotFound:
        return None


def _submission(ports: Ports, message: Json) -> bool:
    run = _run(ports, incoming.text(message, "run"))
    return run is not None and (is_over(run) or (run.cancel.asked_at is None and bool(run.jobs.job)))


def _archived(run: Run | None) -> bool:
    return run is not None and (run.archive.at is not None or run.archive.gave_up_at is not None)


def _archive(ports: Ports, message: Json) -> bool:
    return _archived(_run(ports, incoming.text(message, "run")))


def _job_event(ports: Ports, message: Json) -> bool:
    """Of a job of ours that is done, or of somebody else's."""
    job = incoming.job_of(message)
    run = _run(ports, run_of_job(job)) if job else None
    return run is None or _archived(run)


def _run_look(ports: Ports, message: Json) -> bool:
    if "data_of" in message:
        return _archived(_run(ports, incoming.text(message, "data_of")))
    return incoming.text(message, "hour") not in ports.runs.hours()


def _drop_event(ports: Ports, message: Json) -> bool:
    written = incoming.blob_written(message)
    return written is None or written.container != places.DROPS_CONTAINER or collect.is_noted(ports, written.name)


def _drop_check(ports: Ports, message: Json) -> bool:
    """Of a drop that was opened again since, or closed and holds what the listing that closed it showed."""
    key = DropKey(incoming.text(message, "route"), incoming.text(message, "name"))
    stored = ports.drops.get(key)
    if stored is None or stored.value.token != message.get("token"):
        return True
    return collect.holds_what_was_listed(ports, stored.value)


_SETTLED: dict[str, Callable[[Ports, Json], bool]] = {
    places.SUBMISSIONS: _submission,
    places.ARCHIVES: _archive,
    places.JOB_EVENTS: _job_event,
    places.RUN_LOOKS: _run_look,
    places.DROP_EVENTS: _drop_event,
    places.DROP_CHECKS: _drop_check,
    # Each sweep and each round of the schedules sends others, or needs none.
    places.CLUSTER_LOOKS: lambda _, message: "cluster" in message,
    places.SCHEDULE_LOOKS: lambda _, message: "schedule" in message,
}
