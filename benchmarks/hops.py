"""The hops of a drop: its wait until its job is accepted and its run archived, warm and from zero.

    python3 trainyard.py bench hops [--quick] [--json]

Warm: one host runs every function and polls as host.json configures. Drops of one file and a marker arrive at random
moments, while every queue is polled at its longest interval. Target: a median of 3 s from the marker to the accepted
job, with at most 100 storage requests a minute while nothing happens. The requests of the timers' functions are
measured by `bench idle`.

From zero: Flex Consumption gives each queue's function its own instances, which start when the queue has a message.
Here a host of the local cloud serves only HTTP, and the benchmark acts as the platform: a host for a function's group
starts at the first message. Target: one start before the accepted job, two before the archive; no user waits for the
other starts.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from benchmarks._options import options
from benchmarks.scaling.cloud import Plan, ScaleCloud, running
from emulators import process
from emulators.host.config import HostJson
from functions.queues import function_of
from local.record import REPOSITORY
from shared.drops.decide import SETTLED_SECONDS
from shared.kernel import places
from shared.kernel.storage import Queues
from shared.messages.declared import QUEUES
from shared.runs.model import Run, RunState
from shared.runs.ports import RunFilter

FLEX = {"WEBSITE_SKU": "FlexConsumption", "FUNCTIONS_TARGET_GROUP": "http"}
POLLING = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
LIFE = {"queued_seconds": 0.0, "running_seconds": 2.0}
PATIENCE = 180.0
DROPS, QUICK = 12, 2
COUNTED_SECONDS, QUICK_SECONDS = 120.0, 30.0
LOOK_SECONDS = 0.1


@dataclass
class Platform:
    """Starts a host for each group that has a message, and keeps the host running."""

    cloud: ScaleCloud
    queues: Queues
    hosts: dict[str, process.Part] = field(default_factory=dict)

    def look(self) -> None:
        for queue in QUEUES:
            if function_of(queue) not in self.hosts and self.queues.peek(queue, 1):
                self._start(function_of(queue))

    def _start(self, function: str) -> None:
        host = self.cloud._parts["host"]
        config = self.cloud.home / "configs" / f"host-{function}.json"
        config.write_text(json.dumps({**host.config, "port": 0}))
        argv = [sys.executable, "-m", "emulators.host", "--config", str(config)]
        env = {**host.env, "FUNCTIONS_TARGET_GROUP": f"function:{function}"}
        log = self.cloud.home / "logs" / f"host-{function}.log"
        self.hosts[function] = process.start(function, argv, log=log, env=env)

    def stop(self) -> None:
        for host in self.hosts.values():
            host.stop()


def from_zero(home: Path) -> dict[str, Any]:
    """Return, for each step of one drop, its time in seconds and the functions that had started by then."""
    with running(home, Plan(life=LIFE, app_env=FLEX)) as cloud:
        platform = Platform(cloud, cloud.system().queues)
        try:
            return _one_drop(cloud, platform)
        finally:
            platform.stop()


def _one_drop(cloud: ScaleCloud, platform: Platform) -> dict[str, Any]:
    began = _upload(cloud, "first")
    found = dict[str, Any]()
    while "archived" not in found and time.monotonic() - began < PATIENCE:
        platform.look()
        run = _newest(cloud)
        seen = {"accepted": _is_accepted(run), "archived": run and run.archive.at}
        for step in (step for step, is_so in seen.items() if is_so and step not in found):
            found[step] = {"seconds": round(time.monotonic() - began, 1), "functions": list(platform.hosts)}
        time.sleep(LOOK_SECONDS)
    return found


def warm(home: Path, drops: int, counted_seconds: float) -> dict[str, float]:
    """Return how many seconds the drops waited, and how many storage requests the idle host makes a minute."""
    interval = HostJson.read(REPOSITORY).queues.max_polling_interval
    log = home / "storage.log"
    env = {POLLING: f"00:00:{interval:02.0f}"}
    plan = Plan(LIFE, reconcile="0 0 0 1 1 *", app_env=env, storage_log=log, waits_as_azure=True)
    with running(home, plan) as cloud:
        waited = []
        for number in range(drops):
            time.sleep(
                SETTLED_SECONDS + interval * random.uniform(2.5, 3.5)
            )  # all queues are polled at their longest interval
            waited.append(_accepted_after(cloud, f"warm-{number}"))
        time.sleep(interval * 5)
        before = len(log.read_text().splitlines())
        time.sleep(counted_seconds)
        requests = len(log.read_text().splitlines()) - before
    return {
        "median": round(statistics.median(waited), 1),
        "most": round(max(waited), 1),
        "drops": drops,
        "requests a minute": round(requests * 60 / counted_seconds),
    }


def _accepted_after(cloud: ScaleCloud, name: str) -> float:
    before, began = _newest(cloud), _upload(cloud, name)
    while time.monotonic() - began < PATIENCE:
        run = _newest(cloud)
        if _is_accepted(run) and run and (before is None or run.name != before.name):
            return time.monotonic() - began
        time.sleep(LOOK_SECONDS)
    raise TimeoutError(f"no job was accepted for {name} in {PATIENCE:.0f} s")


def _upload(cloud: ScaleCloud, name: str) -> float:
    """Upload a drop, and return the time at which its marker was sent."""
    with ContainerClient.from_connection_string(cloud.connection_string, places.DROPS_CONTAINER) as container:
        container.upload_blob(f"noop/{name}/1.bin", name.encode())
        began = time.monotonic()
        container.upload_blob(f"noop/{name}/_SUCCESS", b"")
    return began


def _newest(cloud: ScaleCloud) -> Run | None:
    return next(iter(cloud.system().runs.page(RunFilter(), 1).runs), None)


def _is_accepted(run: Run | None) -> bool:
    return run is not None and run.progress.state is not RunState.RECEIVED


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK} drops").parse_args(argv)
    drops, seconds = (QUICK, QUICK_SECONDS) if asked.quick else (DROPS, COUNTED_SECONDS)
    with tempfile.TemporaryDirectory() as home:
        result = {"warm": warm(Path(home) / "warm", drops, seconds), "from zero": from_zero(Path(home) / "zero")}
    if asked.json:
        print(json.dumps(result))
        return
    print(f"warm      {result['warm']}")
    for step, told in result["from zero"].items():
        print(f"{step:9} after {told['seconds']} s; started: {', '.join(told['functions'])}")


if __name__ == "__main__":
    main(sys.argv[1:])
