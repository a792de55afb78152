"""`admin smoke`: the checks after a deployment that need Azure, one after another.

The command drops a small data set and follows the run to its archive. It also submits jobs that try things on the nodes
(probe.py).
"""

from __future__ import annotations

import base64
import json
import random
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from ..api.client import Api
from ..errors import CliError
from ..files.drop_upload import translated
from ..files.job_form import reference, registered
from ..setup.profiles import Profile
from .preempt import preempt

OK, FAILED, NOT_SHOWN = "ok", "failed", "not shown"
IMAGES = 64  # images of the dropped data set
LOOK_SECONDS = 2.0
FOLLOWERS = 20
EVENT_SECONDS = 60.0  # an end that is known sooner came from an event; the timer runs every five minutes
MOUNT = reference("outputs", "mount")
NOTICE_SECONDS = 5.0  # notice for a node of the local cloud
MOST_RUNS = 200  # that are searched for a run that lost its nodes
TAKEN, LOST = "preemption words", "lost_nodes"
BY_TIMER = "no event came: the timer noticed the end, up to five minutes late"


@dataclass(frozen=True)
class Check:
    """One row of the table of checks."""

    name: str
    result: str
    detail: str


@dataclass
class Smoke:
    """A deployment under test. `patience`: the seconds to wait for a run, including the time to allocate its nodes."""

    api: Api
    cluster: str
    route: str
    patience: float
    say: Callable[[str], None]
    stand_in: Profile | None = None  # the local cloud, which uses its account's key and evicts nodes
    token: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    checks: list[Check] = field(default_factory=list)

    def note(self, name: str, result: bool | str, detail: str) -> None:
        text = result if isinstance(result, str) else OK if result else FAILED
        self.checks.append(Check(name, text, detail))
        self.say(f"{name}: {text}, {detail}")

    def run(self, container: Any) -> list[Check]:
        """Run every check, in the order of their dependencies. A failed check does not stop the others."""
        for name, step in (
            ("health", self._health),
            ("forged caller", self._forged),
            ("drop to archive", lambda: self._drop(container)),
            ("nodes", self._nodes),
            (WORDS["events"], self._eviction),
        ):
            try:
                step()
            except CliError as error:
                self.note(name, FAILED, str(error))
        return self.checks

    # --- without a run ------------------------------------------------------------------------------------------------

    def _health(self) -> None:
        health = self.api.health()
        wrong = [f"{name}: {check['detail']}" for name, check in health["checks"].items() if not check["ok"]]
        self.note("health", not wrong, "; ".join(wrong) or f"{', '.join(health['checks'])} answer")

    def _forged(self) -> None:
        """Check that a caller without a key or a token can't authenticate with a forged X-MS-CLIENT-PRINCIPAL
        header."""
        claims = [{"typ": "roles", "val": "trainyard.contributor"}, {"typ": "oid", "val": "smoke"}]
        principal = json.dumps({"auth_typ": "aad", "claims": claims, "role_typ": "roles"}).encode()
        header = {"X-MS-CLIENT-PRINCIPAL": base64.b64encode(principal).decode()}
        try:
            with httpx.Client(timeout=30) as nobody:
                plain = nobody.get(f"{self.api.url}/runs", params={"limit": 1}).status_code
                forged = nobody.get(f"{self.api.url}/runs", params={"limit": 1}, headers=header).status_code
        except httpx.HTTPError as error:
            raise CliError(f"the API does not answer: {error}") from error
        if plain == 200:
            self.note("forged caller", NOT_SHOWN, "this API requires no key and no token")
        else:
            self.note("forged caller", forged in (401, 403), f"without a key or a token: {forged}")

    # --- a drop -------------------------------------------------------------------------------------------------------

    def _drop(self, container: Any) -> None:
        name = f"smoke-{self.token}"
        began = time.monotonic()
        job = json.dumps({"inputs": {"epochs": 1}}).encode()
        with translated():
            for file, content in {**data_set(), "job.json": job}.items():
                container.upload_blob(f"{self.route}/{name}/{file}", content)
        how = "uploaded with the account's key" if self.stand_in else "uploaded by identity"
        self.note("upload without keys", NOT_SHOWN if self.stand_in else OK, how)
        drop = self._wait(f"drop {name} to close", lambda: self._closed(name))
        form = self._form(name)
        self.note("message encoding", bool(form), f"events come as {form}" if form else "no event of this drop arrived")
        if drop["state"] != "sealed":
            self.note("drop to archive", FAILED, str(drop.get("reason") or drop["state"]))
            return
        sealed = time.monotonic() - began
        run = self._archived(drop["run"])
        words = f"sealed after {sealed:.0f} s, archived after {time.monotonic() - began:.0f} s"
        self.note("drop to archive", run["state"] == "completed", f"{run['run']} {run['state']}, {words}")

    def _closed(self, name: str) -> Any:
        rows = self.api.get("drops", self.route, name) if self._known(name) else {}
        return rows if rows.get("state") in ("sealed", "rejected") else None

    def _form(self, name: str) -> str:
        """Return the encoding in which an event announced the drop; '' if no event does within a minute. The timer
        may have found the drop before the event."""
        deadline = time.monotonic() + EVENT_SECONDS
        while not (form := self.api.get("drops", self.route, name).get("event_form")) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        return form or ""

    def _known(self, name: str) -> bool:
        return self.api.send("GET", "drops", self.route, name, accept=(404,)).status_code != 404

    # --- jobs that try things -----------------------------------------------------------------------------------------

    def _nodes(self) -> None:
        pair = self._submit(f"pair {MOUNT}", nodes=2)
        listener = self._submit("listener", variables={"SMOKE_ADDRESS": "127.0.0.1"} if self.stand_in else None)
        address = self._wait("the listener's address", lambda: self._address(listener))
        self._count_nodes()
        caller = self._submit("caller", variables={"PEER": address})
        with ThreadPoolExecutor(FOLLOWERS) as pool:
            followed = list(pool.map(lambda _: self._follow(pair), range(FOLLOWERS)))
        same = len(set(followed)) == 1
        self.note("log followers", same, f"{FOLLOWERS} at once, {'the same' if same else 'different'} bytes for each")
        self._judge([pair, listener, caller])

    def _submit(self, what: str, nodes: int = 1, variables: dict[str, str] | None = None) -> str:
        program = base64.b64encode(Path(__file__).with_name("probe.py").read_bytes()).decode()
        job: dict[str, Any] = {
            "command": f"python -c \"import base64; exec(base64.b64decode('{program}'))\" {what}",
            "environment": registered("trainyard@latest"),
            "compute": registered(self.cluster),
            "environment_variables": variables or {},
            "resources": {"instance_count": nodes},
        }
        if nodes > 1:
            job["distribution"] = {"type": "pytorch", "process_count_per_instance": 1}
        if MOUNT in what:
            job["outputs"] = {"mount": {"type": "uri_folder", "mode": "rw_mount"}}
        body = {"job": job, "experiment": "smoke", "timeout_seconds": 1800}
        run: str = self.api.post("runs", body=body, headers={"Idempotency-Key": f"{self.token} {what}"})["run"]
        self.say(f"{run}: {what}")
        return run

    def _address(self, run: str) -> str | None:
        row = self.api.get("runs", run)
        if row["state"] in ("failed", "canceled"):
            raise CliError(f"{run} {row['state']}: {row['reason']}")
        lines = _whole_lines(self.api.log(run, 0, 0).data)
        return next((line.split()[1] for line in lines if line.startswith("smoke-address ")), None)

    def _count_nodes(self) -> None:
        count = next((c["nodes"] for c in self.api.get("clusters") if c["name"] == self.cluster), 0)
        self.note("node counts", count > 0, f"the list of computes says {count} nodes while jobs run")

    def _follow(self, run: str) -> bytes:
        log, deadline = b"", time.monotonic() + self.patience
        while time.monotonic() < deadline:
            chunk = self.api.log(run, 0, len(log), wait=20)
            log += chunk.data
            if chunk.complete:
                return log
        raise CliError(f"the log of {run} does not end within {self.patience:g} s")

    def _judge(self, runs: list[str]) -> None:
        ends: list[float] = []
        for run in runs:
            row = self._archived(run)
            if row["state"] != "completed":
                self.note("nodes", FAILED, f"{run} {row['state']}: {row['reason']}")
            said = list(self._said(run, row["nodes"]))
            for line in said:
                if line["check"] in WORDS:
                    self.note(WORDS[line["check"]], line["ok"], line["detail"])
            ended = max((line["time"] for line in said), default=0.0)
            entered = next((m["at"] for m in row["history"] if m["state"] == row["state"]), "")
            if ended and entered:
                ends.append(datetime.fromisoformat(entered).timestamp() - ended)
        if ends:
            slowest = max(ends)
            by_event = slowest < EVENT_SECONDS
            detail = f"the end was known {slowest:.0f} s later" if by_event else BY_TIMER
            self.note("events of command jobs", by_event, detail)

    def _said(self, run: str, nodes: int) -> Iterator[dict[str, Any]]:
        for rank in range(nodes):
            yield from _lines(self.api.log(run, rank, 0).data)

    # --- an evicted node ----------------------------------------------------------------------------------------------

    def _eviction(self) -> None:
        """Run a job with a request for Scheduled Events. The local cloud then announces the eviction of the job's node
        and fails the job as Azure ML does; Azure evicts no node on request.
        """
        run = self._submit(f"evicted {MOUNT}", variables={"WAIT": "1"} if self.stand_in else None)
        if self.stand_in:
            self._wait(f"{run} to ask", lambda: [line for line in self._said(run, 1) if line["check"] == "events"])
            preempt(self.stand_in, self.api.get("runs", run), 0, NOTICE_SECONDS)
        row = self._archived(run)
        names = ["logs/attempt-1/std_log.txt", "logs/std_log.txt"] if self.stand_in else ["logs/std_log.txt"]
        for line in (line for name in names for line in _lines(self._file(run, name))):
            if line["check"] in WORDS:
                self.note(WORDS[line["check"]], line["ok"], line["detail"])
        if self.stand_in:
            self.note(
                TAKEN,
                row["state"] == "completed" and bool(_eviction_words(row)),
                _eviction_words(row) or str(row["reason"]),
            )
            return
        evicted = next(
            filter(None, map(_eviction_words, self.api.get("runs", limit=MOST_RUNS, details="true")["runs"])), ""
        )
        advice = f"no run lost its nodes yet; the history of the first one that does must have a failure {LOST}"
        self.note(TAKEN, OK if evicted else NOT_SHOWN, evicted or advice)

    def _file(self, run: str, name: str) -> bytes:
        with self.api.artifact(run, name) as stream:
            return b"".join(stream.iter_bytes())

    # --- waiting ------------------------------------------------------------------------------------------------------

    def _archived(self, run: str) -> dict[str, Any]:
        def poll() -> dict[str, Any] | None:
            row: dict[str, Any] = self.api.get("runs", run)
            return row if row["archived_at"] else None

        archived: dict[str, Any] = self._wait(f"{run} to be archived", poll)
        return archived

    def _wait(self, what: str, poll: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + self.patience
        while not (result := poll()):
            if time.monotonic() > deadline:
                raise CliError(f"Waited {self.patience:g} s for {what}.")
            time.sleep(LOOK_SECONDS)
        return result


def _whole_lines(log: bytes) -> list[str]:
    """Return the complete lines of a possibly growing log."""
    return log.rpartition(b"\n")[0].decode(errors="replace").splitlines()


def _lines(log: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects printed by probe.py into a log."""
    for line in _whole_lines(log):
        if line.startswith("smoke {"):
            yield json.loads(line.removeprefix("smoke "))


def _eviction_words(run: dict[str, Any]) -> str:
    """Return the reason recorded when a job of this run lost its nodes; '' if none did."""
    history = run.get("history") or []
    return next((str(moment["why"]) for moment in history if moment.get("failure") == LOST), "")


WORDS = {
    "events": "scheduled events on a node",
    "announced": "eviction announced to its node",
    "again": "another job after an eviction",
    "token": "token on a node",
    "gpu": "GPU on a node",
    "rename": "rename on a mount",
    "mount": "mount seen by another node",
    "back": "mount seen by the first node",
    "traffic": "traffic between jobs",
}


def data_set() -> dict[str, bytes]:
    """Return noise images in MNIST's format (IDX: http://yann.lecun.com/exdb/mnist/), the same bytes every time."""
    dice = random.Random(1)  # noqa: S311 (no secret)
    files = {}
    for part in ("train", "t10k"):
        pixels = bytes(dice.randrange(256) for _ in range(IMAGES * 28 * 28))
        files[f"{part}-images-idx3-ubyte"] = struct.pack(">4i", 2051, IMAGES, 28, 28) + pixels
        files[f"{part}-labels-idx1-ubyte"] = struct.pack(">2i", 2049, IMAGES) + bytes(i % 10 for i in range(IMAGES))
    return files


def markdown(checks: list[Check]) -> str:
    """Return the checks as a Markdown table, for an issue."""
    rows = [f"| {check.name} | {check.result} | {check.detail.replace('|', '/')} |" for check in checks]
    return "\n".join(["| check | result | what was seen |", "|---|---|---|", *rows])
