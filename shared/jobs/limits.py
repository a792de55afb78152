"""The administrator's limits on jobs, for costs and for power over the workspace.

The same limits apply to every way of submitting.

The reader first normalizes the job's numbers as Azure ML would ("8" and 8.0 are 8). The limits check these normalized
values, so the checked value is the submitted value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.jobs.location import Asset
from shared.jobs.problem import Problem
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import JobSpec, Layer
from shared.jobs.vm_size import why_retired
from shared.kernel.names import COMPUTE, COMPUTE_RULE

DAY = 86_400
# Azure ML ends a job after this many days, and "data for runs not completed within the maximum lifetime is not
# accessible": https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas
JOB_DAYS, LOW_PRIORITY_JOB_DAYS = 21, 7
_SECONDS_TO_SAVE = 3600  # by which a job's own time limit ends the job earlier, so that its data is accessible
# Limits of Azure ML for a job: https://learn.microsoft.com/azure/machine-learning/resource-limits-capacity
MOST_ENTRIES, RESERVED = 50, 10  # tags, and properties, of a job; and how many Trainyard may add of each
KEY_LENGTH, VALUE_LENGTH, DESCRIPTION_LENGTH = 100, 1000, 5000  # characters
OURS = "trainyard."  # begins the names of Trainyard's own tags and properties
CODE = "code"  # can be allowed like the parts below: the user's own code folders, beside a job or uploaded for it
UPLOAD_MIB = 256  # of one folder uploaded for a job

# Parts of a job with effects beyond its own run: a port open to the outside, the identity of the node or the caller,
# the order in the cluster's queue, the container's own options. A route or the file's `limits` may allow them by name.
RESTRICTED = ("services", "identity", "queue_settings", "docker_args")
# The number fields of a job, and the limit of each.
_NUMBERS = {
    "nodes": "max_nodes",
    "processes": "max_processes",
    "workers": "max_workers",
    "parameter_servers": "max_workers",
    "timeout_seconds": "timeout_seconds",
}


@dataclass(frozen=True)
class Limits:
    """The limits of a job. `clusters` None allows any cluster, `environments` None any environment.

    `max_processes` is the limit per node.
    """

    clusters: frozenset[str] | None = None
    max_nodes: int = 1
    max_processes: int = 64
    timeout_seconds: float = DAY
    allow: frozenset[str] = frozenset()
    environments: tuple[str | Asset, ...] | None = None
    max_upload_mib: int = UPLOAD_MIB
    cluster: str = ""  # the cluster of a job that names none

    @property
    def allows_code(self) -> bool:
        return CODE in self.allow

    @property
    def max_workers(self) -> int:
        return self.max_nodes * self.max_processes


def lifetime_seconds(days: int) -> int:
    """The longest useful time limit, in seconds, of a job that Azure ML ends after this number of days."""
    return days * DAY - _SECONDS_TO_SAVE


def over_limits(merged: Layer, written: JobSpec, limits: Limits) -> Iterator[Problem]:
    """Problems of a job beyond the limits. `written` is the part that the user wrote."""
    yield from _numbers(merged, limits)
    yield from _cluster(merged.job, limits)
    for name in RESTRICTED:
        if written.restricted.get(name) is not None and name not in limits.allow:
            yield Problem(
                name, f"is not allowed here; an administrator can allow it in the routes file (allow: [{name}])."
            )
    if limits.environments is not None and written.environment and written.environment not in limits.environments:
        yield Problem(
            "environment", f"choose one of {', '.join(map(place_text, limits.environments)) or 'none'} on this route."
        )


def over_azures_limits(job: JobSpec) -> Iterator[Problem]:
    """Problems of a description, tags or properties that Azure ML would not store, and a retired size."""
    if why := why_retired(job.machine):
        yield Problem("machine", f"{why}.")
    if (length := len(job.description)) > DESCRIPTION_LENGTH:
        yield Problem("description", f"has {length:,} characters; Azure ML takes at most {DESCRIPTION_LENGTH:,}.")
    for field, entries in (("tags", job.tags), ("properties", job.properties)):
        yield from _entries(field, {name: str(value) for name, value in entries.items() if not name.startswith(OURS)})


def _entries(field: str, entries: Mapping[str, str]) -> Iterator[Problem]:
    if len(entries) > (most := MOST_ENTRIES - RESERVED):
        yield Problem(field, f"are {len(entries)}; use at most {most}: Azure ML takes {MOST_ENTRIES}, with ours.")
    for name, value in entries.items():
        if len(name) > KEY_LENGTH:
            yield Problem(field, f"{name[:40]!r}... is {len(name)} characters long; use at most {KEY_LENGTH}.")
        if len(value) > VALUE_LENGTH:
            words = f"has {len(value):,} characters; Azure ML takes at most {VALUE_LENGTH:,}."
            yield Problem(f"{field}.{name[:KEY_LENGTH]}", words)


def _numbers(merged: Layer, limits: Limits) -> Iterator[Problem]:
    for field, limit in _NUMBERS.items():
        value, most = merged.unread.get(field, getattr(merged.job, field)), getattr(limits, limit)
        if field in merged.unread or value > most:
            whole = "whole seconds" if field == "timeout_seconds" else "a whole number"
            yield Problem(field, f"is {repr(value)[:40]}; use {whole} from 1 to {round(most):d}.")


def _cluster(job: JobSpec, limits: Limits) -> Iterator[Problem]:
    if job.cluster and not COMPUTE.fullmatch(job.cluster):
        yield Problem("cluster", f"is {job.cluster[:80]!r}; {COMPUTE_RULE}.", "bad_name")
    elif limits.clusters is not None and job.cluster and job.cluster not in limits.clusters:
        choices = ", ".join(sorted(limits.clusters)) or "none"
        yield Problem("cluster", f"is {job.cluster[:80]!r}; choose one of {choices}.", "cluster_not_allowed")
