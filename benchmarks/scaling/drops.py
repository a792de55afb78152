"""Drops at a fixed rate, three files each, through the whole local cloud to their archives."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from benchmarks.scaling.cloud import Plan, ScaleCloud, cpu_seconds, memory_mib, p95, running
from emulators.storage.keys import ACCOUNT
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter

LIFE = {"queued_seconds": 1.0, "running_seconds": 5.0}
FILES = ("1.bin", "2.bin", "_SUCCESS")
DRAIN_SECONDS = 240.0  # after the last upload
LOOK_SECONDS = 5.0


def measure(home: Path, a_minute: int, minutes: float, azurite: bool = False) -> dict[str, Any]:
    """Upload at this rate, wait for the last archive, then read every run."""
    plan = Plan(life=LIFE, reconcile="*/30 * * * * *", azurite=azurite)
    with running(home, plan) as cloud:
        asyncio.run(upload(cloud, "warm", 3, 600))
        _wait_for(cloud, 3, 60)
        pids, count = cloud.pids(), int(a_minute * minutes)
        before, own, began = cpu_seconds(pids), time.process_time(), time.monotonic()
        with _Memory(pids["host"]) as memory:
            asyncio.run(upload(cloud, "drop", count, a_minute, memory.look))
            uploaded, load = time.monotonic() - began, time.process_time() - own
            done = _wait_for(cloud, count + 3, DRAIN_SECONDS, memory.look)
            seconds = time.monotonic() - began
        used = {name: round(1000 * (now - before[name]) / count, 1) for name, now in cpu_seconds(pids).items()}
        runs = [run for run in _all_runs(cloud) if "/drop-" in run.asked.drop]
        return {
            **_told(runs, count),
            "uploaded_seconds": round(uploaded, 1),
            "all_archived_seconds": round(seconds, 1) if done else None,
            "drops_per_minute": _rate(runs),
            "cpu_ms_a_drop": used | {"load": round(1000 * load / count, 1)},
            "host_mib": memory.samples(),
            "arm_reads": cloud.reads(),
        }


def _told(runs: list[Run], count: int) -> dict[str, Any]:
    accepted = [
        (run.progress.history[1].at - run.progress.history[0].at).total_seconds()
        for run in runs
        if len(run.progress.history) > 1
    ]
    return {
        "drops": count,
        "sealed": len({run.asked.drop for run in runs}),
        "runs": len(runs),
        "completed": sum(run.progress.state is RunState.COMPLETED for run in runs),
        "archived": _archived(runs),
        "accepted_p95_seconds": round(p95(accepted), 2),
    }


def _rate(runs: list[Run]) -> int:
    """Return the archives a minute, from the first archive to the last."""
    ends = sorted(run.archive.at for run in runs if run.archive.at is not None)
    seconds = (ends[-1] - ends[0]).total_seconds() if len(ends) > 1 else 0.0
    return round(60 * (len(ends) - 1) / seconds) if seconds else 0


def _archived(runs: list[Run]) -> int:
    return sum(run.archive.at is not None for run in runs)


class _Memory:
    """The host's memory while the drops arrive."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: list[float] = []

    def __enter__(self) -> _Memory:
        self.look()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()

    def look(self) -> None:
        self._seen.append(memory_mib(self._pid))

    def samples(self) -> list[int]:
        """Return the memory at the beginning, after each quarter, and at the end."""
        return [round(self._seen[(len(self._seen) - 1) * part // 4]) for part in range(5)]


async def upload(cloud: ScaleCloud, name: str, count: int, a_minute: int, look: Any = lambda: None) -> None:
    """Start `a_minute` drops a minute, without waiting for earlier drops to finish."""
    until, write = datetime.now(UTC) + timedelta(hours=2), ContainerSasPermissions(write=True, create=True)
    sas = generate_container_sas(ACCOUNT, "drops", account_key=cloud.storage_key, permission=write, expiry=until)
    url = f"{cloud.record.blob_url}/drops/noop"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=8)) as session:
        began, looked = time.monotonic(), 0.0
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                wait = began + number * 60 / a_minute - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                tasks.create_task(_drop(session, f"{url}/{name}-{number:05}", sas))
                if time.monotonic() - looked > LOOK_SECONDS:
                    looked = time.monotonic()
                    look()


async def _drop(session: aiohttp.ClientSession, url: str, sas: str) -> None:
    for file in FILES:
        headers = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-12-02"}
        async with session.put(f"{url}/{file}?{sas}", data=url[-5:].encode(), headers=headers) as answer:
            answer.raise_for_status()


def _wait_for(cloud: ScaleCloud, count: int, seconds: float, look: Any = lambda: None) -> bool:
    """Return whether `count` runs are archived within `seconds`."""
    runs, deadline = cloud.system().runs, time.monotonic() + seconds
    while time.monotonic() < deadline:
        look()
        hours = runs.hours()
        if not any(runs.unsettled(hour, 1) for hour in hours) and len(_all_runs(cloud)) >= count:
            return True
        time.sleep(LOOK_SECONDS / 2)
    return False


def _all_runs(cloud: ScaleCloud) -> list[Run]:
    runs, token, found = cloud.system().runs, "", list[Run]()
    while True:
        page = runs.page(RunFilter(), 1000, token)
        found += page.runs
        token = page.token
        if not token:
            return found
