"""Check the number of nodes of an elastic job. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from shared.jobs.command import LAUNCHER
from shared.jobs.order import JobOrder
from shared.jobs.problem import Problem
from shared.jobs.spec import JobSpec

MOST_MEMBERS = 100  # jobs of an elastic run


def problems(order: JobOrder, job: JobSpec) -> Iterator[Problem]:
    """Problems of a job for a variable number of nodes."""
    fewest, most = order.asked.min_nodes or order.defaults.min_nodes, job.node_count
    if not job.is_elastic:
        if order.asked.min_nodes:
            why = f"is a range, but the job does not start {LAUNCHER}; give one number of nodes."
            yield Problem("nodes", why, "bad_nodes")
        return
    if most > MOST_MEMBERS:
        yield Problem("nodes", f"are {most}; an elastic run has at most {MOST_MEMBERS}.", "bad_nodes")
    if fewest > most:
        yield Problem("nodes", f"must be at least {fewest}, and at most {most}.", "bad_nodes")
