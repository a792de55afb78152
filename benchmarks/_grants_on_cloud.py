"""Hostile programs against grants on a real local cloud: real host, tables, queues and nodes.

The oracle asks Azure ML's emulator twice a second which jobs run, and adds up the price of their node seconds by grant.
"""

from __future__ import annotations

import json
import math
import random
import ssl
import threading
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from benchmarks._callers import post
from emulators.azureml.kernel.identity import token
from emulators.process import wait_for
from local.cloud import Cloud, Options

DOLLARS = 3.6  # an hour for a node
WORST = (60 + 1800) * DOLLARS / 3600  # a run of the job below: its time limit, and half an hour
AT_ONCE = 4  # sessions
CANARY = "canary0f0f0f"
PEOPLE = "people"  # whose runs no grant pays for
MONEY = "prices: [{vm_size: %(size)s, tier: low_priority, dollars: 3.6}, {vm_size: %(size)s, dollars: 3.6}]\n"
LISTS = ("rows", "today", "costs", "grants", "status", "find?name=@latest", "runs", "drops", "leases")
JOB = {
    "type": "command", "command": "python -c 'import time; time.sleep(2)'", "environment": "azureml:trainyard@latest",
    "compute": "azureml:cpu-cluster", "limits": {"timeout": 60}, "experiment_name": "hostile",
}  # fmt: skip


@dataclass
class Found:
    """What the sessions found: cents above the grants, answers with others' words, and what was tried."""

    over_cents: int = 0
    leaks: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)


def play(sessions: int, first: int, home: Path, seconds: float) -> Found:
    """Play sessions until `seconds` have passed, then wait for the end of their runs."""
    money = home / "money.yaml"
    money.write_text(MONEY % {"size": "Standard_D2s_v3"})
    found, began = Found(), monotonic()
    options = Options(node_start_seconds=0.5, app_env={"TRAINYARD_MONEY": str(money)})
    with Cloud.start(home / "cloud", options) as cloud:
        size = wait_for(lambda: _vm_size(cloud.api), 60, "the cluster to be listed")
        if size not in money.read_text():
            raise SystemExit(f"write a price of {size} into MONEY")
        run = post(cloud.api, "runs", {"job": {**JOB, "tags": {"x": CANARY}}, "tags": {"x": CANARY}}, "theirs")["run"]
        bill = Bill(cloud)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for seed in range(first, first + sessions):
                pool.submit(_Session(cloud.api, seed, run, found, bill, began + seconds).play)
        bill.stop()
    for grant, dollars in bill.by_grant({run: PEOPLE}).items():
        over = math.ceil(100 * (dollars - bill.budgets.get(grant, 0.0)) - 1e-6)
        if grant != PEOPLE and over > 0:
            found.over_cents += over
            found.words.append(f"{grant or 'a run of no grant'} cost {over} cents too much")
    found.tried["node seconds"] = round(sum(bill.dollars.values()) / DOLLARS * 3600)
    return found


def _vm_size(api: str) -> str:
    status, answer = _call(api, "GET", "clusters")
    return str(answer[0]["vm_size"]) if status == 200 and answer else ""


class Bill:
    """The dollars of each run's nodes, by the jobs that Azure ML's emulator says are running."""

    def __init__(self, cloud: Cloud) -> None:
        self.dollars: dict[str, float] = defaultdict(float)  # by run
        self.budgets: dict[str, float] = {}
        self.grant_of: dict[str, str] = {}  # by run
        self._cloud, self._stopped = cloud, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def by_grant(self, others: dict[str, str]) -> dict[str, float]:
        """The dollars of each grant; '' stands for runs that no program was told of."""
        dollars: dict[str, float] = defaultdict(float)
        for name, amount in self.dollars.items():
            dollars[{**self.grant_of, **others}.get(name, "")] += amount
        return dollars

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        last = monotonic()
        while not self._stopped.wait(0.5):
            running, now = self._running(), monotonic()
            for name in running:
                self.dollars[name] += (now - last) * DOLLARS / 3600
            last = now

    def _running(self) -> list[str]:
        url = f"{self._cloud.azureml}{self._cloud.record.workspace_id}/jobs?api-version=2024-04-01&listViewType=All"
        names: list[str] = []
        context = ssl.create_default_context(cafile=str(self._cloud.certs))
        while url:
            asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token()}"})
            with urllib.request.urlopen(asked, timeout=20, context=context) as answer:
                page = json.load(answer)
            names += [job["name"] for job in page["value"] if job["properties"]["status"] == "Running"]
            url = page.get("nextLink", "")
        return names


@dataclass
class _Session:
    api: str
    seed: int
    theirs: str
    found: Found
    bill: Bill
    until: float

    def play(self) -> None:
        if monotonic() > self.until:
            return
        self.dice = random.Random(self.seed)
        budget = self.dice.choice((2.0, 4.0, 8.0))
        self.made = post(self.api, "grants", {
            "purpose": f"hostile {self.seed}", "budget": budget, "until": "23:59", "runs": 20, "at_once": 4,
            "may": ["read", "submit", "cancel", "run-code"], "clusters": ["cpu-cluster"], "then": "cancel",
        })  # fmt: skip
        self.bill.budgets[self.made["id"]] = budget
        with ThreadPoolExecutor(6) as pool:  # a burst, in which keys repeat
            statuses = list(pool.map(lambda number: self._submit(f"{self.seed}-{number % 4}"), range(8)))
        accepted = {run for run in statuses if run}
        if len(accepted) * WORST > budget + 0.005:
            self._wrong("over_cents", f"${budget:.2f} admitted {len(accepted)} runs of ${WORST:.2f}")
        self._others()
        narrowed = post(self.api, f"grants/{self.made['id']}/narrow", {"budget": 0.5, "at_once": 1})
        if self._submit(f"{self.seed}-late") and narrowed["left"] < WORST:
            self._wrong("over_cents", "a narrowed grant admitted a run")
        self._wait(accepted)
        _call(self.api, "DELETE", f"grants/{self.made['id']}")
        if self._send("GET", "runs")[0] != 401:
            self._wrong("leaks", "a revoked token was let in")
        self.found.tried["sessions"] += 1

    def _submit(self, key: str) -> str:
        status, answer = self._send("POST", "runs", {"job": JOB}, key)
        self.found.tried[f"submit {status}"] += 1
        if status == 202:
            self.bill.grant_of[answer["run"]] = self.made["id"]
            return str(answer["run"])
        return ""

    def _others(self) -> None:
        own = (f"runs/{self.theirs}{part}" for part in ("", "/logs", "/artifacts", "/metrics"))
        for path in (*own, *LISTS, f"compare?runs={self.theirs},x"):
            self._send("GET", path)
        for text in (self.made["token"][:-2] + "xx", "tg_", f"tg_{'0' * 12}_{'a' * 43}"):
            if _call(f"{self.api}/granted", "GET", "grant", token=text)[0] != 401:
                self._wrong("leaks", "a forged token was let in")

    def _send(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        status, answer = _call(f"{self.api}/granted", method, path, body, key, self.made["token"])
        if CANARY in str(answer) or (self.theirs in str(answer) and self.theirs not in path):
            self._wrong("leaks", f"{method} {path} told {str(answer)[:200]}")
        return status, answer

    def _wait(self, runs: set[str]) -> None:
        while runs and monotonic() < self.until:
            states = {run: self._send("GET", f"runs/{run}")[1].get("state") for run in runs}
            runs = {run for run, state in states.items() if state not in ("completed", "failed", "canceled")}
            sleep(0.5)

    def _wrong(self, kind: str, what: str) -> None:
        setattr(self.found, kind, getattr(self.found, kind) + 1)
        self.found.words.append(f"session {self.seed}: {what}")


def _call(api: str, method: str, path: str, body: Any = None, key: str = "", token: str = "") -> tuple[int, Any]:
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{api}/{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text
    except urllib.error.HTTPError as exc:
        text = exc.read()
        return exc.code, json.loads(text) if text[:1] == b"{" else text
