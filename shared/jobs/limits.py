"""What an administrator bounds, because it is paid for or is power over the workspace; the same for every way in.

`converted` first turns the job's numbers into what Azure ML will make of them ("8" and 8.0 are 8), and the limits are
compared with that; so the value that was checked is the value that is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs.job import Job, cluster, mapping
from shared.jobs.model import Problem
from shared.jobs.upload import digest_in as uploaded

DAY = 86_400
CODE = "code"  # may be allowed like the parts below: folders of one's own, beside a job or sent for it
UPLOAD_MIB = 256  # of one folder that is sent for a job

# Parts of a job that reach beyond its own run: a port to the outside, the node's or the caller's identity, the order in
# the cluster's queue, the container's own options. A route or the file's `limits` may allow them by name.
RESTRICTED = {
    "services": ("services",),
    "identity": ("identity",),
    "queue_settings": ("queue_settings",),
    "docker_args": ("resources", "docker_args"),
}
# The whole numbers of a job: where they are, and which limit holds.
_NUMBERS = (
    ("resources", "instance_count", "max_nodes"),
    ("distribution", "process_count_per_instance", "max_processes"),
    ("distribution", "worker_count", "max_workers"),
    ("distribution", "parameter_server_count", "max_workers"),
)


@dataclass(frozen=True)
class Limits:
    """`clusters` None is any cluster, `environments` None any environment. `max_processes` is for each node."""

    clusters: frozenset[str] | None = None
    max_nodes: int = 1
    max_processes: int = 64
    timeout_seconds: float = DAY
    allow: frozenset[str] = frozenset()
    environments: tuple[str, ...] | None = None
    max_upload_mib: int = UPLOAD_MIB
    cluster: str = ""  # where a job runs that names none

    @property
    def allows_code(self) -> bool:
        return CODE in self.allow

    @property
    def max_workers(self) -> int:
        return self.max_nodes * self.max_processes


def converted(job: Job) -> Job:
    """The job with its whole numbers as whole numbers, where text or a float says one."""
    changed = dict(job)
    for part, key, _ in (*_NUMBERS, ("limits", "timeout", "")):
        inner = job.get(part)
        if isinstance(inner, dict) and key in inner:
            changed[part] = {**mapping(changed[part]), key: _whole(inner[key])}
    return changed


def _whole(value: Any) -> Any:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def over_limits(job: Job, written: Job, limits: Limits) -> Iterator[Problem]:
    """What of a converted job is beyond the limits. `written` is the part that is not the administrator's."""
    yield from _numbers(job, limits)
    yield from _cluster(job, limits)
    for name, path in RESTRICTED.items():
        inner: Any = written
        for key in path:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if inner is not None and name not in limits.allow:
            yield Problem(".".join(path), "is not allowed here; an administrator can allow it in the routes file.")
    if uploaded(written.get("code")) and not limits.allows_code:
        yield Problem("code", "of your own is not allowed here; an administrator can allow it in the routes file.")
    environment = written.get("environment")
    if limits.environments is not None and environment is not None and environment not in limits.environments:
        yield Problem("environment", f"choose one of {', '.join(limits.environments) or 'none'} on this route.")


def _numbers(job: Job, limits: Limits) -> Iterator[Problem]:
    for part, key, limit in _NUMBERS:
        value, most = mapping(job.get(part)).get(key, 1), getattr(limits, limit)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            yield Problem(f"{part}.{key}", f"is {repr(value)[:40]}; use a whole number from 1 to {most}.")
    seconds = mapping(job.get("limits")).get("timeout", 1)
    if type(seconds) is not int or not 1 <= seconds <= limits.timeout_seconds:
        yield Problem(
            "limits.timeout", f"is {repr(seconds)[:40]}; use whole seconds from 1 to {limits.timeout_seconds:g}."
        )


def _cluster(job: Job, limits: Limits) -> Iterator[Problem]:
    if limits.clusters is not None and (name := cluster(job)) and name not in limits.clusters:
        choices = ", ".join(sorted(limits.clusters)) or "none"
        yield Problem("compute", f"is {name[:80]!r}; choose one of {choices}.", "cluster_not_allowed")
