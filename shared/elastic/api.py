"""Elastic runs over HTTP: end the job of a member."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from shared.elastic.model import elastic_of
from shared.elastic.workload import job_of
from shared.kernel.encode import Json
from shared.kernel.errors import BadInput, Conflict, NotFound
from shared.kernel.person import NOBODY, Person
from shared.runs.codes import Deed
from shared.runs.intake.request import RunName
from shared.runs.model import RunState
from shared.runs.ports import RunPorts
from shared.runs.views.notes_and_tags import note_deed

MemberNumber = Annotated[str, Meta(pattern="^[0-9]{1,4}$")]


class Evicted(Struct):
    run: str
    job: str


def evict_member(ports: RunPorts, run: RunName, member: MemberNumber, by: Person) -> Annotated[Json, Evicted]:
    """End the job of a member of an elastic run, to test that the run continues without the member."""
    return {"run": run, "job": evict(ports, run, _read_member(member), by)}


def evict(ports: RunPorts, name: str, index: int, by: Person = NOBODY) -> str:
    """Cancel the job of one member as after an eviction, and return the job's name. The run continues.

    Raises Impossible for a run without members, NotFound for an unknown member, and Conflict for a member that isn't
    running.
    """
    run = ports.runs.get(name).value
    members = {member.index: member for member in elastic_of(run).members}
    if index not in members:
        raise NotFound(f"Run {name} has no member {index}; it has 0 to {run.asked.nodes - 1}.")
    member = members[index]
    if member.state is not RunState.RUNNING:
        raise Conflict(f"Member {index} of run {name} is {member.state}, not running.", "not_running")
    job = job_of(run, member)
    ports.jobs.cancel(job)
    note_deed(ports, name, f"evicted member {index} ({job})", by, Deed.EVICTED)
    return job


def _read_member(text: str) -> int:
    """The number of a member. A model's pattern accepts a trailing newline; this function does not."""
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise BadInput(f"member is {text[:40]!r}; give its number, counted from 0.")
    return int(text)
