"""Detect a torchrun command on several nodes without a common rendezvous. Pure."""

from __future__ import annotations

import re

from shared.jobs.problem import Problem
from shared.jobs.spec import JobSpec

_STARTS = re.compile(r"(?:^|[\s;&|(])(?:\S*/)?torchrun(?=\s|$)|-m\s+torch\.distributed\.(?:run|launch)(?=\s|$)")
_MEETING = re.compile(r"rdzv|master[_-]addr", re.IGNORECASE)  # an address that the command or a variable names itself


def lonely_nodes(job: JobSpec) -> Problem | None:
    """Why the nodes of this job would train separately: Azure ML connects nodes only for a job with a distribution."""
    command = str(job.command)
    if job.distribution or job.node_count == 1 or job.is_elastic or not _STARTS.search(command):
        return None
    if _MEETING.search(" ".join((command, *job.variables))):
        return None
    return Problem(
        "distribution",
        f"is missing: the command starts torchrun on {job.node_count} nodes, and the nodes have no way to find each "
        "other. With a distribution of type pytorch (submit: --distribution pytorch) each node has NODE_RANK, "
        "MASTER_ADDR and MASTER_PORT, for torchrun's --node-rank, --master-addr and --master-port. Or leave torchrun "
        "out, and let the distribution start the processes (--processes N).",
        "no_distribution",
    )
