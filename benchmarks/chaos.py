"""Drops under random kills of every part of the local cloud, judged by an independent oracle.

    python3 trainyard.py bench chaos [--drops N] [--seed S] [--parts storage,host] [--kinds command,elastic]
                                     [--clock 2026-01-31T23:58:00Z] [--quick] [--azure] [--json]

Clients upload drops and repeat uploads that were not acknowledged. They overwrite a file of some drops while the runs
wait, and remove other drops and upload to them again at once. Callers submit jobs, pipelines, sweeps, jobs that log to
MLflow, and elastic runs under keys, each twice. Meanwhile parts are killed (SIGKILL) at random moments, alone or two at
once, and restarted by the supervisor, as in `up`; or they hang for some seconds (SIGSTOP). Events of starting jobs are
stolen. Then the benchmark waits until every drop has ended. The oracle reads blobs, manifests and the job list
directly. Files that the storage itself loses in its last seconds are counted separately, and such a drop is judged by
its remaining files. Poison messages that still matter are counted too: a message is tried five times, and kills may use
up all five. Exits with 1 if anything else is wrong.

With --clock, the clocks of all parts begin at this time, for example just before the end of a month. This needs Linux
and a C compiler.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

import local.cloud
from benchmarks._callers import BODIES, OWN_CODE, Callers, post, send_code
from benchmarks._clock import is_set, moment, with_clock
from benchmarks._options import options
from benchmarks._oracle import AWAY, MARKER, ROUTE, Files, Look, Oracle, Verdict
from local.cloud import Cloud, Options

PARTS = ("storage", "eventgrid", "azureml", "host")
QUIET_SECONDS = 6  # after which a drop without a marker closes
STEADY_SECONDS = 7.0  # without a change until everything counts as ended: a closed drop is checked again after 5
PATIENCE_SECONDS = 180.0  # for everything to end after the last kill
AZURE_SECONDS = 720.0  # additional: a killed host's message is hidden for ten minutes, and its timers for two
BACK_SECONDS = 90.0  # for the restart of a killed part
BAD = (
    "lost",
    "double",
    "books untrue",
    "stuck",
    "wrong content",
    "archive untrue",
    "archive without a model",
    "verdict untrue",
    "metrics untrue",
)
OVERWRITTEN = 0.25  # of the drops
REMOVED = 0.3  # of the other drops
REMOVAL_TRIES = 20  # a second apart, until the drop's run has ended
HUNG = 0.25  # of the strikes
HANG_SECONDS = (2.0, 8.0)
PROGRAM = (
    "import hashlib, pathlib, sys, time; top = pathlib.Path(sys.argv[1]); time.sleep(0.5); d = hashlib.sha256(); "
    "[d.update(p.name.encode() + hashlib.sha256(p.read_bytes()).digest()) "
    f"for p in sorted(top.iterdir()) if p.name != '{MARKER}']; "
    "pathlib.Path(sys.argv[2], 'digest.txt').write_text(d.hexdigest())"
)
TEMPLATE = {
    "command": f'python -c "{PROGRAM}" ${{{{inputs.data}}}} ${{{{outputs.models}}}}',
    "environment": "azureml:trainyard@latest",
    "inputs": {"data": {"type": "uri_folder", "path": "azureml://datastores/drops/paths/example/"}},
    "outputs": {"models": {"type": "uri_folder"}},
}
ROUTES = (
    "limits: {allow: [code], max_nodes: 2}\n"
    f"routes: {{{ROUTE}: {{template: job.json, cluster: cpu-cluster, quiet_seconds: {QUIET_SECONDS}}}}}\n"
)


@dataclass
class Clients:
    """Uploads drops one after another, and remembers what the storage acknowledged."""

    connection_string: str
    drops: int
    random: random.Random
    acknowledged: dict[str, Files] = field(default_factory=dict)
    written: dict[str, bytes] = field(default_factory=dict)  # all contents ever written, by MD5
    api: str = ""
    overwritten: int = 0
    removed: int = 0
    retries: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with ContainerClient.from_connection_string(self.connection_string, "drops", retry_total=0) as drops:
            for number in range(self.drops):
                self._drop(drops, f"d{number:04}")
                self.stop.wait(self.random.uniform(0, 2.5))

    def _drop(self, drops: ContainerClient, name: str) -> None:
        sizes = [self.random.randint(1, 20_000) for _ in range(self.random.randint(1, 6))]
        files = {f"f{i}.bin": self.random.randbytes(size) for i, size in enumerate(sizes)}
        marked = self.random.random() < 0.8
        marker = [(MARKER, b"")] if marked else []
        self._upload(drops, name, [*files.items(), *marker])
        if self.random.random() < OVERWRITTEN:
            self.stop.wait(self.random.uniform(0, 6))
            other = self.random.randbytes(self.random.randint(1, 20_000))
            self._upload(drops, name, [("f0.bin", other), *marker])
            self.overwritten += 1
        elif self.random.random() < REMOVED:
            self._remove_and_upload(drops, name)

    def _remove_and_upload(self, drops: ContainerClient, name: str) -> None:
        """Remove the drop as soon as the API allows it, and upload other files at once."""
        for _ in range(REMOVAL_TRIES):
            try:
                post(self.api, f"drops/{ROUTE}/{name}/remove", {})
            except (OSError, ValueError):  # the run has not ended, or a part is unreachable
                if self.stop.wait(1.0):
                    return
                continue
            self.acknowledged.pop(name)
            other = self.random.randbytes(self.random.randint(1, 20_000))
            self._upload(drops, name, [("after.bin", other), (MARKER, b"")])
            self.removed += 1
            return

    def _upload(self, drops: ContainerClient, name: str, files: list[tuple[str, bytes]]) -> None:
        for file, content in files:
            self.written[hashlib.md5(content, usedforsecurity=False).hexdigest()] = content
            while not self.stop.is_set():
                try:
                    drops.upload_blob(f"{ROUTE}/{name}/{file}", content, overwrite=True)
                except AzureError:
                    self.retries += 1
                    self.stop.wait(0.1)
                else:
                    self.acknowledged.setdefault(name, {})[file] = content
                    break


@dataclass
class Thief:
    """Steals events of starting jobs from their queue before the app reads them, and returns other events at once."""

    connection_string: str
    stolen: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with QueueClient.from_connection_string(self.connection_string, "job-events", retry_total=0) as queue:
            while not self.stop.wait(0.05):
                try:
                    for message in queue.receive_messages(max_messages=32, visibility_timeout=1):
                        if self._tells_of_a_start(str(message.content)):
                            queue.delete_message(message)
                            self.stolen += 1
                        else:
                            queue.update_message(message, visibility_timeout=0)
                except AzureError:
                    continue  # the storage is unreachable, or the queue does not exist yet

    def _tells_of_a_start(self, text: str) -> bool:
        event = text if text.lstrip().startswith(("{", "[")) else base64.b64decode(text).decode()
        return '"Running"' in event


@dataclass
class Chaos:
    """Kills parts of the local cloud, which the supervisor then restarts, or makes parts hang."""

    cloud: Cloud
    random: random.Random
    parts: tuple[str, ...]
    kills: Counter[str] = field(default_factory=Counter)
    healing: list[float] = field(default_factory=list)
    hangs: int = 0
    health: list[float] = field(default_factory=list)  # seconds that /health took while a part hung
    last_kill: float = 0.0

    def strike(self) -> None:
        """Kill one or two parts, and return when all parts run again."""
        if self.random.random() < HUNG:
            self._hang(self.random.choice(self.parts))
            return
        chosen = self.random.sample(self.parts, min(len(self.parts), 1 + (self.random.random() < 0.3)))
        pids = self.cloud.record.parts
        self.last_kill = time.monotonic()
        for part in chosen:
            os.kill(pids[part], signal.SIGKILL)
            self.kills[part] += 1
        down = set(chosen)
        while down:
            if time.monotonic() - self.last_kill > BACK_SECONDS:
                raise RuntimeError(f"{', '.join(sorted(down))} did not start again within {BACK_SECONDS:g} s")
            down -= set(self.cloud.heal())
            time.sleep(0.02)
        self.healing.append(time.monotonic() - self.last_kill)

    def _hang(self, part: str) -> None:
        """Stop the part for some seconds; its connections stay open."""
        pid, until = self.cloud.record.parts[part], time.monotonic() + self.random.uniform(*HANG_SECONDS)
        self.hangs += 1
        os.kill(pid, signal.SIGSTOP)
        try:
            while part != "host" and time.monotonic() < until:
                began = time.monotonic()
                with contextlib.suppress(urllib.error.HTTPError):  # 503 is an answer
                    urllib.request.urlopen(f"{self.cloud.api}/health", timeout=60).close()
                self.health.append(time.monotonic() - began)
                time.sleep(0.5)
            time.sleep(max(0.0, until - time.monotonic()))
        finally:
            os.kill(pid, signal.SIGCONT)
            self.last_kill = time.monotonic()


def run(asked: argparse.Namespace, home: Path) -> tuple[Verdict, dict[str, float]]:
    (home / "routes.yaml").write_text(ROUTES)
    (home / "job.json").write_text(json.dumps(TEMPLATE))
    local.cloud.RESTARTS = sys.maxsize  # parts die more often here than the supervisor would tolerate
    made, began = random.Random(asked.seed), time.monotonic()
    settings = Options(
        routes=home / "routes.yaml", node_start_seconds=0.2, retry_time_scale=0.1, waits_as_azure=asked.azure
    )
    with Cloud.start(home / "cloud", settings) as cloud:
        clients = Clients(cloud.connection_string, asked.drops, random.Random(made.random()), api=cloud.api)
        chaos = Chaos(cloud, random.Random(made.random()), tuple(asked.parts.split(",")))
        uploading, thief = threading.Thread(target=clients.run), Thief(cloud.connection_string)
        stealing = threading.Thread(target=thief.run)
        kinds = tuple(asked.kinds.split(","))
        code = send_code(cloud.api, PATIENCE_SECONDS) if set(OWN_CODE) & set(kinds) else ""
        callers = Callers(cloud.api, asked.drops // 2, random.Random(asked.seed), kinds, code)
        calling = threading.Thread(target=callers.run)
        uploading.start()
        calling.start()
        stealing.start()
        try:
            while uploading.is_alive() or calling.is_alive() or sum(chaos.kills.values()) < asked.kills:
                time.sleep(chaos.random.uniform(0.2, 2.5))
                chaos.strike()
            oracle = Oracle(cloud)
            seen, healed = settle(oracle, cloud, sorted(clients.acknowledged), chaos.last_kill, _patience(asked))
            verdict = oracle.judge(clients.acknowledged, seen, clients.written)
            oracle.judge_calls(callers.answers, callers.refused, verdict)
            oracle.judge_nodes(time.monotonic() - began, verdict)
            if "storage" not in asked.parts and verdict.counts["files lost by the storage"]:
                verdict.find("lost", "files are gone, and the storage was never killed")
            oracle.close()
        finally:
            clients.stop.set()
            callers.stop.set()
            calling.join()
            thief.stop.set()
            uploading.join()
            stealing.join()
    return verdict, measured(clients, chaos, healed) | {"events of a start stolen": thief.stolen}


def _patience(asked: argparse.Namespace) -> float:
    return PATIENCE_SECONDS + (AZURE_SECONDS if asked.azure else 0.0)


def settle(oracle: Oracle, cloud: Cloud, names: list[str], last_kill: float, patience: float) -> tuple[Look, float]:
    """Wait until everything has ended and stays unchanged, or until patience runs out. Return the last snapshot and
    the seconds since the last kill."""
    ended: float | None = None
    seen, before = None, None
    while True:
        now = time.monotonic()
        cloud.heal()
        try:
            seen = oracle.look(names)
        except AWAY as error:
            if now - last_kill > patience:
                raise RuntimeError(f"the cloud can't be looked at {patience:g} s after the last kill") from error
            time.sleep(0.5)
            continue
        state = sorted(run["run"] for runs in seen.runs.values() for run in runs)
        if seen.open or state != before:
            ended, before = (None if seen.open else now), state
        elif ended is None:
            ended = now
        if ended is not None and now - ended > STEADY_SECONDS:
            return seen, ended - last_kill
        if now - last_kill > patience:
            return seen, patience
        time.sleep(0.5)


def measured(clients: Clients, chaos: Chaos, healed: float) -> dict[str, float]:
    healing = sorted(chaos.healing)
    return {
        "drops": len(clients.acknowledged),
        "kills": sum(chaos.kills.values()),
        **{f"kills of {part}": chaos.kills[part] for part in chaos.parts},
        "hangs": chaos.hangs,
        "/health while a part hung, slowest s": round(max(chaos.health, default=0.0), 2),
        "drops overwritten": clients.overwritten,
        "drops removed and uploaded to at once": clients.removed,
        "uploads repeated by clients": clients.retries,
        "a part is back, median s": round(healing[len(healing) // 2], 2),
        "a part is back, slowest s": round(healing[-1], 2),
        "all has ended after the last kill, s": round(healed, 1),
    }


def main(argv: list[str]) -> int:
    parser = options(__doc__, "12 drops and 8 kills")
    parser.add_argument("--drops", type=int, default=60)
    parser.add_argument("--kills", type=int, default=0, help="at least so many; default: a third of the drops")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", default=",".join(PARTS), help="which are killed; default all: %(default)s")
    parser.add_argument("--kinds", default=",".join(BODIES), help="of jobs under keys; default all: %(default)s")
    parser.add_argument("--clock", type=moment, metavar="TIME", help="when all clocks begin: 2026-01-31T23:58:00Z")
    parser.add_argument("--azure", action="store_true", help="what a killed host had in work waits as long as in Azure")
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.drops, asked.kills = 12, 8
    asked.kills = asked.kills or asked.drops // 3
    if unknown := sorted(set(asked.kinds.split(",")) - BODIES.keys()):
        parser.error(f"--kinds: {', '.join(unknown)} is unknown; choose from {', '.join(BODIES)}")
    if asked.clock and not is_set():
        return with_clock(asked.clock, "benchmarks.chaos", argv)
    with tempfile.TemporaryDirectory() as home:
        verdict, figures = run(asked, Path(home))
    counts = {kind: verdict.counts[kind] for kind in sorted({*verdict.counts, *BAD, "poison"})}
    for name, value in {"seed": asked.seed, **figures, **counts}.items():
        print(f"{name:40} {value:>10}")
    for line in verdict.findings:
        print(f"  {line}")
    if asked.json:
        print(json.dumps({"seed": asked.seed, **figures, **counts, "findings": verdict.findings}))
    return 1 if any(counts[kind] for kind in BAD) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
