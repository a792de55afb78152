"""The first job of a new app process: from the sealing of its drop until Azure ML accepts the job."""

from __future__ import annotations

import asyncio
import statistics
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.scaling.cloud import Plan, ScaleCloud, cpu_seconds, running
from benchmarks.scaling.drops import upload
from emulators import process
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter


def measure(home: Path, starts: int) -> dict[str, Any]:
    """Measure first jobs. The very first job of a new workspace also registers the environment, and is reported
    separately."""
    with running(home, Plan(life={"queued_seconds": 0.0})) as cloud:
        new = _first_job(cloud, "new")
        found = []
        for number in range(starts):
            cloud.restart_host()
            found.append(_first_job(cloud, f"cold{number}"))
    seconds = [seconds for seconds, _ in found]
    return {
        "first_job_seconds": round(statistics.median(seconds), 2),
        "each": [round(one, 2) for one in seconds],
        "host_cpu_seconds": round(statistics.median(used for _, used in found), 2),
        "new_workspace_seconds": round(new[0], 2),
    }


def _first_job(cloud: ScaleCloud, name: str) -> tuple[float, float]:
    """Return the seconds from the sealing to the acceptance, and the CPU seconds of the host since its start."""
    asyncio.run(upload(cloud, name, 1, 60))
    run = process.wait_for(lambda: _sent(cloud, name), 120, f"the job of {name}")
    sealed, accepted = (moment.at for moment in run.progress.history[:2])
    return _between(sealed, accepted), cpu_seconds({"host": cloud.pids()["host"]})["host"]


def _between(first: datetime, then: datetime) -> float:
    return (then - first).total_seconds()


def _sent(cloud: ScaleCloud, name: str) -> Run | None:
    runs = cloud.system().runs.page(RunFilter(), 5).runs
    wanted = (run for run in runs if f"/{name}-" in run.asked.drop and run.progress.state is not RunState.RECEIVED)
    return next(wanted, None)
