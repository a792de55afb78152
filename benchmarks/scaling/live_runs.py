"""Ten thousand live runs: one reconciling round within Resource Manager's limits, and events meanwhile.

The runs are rows of the table service; their jobs are in the workspace on a simulated cluster. While the jobs are
created, no event is delivered. Then some jobs end, their events are lost too, and the round has to find these jobs.
Meanwhile other jobs end whose events do arrive.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.scaling.cloud import CLUSTER, Plan, ScaleCloud, cpu_seconds, memory_mib, p95, running
from emulators.azureml.kernel.identity import token
from shared.adapters.azureml.document import document
from shared.adapters.azureml.job_body import job_body
from shared.jobs.command import Command
from shared.jobs.spec import JobSpec
from shared.runs.decide import first_moment
from shared.runs.model import Run, RunState
from shared.runs.names import hour_of
from shared.system import System
from tests.fakes.parts import changed

CHANGED = 0.05  # of the runs, during the round and unseen by events
ROUND_SECONDS = 600.0  # until this benchmark gives up
EVENT_SECONDS = 0.5  # between two jobs whose events arrive
JOB_EVENTS = tuple(f"Microsoft.MachineLearningServices.{kind}" for kind in ("RunStatusChanged", "RunCompleted"))


def measure(home: Path, count: int, hours: float) -> dict[str, Any]:
    plan = Plan(life={"queued_seconds": 0.0}, writes=(1_000_000, 1_000), reconcile="0 0 0 1 1 *")
    with running(home, plan) as cloud:
        system = cloud.system()
        runs = [_run(number, count, hours) for number in range(count)]
        began = time.monotonic()
        cloud.lose_events(1.0, *JOB_EVENTS)
        with ThreadPoolExecutor(1) as pool:
            rows = pool.submit(lambda: [system.runs.insert(run) for run in runs])
            asyncio.run(_put_jobs(cloud, runs))
            rows.result()
        unseen = runs[:: round(1 / CHANGED)]
        for run in unseen:
            _end(cloud, run)
        _settle(cloud)
        cloud.lose_events(0.0)
        loaded = time.monotonic() - began
        seen = [run for run in runs[7 :: round(1 / CHANGED)] if run not in unseen]
        return {"live_runs": count, "loaded_seconds": round(loaded)} | _round(cloud, system, unseen, seen)


def _round(cloud: ScaleCloud, system: System, unseen: list[Run], seen: list[Run]) -> dict[str, Any]:
    pid, before, reads = cloud.pids()["host"], cpu_seconds(cloud.pids()), cloud.reads()
    stop, waited = threading.Event(), list[float]()
    events = threading.Thread(target=_events, args=(cloud, system, seen, stop, waited))
    began = time.monotonic()
    events.start()
    cloud.ask(f"{cloud.api.removesuffix('/api')}/admin/functions/reconcile_timer", {"input": ""})
    left = {run.name for run in unseen}
    while (left or _looks_wait(system)) and time.monotonic() - began < ROUND_SECONDS:
        left = {name for name in left if system.runs.get(name).value.progress.state is not RunState.COMPLETED}
        time.sleep(0.5)
    seconds = time.monotonic() - began
    stop.set()
    events.join()
    used = {name: round(now - before[name], 1) for name, now in cpu_seconds(cloud.pids()).items()}
    asked = cloud.arm_requests()
    return {
        "round_seconds": round(seconds, 1),
        "missed": len(left),
        "arm_reads": cloud.reads() - reads,
        "throttled": sum(request["status"] == 429 for request in asked),
        "longest_invocation_seconds": _longest_look(cloud),
        "peak_rss_mib": round(memory_mib(pid, "VmHWM"), 1),
        "events": len(waited),
        "event_p95_seconds": round(p95(waited), 2),
        "cpu_seconds": used,
    }


def _looks_wait(system: System) -> int:
    return system.queues.counts(["checks"])["checks"]


def _longest_look(cloud: ScaleCloud) -> float:
    lines = re.findall(r"(?:checks|reconcile_timer) ok (\d+) ms", cloud.log("host").read_text())
    return max((int(found) for found in lines), default=0) / 1000


def _events(cloud: ScaleCloud, system: System, runs: list[Run], stop: threading.Event, waited: list[float]) -> None:
    """End one job after another, and record the seconds until the job's row shows the end."""
    for run in runs:
        if stop.is_set():
            return
        began = time.monotonic()
        _end(cloud, run)
        while (
            system.runs.get(run.name).value.progress.state is not RunState.COMPLETED and time.monotonic() - began < 60
        ):
            time.sleep(0.05)
        waited.append(time.monotonic() - began)
        stop.wait(EVENT_SECONDS)


def _end(cloud: ScaleCloud, run: Run) -> None:
    cloud.ask(f"{cloud.azureml}/control/jobs/{run.name}/end", {"status": "Completed"})


def _settle(cloud: ScaleCloud) -> None:
    """Wait until all earlier events have left Event Grid, where they are lost."""
    before = -1
    while (now := cloud.ask(f"{cloud.eventgrid}/control/counts")["received"]) != before:
        before = now
        time.sleep(1.5)


def _run(number: int, count: int, hours: float) -> Run:
    now = datetime.now(UTC)
    at = now - timedelta(hours=hours) * (1 - number / count) - timedelta(minutes=2)
    name = f"noop-{number:016x}"
    job = JobSpec(
        name=name,
        title=f"noop/d{number}",
        experiment="noop",
        command=Command(("python -c pass",)),
        environment="azureml:AzureML-local:1",
        cluster=CLUSTER,
        nodes=1,
        timeout_seconds=3600,
    )
    run = Run.of(
        name=name,
        drop=f"noop/d{number}",
        route="noop",
        fingerprint=f"{number:064x}",
        experiment="noop",
        cluster=CLUSTER,
        nodes=1,
        created_at=at,
        request=job,
    )
    return changed(run, history=first_moment(run), job=name, state=RunState.RUNNING)


async def _put_jobs(cloud: ScaleCloud, runs: list[Run]) -> None:
    workspace = cloud.record.workspace_id
    context = ssl.create_default_context(cafile=str(cloud.certs))
    headers = {"Authorization": f"Bearer {token()}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=4, ssl=context), headers=headers) as session:

        async def put(run: Run) -> None:
            job = document(replace(run.asked.request, properties={"trainyard.hour": hour_of(run.created_at)}))
            url = f"{cloud.azureml}{workspace}/jobs/{run.name}?api-version=2024-04-01"
            async with session.put(url, data=json.dumps(job_body(job, workspace))) as answer:
                answer.raise_for_status()

        for begin in range(0, len(runs), 100):
            await asyncio.gather(*map(put, runs[begin : begin + 100]))
