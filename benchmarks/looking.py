"""What Trainyard asks of storage and of Azure Monitor because of a run: while nobody looks, and while somebody does.

    python3 trainyard.py bench looking [--quick] [--json] [--minutes N]

The local cloud polls its queues as in Azure, and the timers run once in five minutes. The access log of the storage
emulator and the requests that the emulated Azure Monitor answered are counted over the same time in each situation:

- `no run`: the baseline of the account
- `nobody looks`: one running run on processors
- `somebody looks`: the same run, whose record is read every ten seconds
- `an ended run`: a run that is over, whose record is read as often; so these are the reads of the viewer
- `GPUs, nobody looks`: one running run with fake GPUs, older than the guard's five minutes
- `a subscription`: the same, while a subscription asks for notices of the kind `sick`

Not counted: requests of the workspace that writes the job's log, the timers' looks at empty queues, which they take in
turns (`bench idle` counts them), and the host's own locks. Targets: nothing beyond the baseline while nobody looks; one
storage request a minute beyond the viewer's own while somebody looks; no request to Azure Monitor while nobody looks,
except that of the guard once in five minutes.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._callers import post
from benchmarks._options import options
from benchmarks.diagnose import answered
from benchmarks.drop_to_submitted import get
from benchmarks.scaling.cloud import ScaleCloud
from emulators.host.config import HostJson
from emulators.process import wait_for
from local.cloud import Cloud, Options
from local.record import REPOSITORY

NEVER = "0 0 0 1 1 *"
TIMERS = ("reconcile_timer", "scaling_timer")
TIMERS_EACH, LOOK_EACH = 300.0, 10.0  # seconds
MINUTES, QUICK_MINUTES = 5.0, 0.15
SETTLE, QUICK_SETTLE = 40.0, 4.0  # seconds, until the queues are polled at their longest interval again
GUARDED = 5.0  # minutes with one call of the timers
OLD = 5  # minutes; the shortest time after which GPUs may count as idle
GPU_CLUSTER, GPU_SIZE = "gpu", "Standard_NC4as_T4_v3"
ROUTES = "limits: {cluster: cpu-cluster, clusters: any}\nroutes: {mnist: {trainer: mnist, cluster: cpu-cluster}}\n"
STEPS = "import time\nfor step in range(36000): print('step', step, 'loss', 1 / (step + 1), flush=True); time.sleep(1)"
OF_OTHERS = re.compile(r"(?:PUT|POST|HEAD|DELETE) /\w+/azureml|\w+ /\w+/azure-webjobs-hosts")
IN_TURNS = re.compile(r"GET /\w+/(?!azureml|drops|output)[\w-]+ \d+$")  # properties of a queue
POLL = re.compile(r"GET /\w+/[\w-]+/messages")
MONITOR = "Microsoft.Insights/metrics"
POLLING = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
PATIENCE = 120.0
NOWHERE = "http://127.0.0.1:9/hook"


class LookedAt(ScaleCloud):
    """A local cloud with a cluster of fake GPUs, which counts requests."""

    def _azureml_config(self, eventgrid: str) -> dict[str, Any]:
        config = Cloud._azureml_config(self, eventgrid)
        first = config["clusters"][0]
        return {**config, "clusters": [*config["clusters"], {**first, "name": GPU_CLUSTER, "vm_size": GPU_SIZE}]}

    def storage_requests(self) -> list[str]:
        """Return the requests to storage so far, by shape, without those of the workspace."""
        lines = (self.options.storage_log or Path()).read_text().splitlines()
        return [_shape(line) for line in lines if not (OF_OTHERS.match(line) or IN_TURNS.match(line))]

    def monitor_requests(self) -> int:
        return sum(MONITOR in each["path"] for each in self.arm_requests())

    def call_timers(self) -> None:
        for timer in TIMERS:
            self.ask(f"{self.api.removesuffix('/api')}/admin/functions/{timer}", {"input": ""})


def _shape(line: str) -> str:
    """Return the request without the parts that differ each time."""
    return re.sub(r"/messages/.*(?= )", "/messages/ID", re.sub(r"\([^)]*\)|dcid\.\S+(?= )", "*", line))


@dataclass
class Counted:
    """The requests to storage by shape, and those to Azure Monitor, in so many minutes."""

    minutes: float
    monitor: int = 0
    storage: Counter[str] = field(default_factory=Counter)

    def a_minute(self, polls: bool = True) -> float:
        """Return the requests to storage a minute. The polls of the queues vary by about one a minute."""
        counted = sum(count for shape, count in self.storage.items() if polls or not POLL.match(shape))
        return counted / self.minutes

    def beyond(self, other: Counted) -> dict[str, float]:
        """Return the requests a minute, by shape, that `other` does not have."""
        shapes = sorted({*self.storage, *other.storage})
        found = {each: self.storage[each] / self.minutes - other.storage[each] / other.minutes for each in shapes}
        return {each: round(count, 2) for each, count in found.items() if abs(count) >= 0.05}


def measure(home: Path, minutes: float) -> dict[str, Counted]:
    """Return what is counted in each situation."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "routes.yaml").write_text(ROUTES)
    log = home / "storage.log"
    polls = HostJson.read(REPOSITORY).queues.max_polling_interval
    env = {
        POLLING: f"00:00:{polls:02.0f}",
        "TRAINYARD_RECONCILE_SCHEDULE": NEVER,
        "TRAINYARD_SCALING_SCHEDULE": NEVER,
        "TRAINYARD_IDLE_GPU_MINUTES": str(OLD),
    }
    with LookedAt.start(home / "cloud", Options(routes=home / "routes.yaml", storage_log=log, app_env=env)) as cloud:
        assert isinstance(cloud, LookedAt)
        _end(cloud, ended := _running(cloud, "cpu-cluster"))
        cloud.call_timers()  # the first call of a process finds more to do
        found = {"no run": _counted(cloud, minutes)}
        run = _running(cloud, "cpu-cluster")
        found["nobody looks"] = _counted(cloud, minutes)
        found["somebody looks"] = _counted(cloud, minutes, run)
        _end(cloud, run)
        found["an ended run"] = _counted(cloud, minutes, ended)
        _running(cloud, GPU_CLUSTER)
        time.sleep(60 * OLD if minutes >= 1 else 0)
        found["GPUs, nobody looks"] = _counted(cloud, GUARDED if minutes >= 1 else minutes)
        answered(lambda: post(cloud.api, "notices", {"on": ["sick"], "to": NOWHERE}, f"sick-{time.time()}"))
        cloud.call_timers()  # they begin the checks
        found["a subscription"] = _counted(cloud, minutes)
    return found


def _counted(cloud: LookedAt, minutes: float, viewed: str = "") -> Counted:
    """Return what is counted in so many minutes, while the run `viewed` is read again and again, if it is given."""
    time.sleep(SETTLE if minutes >= 1 else QUICK_SETTLE)
    before, asked = len(cloud.storage_requests()), cloud.monitor_requests()
    began, called = time.monotonic(), 0
    while (gone := time.monotonic() - began) < 60 * minutes:
        if gone // TIMERS_EACH >= called:
            cloud.call_timers()
            called += 1
        if viewed:
            answered(lambda: get(f"{cloud.api}/runs/{viewed}"))
        time.sleep(LOOK_EACH)
    return Counted(minutes, cloud.monitor_requests() - asked, Counter(cloud.storage_requests()[before:]))


def _running(cloud: LookedAt, cluster: str) -> str:
    """Submit a job of many steps, and return the name of its run once it makes steps."""
    job = {
        "type": "command",
        "command": f'python -c "{STEPS}"',
        "environment": "azureml:trainyard@latest",
        "environment_variables": {"EMULATORS_GPU": "count=1 utilization=cpu"} if cluster == GPU_CLUSTER else {},
        "compute": f"azureml:{cluster}",
    }
    run: str = answered(lambda: post(cloud.api, "runs", {"job": job}, f"{cluster}-{time.time()}"))["run"]
    wait_for(lambda: get(f"{cloud.api}/runs?limit=1")["runs"][0]["state"] == "running", PATIENCE, f"the start of {run}")
    return run


def _end(cloud: LookedAt, run: str) -> None:
    answered(lambda: post(cloud.api, f"runs/{run}/cancel", {}, f"end-{run}"))
    wait_for(lambda: get(f"{cloud.api}/runs/{run}")["archived_at"], PATIENCE, f"the end of {run}")


def summary(found: dict[str, Counted]) -> dict[str, Any]:
    """Return the requests a minute that a run adds, and the requests to Azure Monitor in five minutes."""
    alone, looks, base = found["nobody looks"], found["somebody looks"], found["no run"].a_minute(polls=False)
    viewer = found["an ended run"].a_minute(polls=False) - base
    return {
        "storage_nobody_looks": round(alone.a_minute(polls=False) - base, 1),
        "storage_somebody_looks": round(looks.a_minute(polls=False) - alone.a_minute(polls=False) - viewer, 1),
        "storage_of_the_viewer": round(viewer, 1),
        "storage_of_a_subscription": round(found["a subscription"].a_minute() - found["no run"].a_minute(), 1),
        "monitor_nobody_looks": alone.monitor,
        "monitor_somebody_looks": round(looks.monitor / looks.minutes, 1),
        "monitor_guard_in_five_minutes": round(5 * (guard := found["GPUs, nobody looks"]).monitor / guard.minutes, 1),
    }


def main(argv: list[str]) -> None:
    parser = options(__doc__, f"{60 * QUICK_MINUTES:.0f} seconds in each situation, too few for the guard")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"in each situation; default {MINUTES:.0f}")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as home:
        found = measure(Path(home), QUICK_MINUTES if asked.quick else asked.minutes)
    if asked.json:
        print(json.dumps(summary(found)))
        return
    for name, counted in found.items():
        more = counted.beyond(found["no run"])
        print(f"{name}: {counted.a_minute():.1f} storage requests a minute, {counted.monitor} to Azure Monitor")
        print("".join(f"  {count:+6.2f} {request}\n" for request, count in more.items()), end="")
    print(", ".join(f"{name}: {value}" for name, value in summary(found).items()))


if __name__ == "__main__":
    main(sys.argv[1:])
