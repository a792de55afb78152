"""Detect a launcher on several nodes without a common rendezvous. Pure."""

from __future__ import annotations

import re

from shared.jobs.problem import Problem
from shared.jobs.spec import JobSpec

_STARTS = re.compile(
    r"(?:^|[\s;&|(])(?:\S*/)?(torchrun|accelerate\s+launch)(?=\s|$)|-m\s+(torch\.distributed\.(?:run|launch))(?=\s|$)"
)
# An address that the command, a variable or a file of settings names itself.
_MEETING = re.compile(r"rdzv|master[_-]addr|main[_-]process[_-]ip|--config[_-]file", re.IGNORECASE)
_OPTIONS = {"accelerate launch": "--machine_rank, --main_process_ip and --main_process_port"}


def lonely_nodes(job: JobSpec) -> Problem | None:
    """Why the nodes of this job would train separately: Azure ML connects nodes only for a job with a distribution."""
    command = str(job.command)
    started = _STARTS.search(command)
    if job.distribution or job.node_count == 1 or job.is_elastic or not started:
        return None
    if _MEETING.search(" ".join((command, *job.variables))):
        return None
    launcher = " ".join((started[1] or started[2]).split())
    options = _OPTIONS.get(launcher, "--node-rank, --master-addr and --master-port")
    return Problem(
        "distribution",
        f"is missing: the command starts {launcher} on {job.node_count} nodes, and the nodes have no way to find each "
        "other. With a distribution of type pytorch (submit: --distribution pytorch) each node has NODE_RANK, "
        f"MASTER_ADDR and MASTER_PORT, for the options {options}. Or leave {launcher} out, and let the distribution "
        "start the processes (--processes N).",
        "no_distribution",
    )
