"""Which of the messages that were set aside are settled: what they asked for is done, by another message or a timer.

After a long outage there are many of these. They are deleted, so that what is left is what somebody has to look at.
What nobody else would send again goes back to its queue, for as long as it is news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from shared.drops import collect
from shared.events import incoming
from shared.events.incoming import Json
from shared.events.ports import HasAudience, HasEvents
from shared.jobs.ports import HasRoutes
from shared.kernel import places
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadMessage, NotFound, TrainyardError
from shared.models.challenge import is_challenger
from shared.removals.ports import HasNamed
from shared.runs.decide import is_over
from shared.runs.model import Run
from shared.runs.names import run_of_job

MOST = 1000  # messages of one queue that one round looks at
NEWS_FOR = timedelta(days=1)  # so long Event Grid tries a delivery, too


class Ports(collect.Ports, HasEvents, HasAudience, HasRoutes, HasNamed, Protocol):
    """What is needed here from outside."""


def clear(ports: Ports, queues: Iterable[str]) -> None:
    """Delete the settled messages of these poison queues, and have what is news tried again."""
    for poison in queues:
        if (queue := poison.removesuffix("-poison")) in _SETTLED:
            ports.queues.clear(poison, partial(_leaves, ports, queue), MOST)


def is_settled(ports: Ports, queue: str, text: str) -> bool:
    """Whether this message of that queue has nothing left to do. False where that can't be known now."""
    try:
        return queue in _SETTLED and _SETTLED[queue](ports, incoming.decode(text.encode()))
    except TrainyardError:
        return False


def _leaves(ports: Ports, queue: str, text: str) -> bool:
    """Whether the message is settled, or back in its queue."""
    return is_settled(ports, queue, text) or _goes_back(ports, queue, text)


def _goes_back(ports: Ports, queue: str, text: str) -> bool:
    try:
        message = incoming.decode(text.encode())
        if queue not in _NEWS or _is_old(ports, _NEWS[queue](ports, message)):
            return False
        ports.queues.send(queue, message)
    except TrainyardError:
        return False
    return True


def _is_old(ports: Ports, at: datetime | None) -> bool:
    return at is None or ports.clock() - at > NEWS_FOR


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
    """The hourly look begins the looks at a sweep, or at a run with a date, anew."""
    if "data_of" in message:
        return _archived(_run(ports, incoming.text(message, "data_of")))
    return "sweep" in message or "paced" in message or incoming.text(message, "hour") not in ports.runs.hours()


def _announcement(ports: Ports, message: Json) -> bool:
    return ports.events is None or _is_old(ports, _told_at(ports, message))


def _notice(ports: Ports, message: Json) -> bool:
    nobody = ports.audience is not None and not ports.audience.anyone()
    return nobody or _is_old(ports, _told_at(ports, message))


def _delivery(ports: Ports, message: Json) -> bool:
    return ports.audience is not None and _pending_since(ports, message) is None


def _promotion(ports: Ports, message: Json) -> bool:
    """Of a run that became a version, or whose route names no model any more."""
    run = _run(ports, incoming.text(message, "run"))
    return run is None or not is_challenger(ports.routes, run) or bool(ports.named.needing_run(run.name))


def _told_at(ports: Ports, message: Json) -> datetime:  # noqa: ARG001
    try:
        at = datetime.fromisoformat(incoming.text(message, "at"))
    except ValueError as exc:
        raise BadMessage(f"The message's time can't be read: {message['at']!r}.") from exc
    if at.tzinfo is None:
        raise BadMessage(f"The message's time has no zone: {message['at']!r}.")
    return at


def _pending_since(ports: Ports, message: Json) -> datetime | None:
    names = incoming.text(message, "subscription"), incoming.text(message, "notice")
    return ports.audience.pending(*names) if ports.audience else None


def _archived_at(ports: Ports, message: Json) -> datetime | None:
    run = _run(ports, incoming.text(message, "run"))
    return run.archive.at if run else None


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
    places.ANNOUNCEMENTS: _announcement,
    places.NOTICES: _notice,
    places.DELIVERIES: _delivery,
    places.PROMOTIONS: _promotion,
    # Each sweep, each round of the schedules and the daily timer sends others, or needs none.
    places.CLUSTER_LOOKS: lambda _, message: "cluster" in message,
    places.SCHEDULE_LOOKS: lambda _, message: "schedule" in message,
    places.REMOVALS: lambda _, message: "asked_at" in message,
}
# When the messages that nobody else sends again became news.
_NEWS: dict[str, Callable[[Ports, Json], datetime | None]] = {
    places.ANNOUNCEMENTS: _told_at,
    places.NOTICES: _told_at,
    places.DELIVERIES: _pending_since,
    places.PROMOTIONS: _archived_at,
}
