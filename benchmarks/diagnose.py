"""Faults in real jobs of two and four gloo processes on the local cloud: which causes do their diagnoses name?

    python3 trainyard.py bench diagnose [--quick] [--traces N] [--only failed|live] [--json]

Each job trains for a few steps with one fault on rank 1. A fault counts as named if the run's diagnosis has one of the
causes that stand beside the fault in EXPECTED; time runs from the fault to the diagnosis in the API's answer. Good
runs are jobs without a fault, which must complete, and simulated logs with warnings, whose diagnosis must name no
cause: each cause that is named there is a false alarm.

Live faults do not end their jobs, which run for minutes. The run's `health` must name the cause within two minutes of
the evidence, while somebody reads the run's record; EVIDENCE says how long a silence or a slower pace must last.
Simulated good runs, checked once a minute, must show nothing; of 200 simulated runs with a slow node, `slow_nodes` is
the share in which this node is named. Ends with 1 if fewer than 90 % are named or an alarm is
false.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import _healthy_runs as healthy
from benchmarks import _slow_runs as slow
from benchmarks._callers import post
from benchmarks._options import options
from benchmarks.drop_to_submitted import get
from local.cloud import Cloud, Options
from shared.diagnosis import diagnose_log

SCRIPT, LIVE_SCRIPT = (Path(__file__).resolve().parent / "faults" / name for name in ("training.py", "live.py"))
EXPECTED: dict[str, tuple[str, ...]] = {
    "out of memory": ("host_oom",),
    "killed": ("host_oom", "rank_first_failed"),
    "segmentation fault": ("rank_first_failed", "user_exception"),
    "bus error": ("shm_bus_error",),
    "stopped": ("deadlock", "straggler", "nccl_timeout", "rendezvous_or_reset"),
    "slow rank": ("deadlock", "straggler", "nccl_timeout", "rendezvous_or_reset"),
    "full disk": ("disk_full",),
    "nan": ("nan_loss",),
    "missing module": ("missing_module",),
    "missing data": ("data_not_found",),
    "no permission": ("permission",),
    "shape mismatch": ("shape_mismatch",),
    "checkpoint of another model": ("checkpoint_mismatch",),
    "damaged checkpoint": ("corrupt_file", "checkpoint_mismatch"),
    "no network": ("network",),
    "no gpu": ("gpu_driver_or_arch",),
    "own mistake": ("user_exception",),
    "corrupt image": ("corrupt_file",),
    "wrong label": ("label_out_of_range",),
    "dead worker": ("dataloader_worker",),
    "blocked port": ("rendezvous_or_reset",),
    "wrong argument": ("argument_error",),
}
LIVE: dict[str, tuple[str, ...]] = {
    "stopped rank": ("deadlock",),
    "stopped worker": ("deadlock", "dataloader_worker", "input_bound"),
    "slow rank": ("straggler",),
    "slow disk": ("input_bound",),
    "nan that goes on": ("nan_loss",),
    "nearly full disk": ("disk_full",),
    "memory close to its limit": ("host_oom",),
}
EVIDENCE = {"stopped rank": 45.0, "stopped worker": 45.0, "slow rank": 120.0}  # seconds until a silence or a pace shows
WITHIN, LIVE_UNTIL, LIVE_AT, SLOW_AT = 120.0, 420.0, 90.0, 240.0  # seconds; a slower pace needs some minutes before it
QUICK = ("missing module", "corrupt image", "killed", "own mistake")
QUICK_LIVE = ("stopped rank",)
NO_CAUSE = ("healthy", "not_known")
GOOD_JOBS, TRACES, SLOW_RUNS, AT_ONCE = 4, 1_000, 200, 3
PATIENCE, LEAST = 150.0, 0.9


@dataclass(frozen=True)
class Outcome:
    """What came of one job: its fault, its state, its cause, and the seconds from the fault to the diagnosis."""

    fault: str
    state: str
    cause: str
    seconds: float
    live: bool = False

    @property
    def named(self) -> bool:
        """Whether the diagnosis names the cause; for a job without a fault, whether it completed."""
        if self.live:
            in_time = self.seconds <= WITHIN + EVIDENCE.get(self.fault, 0.0)
            return self.cause in LIVE[self.fault] and in_time if self.fault in LIVE else not self.cause
        return self.cause in EXPECTED[self.fault] if self.fault in EXPECTED else self.state == "completed"

    @property
    def words(self) -> str:
        """One line about the job."""
        good = "named" if self.named else "NOT NAMED"
        return f"{good:10} {self.fault:28} {self.state:10} {self.cause} {self.seconds:.0f} s"


def job(fault: str, marks: Path, number: int) -> dict[str, Any]:
    """A job of two processes on one node, or, each third, of four on two nodes."""
    nodes = 2 if number % 3 == 2 else 1
    wrong = " --batchsize 12" if fault == "wrong argument" else ""
    return {
        "type": "command",
        "command": f"python {SCRIPT} --fault '{fault}' --marks {marks}{wrong}",
        "environment": "azureml:trainyard@latest",
        "compute": "azureml:cpu-cluster",
        "resources": {"instance_count": nodes},
        "distribution": {"type": "pytorch", "process_count_per_instance": 2},
        "limits": {"timeout": 120},
    }


def outcome(api: str, fault: str, marks: Path, number: int) -> Outcome:
    """Submit the job and wait for the diagnosis, or for the job's end if it has none."""
    began = time.time()
    body, key = {"job": job(fault, marks, number)}, f"fault-{number}-{began}"
    run = answered(lambda: post(api, "runs", body, key))["run"]
    found: dict[str, Any] = {}
    while time.time() - began < PATIENCE:
        found = answered(lambda: get(f"{api}/runs/{run}"))
        if found["state"] == "completed" or found["diagnosis"]:
            break
        time.sleep(0.5)
    mark = marks / fault.replace(" ", "-")
    since = float(mark.read_text()) if mark.exists() else began
    cause = found["diagnosis"]["cause"] if found["diagnosis"] else "none"
    its = Outcome(fault, found["state"], cause, time.time() - since)
    print(its.words, flush=True)
    return its


def live_job(fault: str, marks: Path, folder: Path) -> dict[str, Any]:
    """A job of two processes, on two nodes for the slow rank, whose nodes have little memory and a small disk."""
    folder.mkdir()
    at = SLOW_AT if fault == "slow rank" else LIVE_AT
    times = f"--at {at} --until {at + LIVE_UNTIL}"
    nodes = 2 if fault == "slow rank" else 1
    return {
        "type": "command",
        "command": f"python {LIVE_SCRIPT} --fault '{fault}' --marks {marks} --folder {folder} {times}",
        "environment": "azureml:trainyard@latest",
        "environment_variables": {"EMULATORS_NODE": f"memory=2000 disk=400 folder={folder}"},
        "compute": "azureml:cpu-cluster",
        "resources": {"instance_count": nodes},
        "distribution": {"type": "pytorch", "process_count_per_instance": 2 // nodes},
        "limits": {"timeout": 900},
    }


def live_outcome(api: str, fault: str, marks: Path, number: int) -> Outcome:
    """Submit the job, read its record until its health names a cause or it ends, and cancel the job."""
    body, key = {"job": live_job(fault, marks, marks.parent / f"disk-{number}")}, f"live-{number}-{time.time()}"
    run = answered(lambda: post(api, "runs", body, key))["run"]
    mark, began, cause, found = marks / fault.replace(" ", "-"), time.time(), "", {"state": ""}
    while time.time() - began < SLOW_AT + LIVE_UNTIL and found["state"] not in ("completed", "failed", "canceled"):
        found = answered(lambda: get(f"{api}/runs/{run}"))
        causes = [each["cause"] for each in (found["health"] or {}).get("ailments", ())]
        cause = next((each for each in causes if each in LIVE.get(fault, ())), next(iter(causes), ""))
        if cause or (mark.exists() and time.time() - float(mark.read_text()) > 2.5 * WITHIN):
            break
        time.sleep(2)
    seconds = time.time() - float(mark.read_text()) if mark.exists() else 0.0
    its = Outcome(fault, found["state"], cause, seconds, live=True)
    print(its.words, flush=True)
    answered(lambda: post(api, f"runs/{run}/cancel", {}, f"end-{key}"))
    return its


def answered(call: Callable[[], Any]) -> Any:
    """The answer of the API; a busy machine answers 503 now and then."""
    until = time.time() + PATIENCE
    while True:
        try:
            return call()
        except urllib.error.HTTPError as error:
            if error.code < 500 or time.time() > until:
                raise
        time.sleep(1)


def measure(home: Path, faults: list[str], live: list[str], good: int) -> list[Outcome]:
    """The outcomes of one job for each fault, and of so many jobs without a fault of each sort that has faults."""
    marks, of_live = home / "marks", home / "live-marks"
    marks.mkdir()
    of_live.mkdir()
    jobs = [*faults, *["none"] * good] if faults else []
    longer = [*live, *["none"] * bool(good)] if live else []
    with Cloud.start(home / "cloud", Options()) as cloud, ThreadPoolExecutor(AT_ONCE) as pool:
        done = [pool.submit(live_outcome, cloud.api, fault, of_live, number) for number, fault in enumerate(longer)]
        done += [pool.submit(outcome, cloud.api, fault, marks, number) for number, fault in enumerate(jobs)]
        return [each.result() for each in done]


WARNINGS = (
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    "WARNING: ran out of memory, retrying the batch: CUDA out of memory. Tried to allocate 2.00 GiB",
    "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0",
    "huggingface/tokenizers: The current process just got forked. Disabling parallelism to avoid deadlocks...",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='x', port=443): Read timed out. Retrying in 1s",
    "/data/1.jpg: ignoring corrupt image/label: image file is truncated (3 bytes not processed)",
    "node1:10:20 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)",
    "W tensorflow/x.cc:64] Could not load dynamic library 'libcudart.so.11.0'; cannot open shared object file",
    "DeprecationWarning: distutils Version classes are deprecated.",
    "top1 error: 0.91, failed samples: 0, nan_ratio: 0.0",
)


def trace(seed: int) -> str:
    """A good log: a loss that falls with noise, in one of the shapes of trainers, with warnings in between."""
    dice = random.Random(seed)
    shape, scale, ranks = dice.randrange(4), dice.uniform(0.5, 12), dice.choice((1, 1, 2, 4))
    lines = [line for step in range(dice.randint(20, 120)) for line in _step(dice, shape, scale, step, ranks)]
    return "\n".join([*lines, *_step(dice, shape, scale, 200, ranks), *_step(dice, shape, scale, 201, ranks)]) + "\n"


def _step(dice: random.Random, shape: int, scale: float, step: int, ranks: int) -> Iterator[str]:
    loss = scale * math.exp(-step / 40) * dice.uniform(0.7, 1.3) + 0.05
    for rank in range(ranks):
        prefix = f"[rank{rank}]: " if ranks > 1 else ""
        if step < 200 and dice.random() < 0.03:
            yield prefix + dice.choice(WARNINGS)
        yield (
            prefix
            + (
                f"epoch 1 step {step}/202 loss {loss:.4f}",
                f"{step // 3}%|###   | {step}/202 [00:01<00:09, 9.1it/s, loss={loss:.3f}]",
                f"2026-11-28 10:00:00,000 - INFO - Iter [{step}/202] time: 0.31, data_time: 0.02, loss: {loss:.3f}",
                f"{{'loss': {loss:.4f}, 'grad_norm': {dice.uniform(0.1, 9):.2f}, 'epoch': {step / 50}}}",
            )[shape]
        )


def false_alarms(traces: int) -> list[str]:
    """The causes that are named for good logs."""
    causes = [diagnose_log(trace(seed), 0 if seed % 2 else None).cause.value for seed in range(traces)]
    return [cause for cause in causes if cause not in NO_CAUSE]


def summary(outcomes: list[Outcome], alarms: list[str]) -> dict[str, Any]:
    """The share of faults that are named, the false alarms, and the seconds until 95 % of them were named."""
    faulty = [each for each in outcomes if each.fault != "none"]
    seconds = sorted(each.seconds for each in faulty if each.named)
    good = [each.cause for each in outcomes if each.fault == "none" and each.cause not in ("", "none", *NO_CAUSE)]
    return {
        "named": round(sum(each.named for each in faulty) / len(faulty), 3),
        "false_alarms": len(good) + len(alarms),
        "seconds_p95": round(seconds[math.ceil(0.95 * len(seconds)) - 1], 1) if seconds else None,
    }


def main(argv: list[str]) -> int:
    parser = options(__doc__, f"{len(QUICK)} faults, one good job and 100 simulated logs")
    parser.add_argument("--traces", type=int, default=TRACES, help=f"simulated good logs; default {TRACES:,}")
    parser.add_argument(
        "--fault", choices=sorted({**EXPECTED, **LIVE}), action="append", help="only this fault; may be repeated"
    )
    parser.add_argument("--only", choices=("failed", "live"), help="only faults that end their jobs, or that do not")
    asked = parser.parse_args(argv)
    traces = 100 if asked.quick else asked.traces
    alarms = [*false_alarms(traces), *healthy.alarms(range(traces))]
    every = [*(QUICK if asked.quick else EXPECTED), *(QUICK_LIVE if asked.quick else LIVE)]
    chosen = list(dict.fromkeys(asked.fault or every))  # a slow rank may end the job, or not
    faults = [each for each in chosen if each in EXPECTED and asked.only != "live"]
    live = [each for each in chosen if each in LIVE and asked.only != "failed"]
    with tempfile.TemporaryDirectory() as home:
        outcomes = measure(Path(home), faults, live, 1 if asked.quick or asked.fault else GOOD_JOBS)
    found = {"slow_nodes": slow.share(20 if asked.quick else SLOW_RUNS), **summary(outcomes, alarms)}
    print(json.dumps(found) if asked.json else ", ".join(f"{name}: {value}" for name, value in found.items()))
    return 0 if found["named"] >= LEAST and not found["false_alarms"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
