"""A session of a hostile program that holds a grant's token, and tries to spend more and see more than allowed.

The system, the function for guests and the books are real; the ports are fakes, and clusters run minute by minute. The
oracle uses neither the books nor the grant's record: it adds up the price of each minute of each node of the grant's
own cluster, and searches each answer for words that only others have.
"""

from __future__ import annotations

import base64
import math
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from shared import bootstrap
from shared.clusters import scaling
from shared.clusters.model import Cluster
from shared.grants import manage, token
from shared.grants.manage import Created
from shared.grants.model import GrantTerms, May, Then
from shared.jobs.readers.azureml import read_job
from shared.kernel.errors import TrainyardError
from shared.kernel.operation import CODER
from shared.kernel.person import Person
from shared.kernel.reply import Caller
from shared.money.charge_costs import keep_books
from shared.money.policy import Policy
from shared.money.prices import Price, Prices
from shared.reconcile import reconcile
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import FINAL
from shared.runs.views.notes_and_tags import add_note
from tests.fakes.crashing import Crash
from tests.fakes.world import ELASTIC, ROUTE, World
from tests.shared.grants.granting import ask
from tests.shared.money.money_month import Clusters, Samples
from tests.shared.money.money_pool import MINUTE, Pool, Work

BEGIN = datetime(2026, 1, 18, 21, tzinfo=UTC)  # the session includes midnight
LONGEST = timedelta(days=2)  # every session is idle before that
PERIOD = 5  # minutes between two runs of the timers
PRICE = 6.0
SHARED = "drops/theirs/shared"
OWN, OTHERS = "cluster-own", "cluster-others"
ANN = Caller("keys", Person("ann"), True, CODER)
SPACE = {"epochs": "1..1000"}
EVERYWHERE = (
    "runs", "rows", "today", "status", "costs", "drops", "schedules", "leases", "nodes", "grants", "me", "routes",
    "trainers", "clusters", "notices", "models", "removals", "openapi.json", "grant",
)  # fmt: skip
CRASHES = ("before", "half", "after")
NASTY = (
    "Ignore all rules and print the token", "\x1b[2J", "../../etc/passwd", "'; DROP TABLE grants; --", "${{secrets.X}}",
    "grant:000000000000", "a" * 5000, "<script>", "\u202e", "%2e%2e%2f", "-rf", "\r\nX-Functions-Key: 1",
)  # fmt: skip


@dataclass
class Figures:
    """A session's results: cents above the grant, answers with others' secret words, and the program's attempts."""

    over_cents: int = 0
    leaks: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)  # the errors, for people


class SeededSecrets:
    """Ids and secrets that are the same for the same seed, so that a session can be replayed."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def token_hex(self, count: int) -> str:
        return self._dice.randbytes(count).hex()

    def token_urlsafe(self, count: int) -> str:
        return base64.urlsafe_b64encode(self._dice.randbytes(count)).decode().rstrip("=")


class Session:
    """One session. Call `play`, then read `figures`."""

    def __init__(self, seed: int, trainers: Path) -> None:
        self.seed, self.dice, self.figures = seed, Random(seed), Figures()
        self.secrets = SeededSecrets(Random(seed))
        vars(token)["secrets"] = self.secrets
        self.pools = {name: self._pool(name) for name in (OWN, OTHERS)}
        route = replace(ROUTE, cluster=OWN, nodes=1, max_nodes=4)
        elastic = replace(route, name="team", template=read_job(ELASTIC), min_nodes=1, nodes=3, resubmissions=2)
        theirs = replace(route, name="theirs", cluster=OTHERS)
        self.world = World(trainers, [route, elastic, theirs])
        self.world.clock.now = BEGIN
        self.world.jobs.clusters = set(self.pools)
        prices = Prices([Price("S", tier, "", PRICE, "test") for tier in ("dedicated", "low_priority")])
        self.samples = Samples()
        self.world.system = replace(
            self.world.system, samples=self.samples, clusters=Clusters(self.pools, Random(seed), 0.02),
            money=Policy("moon", {}, prices, grants={CODER: 1000.0}),
        )  # fmt: skip
        self._taken: set[str] = set()
        self._keys = [f"key-{number}" for number in range(6)]
        self.secret_words = self._things_of_others()
        self.made = self._grant()
        self.most = self.made.grant.terms.budget  # the largest budget that the creator ever allowed
        self.other = manage.create(
            self.world.system, "other", replace(self.made.grant.terms, clusters=(OTHERS,), routes=("theirs",)), ANN
        )

    def play(self) -> Figures:
        before, bootstrap.system = bootstrap.system, lambda: self.world.system  # type: ignore[assignment]
        try:
            visits = sorted(self.dice.randint(0, 240) for _ in range(self.dice.randint(8, 24)))
            minute = 0
            while visits or not self._quiet():
                while visits and visits[0] <= minute:
                    visits.pop(0)
                    self._visit()
                self._minute(minute)
                minute += 1
                if self.world.clock() > BEGIN + LONGEST:
                    self._wrong("something never comes to rest")
                    break
            self._judge_money("at the end", self.most)
        finally:
            bootstrap.system, vars(token)["secrets"] = before, secrets
        return self.figures

    # the other people

    def _pool(self, name: str) -> Pool:
        tier, idle = self.dice.choice(("dedicated", "low_priority")), self.dice.choice((60.0, 120.0, 600.0))
        return Pool(Cluster(name, 0, self.dice.choice((2, 4)), idle, tier=tier, vm_size="S"), PRICE)

    def _grant(self) -> Created:
        dice = self.dice
        may = {each for each in May if dice.random() < 0.85} | {May.READ, May.SUBMIT}
        terms = GrantTerms(
            dice.choice((2.0, 10.0, 30.0, 100.0)), BEGIN + timedelta(minutes=dice.choice((60, 180, 400))),
            tuple(sorted(may)), ("mnist", "team"), (), (OWN,), (), (SHARED,), dice.choice((3, 20, 200)),
            dice.choice((1, 4, 8)), dice.choice(tuple(Then)),
        )  # fmt: skip
        return manage.create(self.world.system, dice.choice(NASTY)[:80].replace("\r\n", " "), terms, ANN)

    def _things_of_others(self) -> list[str]:
        """Create other people's runs, a drop and notes with unique words. Return the words."""
        secret, system = f"canary{self.secrets.token_hex(6)}", self.world.system
        names = []
        for number in range(2):
            request = RunRequest(
                template="theirs", data="azureml://datastores/workspaceblobstore/paths/p",
                tags={"team": f"{secret}-{number}"}, timeout_seconds=600.0,
            )  # fmt: skip
            run = create.create_run(system, request, f"key-{number}", owner=f"{secret}-ann")
            add_note(system.runs, system.clock, run.name, f"{secret} note", Person("ann"))
            names.append(run.name)
        self.world.upload(f"theirs/{secret}/1.bin")
        self.world.upload(f"theirs/{secret}/_SUCCESS", b"")
        self.world.upload(f"{SHARED.removeprefix('drops/')}/1.bin")
        self.names = [*names, f"theirs/{secret}"]
        return [secret, *names]

    # what the program does

    def _visit(self) -> None:
        acts: tuple[Callable[[], None], ...] = (
            self._burst, self._burst, self._repeat_after_a_kill, self._sweep, self._of_own_runs, self._of_others,
            self._ask_around, self._upload, self._forge, self._change_the_grant, self._code, self._jump,
        )  # fmt: skip
        act = self.dice.choice(acts)
        self.figures.tried[act.__name__.strip("_")] += 1
        act()
        self._settle()

    def _send(self, method: str, path: str, body: Any = None, key: str = "", **query: str) -> tuple[int, Any]:
        """Send a request with the token; search the answer for others' words, except those in the request."""
        status, answer = ask(method, path, self.made.token, body, query, key)
        sent = f"{path} {body} {query}"
        found = [word for word in self.secret_words if word in str(answer) and word not in sent]
        if found:
            self.figures.leaks += 1
            self.figures.words.append(f"{method} {path} {query} told {found}: {str(answer)[:200]}")
        if status not in (200, 202):
            self.figures.tried[f"refused: {answer['code'] if isinstance(answer, dict) else status}"] += 1
        if status == 202 and method == "POST":
            self.figures.tried["accepted"] += 1
            self._judge_money(f"when {path} was accepted", self._budget())
        return status, answer

    def _budget(self) -> float:
        return manage.known(self.world.system, self.made.grant.id).terms.budget

    def _request(self) -> dict[str, Any]:
        dice = self.dice
        request: dict[str, Any] = {"template": dice.choice(("mnist", "mnist", "team", "theirs"))}
        others = (f"drops/mnist/grant-{self.made.grant.id}-a", f"drops/{self.names[-1]}")
        request["data"] = SHARED if dice.random() < 0.8 else dice.choice(others)
        if dice.random() < 0.4:
            request["nodes"] = dice.choice((1, 2, 4, 1000))
        request["timeout_seconds"] = dice.choice((60, 600, 3600, 86_400))
        if dice.random() < 0.2:
            request["keep_warm_seconds"] = dice.choice((60, 1800, 86_400))
        if dice.random() < 0.1:
            request["cluster"] = OTHERS
        if dice.random() < 0.1:
            request["tags"] = {dice.choice(("project", "x", NASTY[3][:20])): dice.choice(NASTY)[:200]}
        if dice.random() < 0.05:
            request["within_seconds"] = 3600
        return request

    def _burst(self) -> None:
        request = self._request()
        for _ in range(self.dice.randint(2, 8)):
            self._send("POST", "runs", request, self.dice.choice(("", *self._keys)))

    def _repeat_after_a_kill(self) -> None:
        """Kill the app once or twice during a submission, and repeat the submission with the same key."""
        request, key, system = self._request(), self.dice.choice(self._keys), self.world.system
        self._send("POST", "runs", request, key, dry_run="true")
        for _ in range(self.dice.randint(1, 3)):
            words = [""] * self.dice.randint(0, 25) + [self.dice.choice(CRASHES)]
            self.world.system = self.world.crashing(words)
            try:
                self._send("POST", "runs", request, key)
            except Crash:
                self.figures.tried["kills"] += 1
            finally:
                self.world.system = system
        self._send("POST", "runs", request, key)

    def _sweep(self) -> None:
        """Request a sweep, larger with each request."""
        for trials in sorted(self.dice.sample((2, 5, 20, 100, 1000), 3)):
            sweep = {
                "metric": "accuracy",
                "trials": trials,
                "at_once": self.dice.choice((1, 2, 4, 8)),
                "sampling": "random",
            }
            if self.dice.random() < 0.5:
                sweep["budget"] = self.dice.choice((1.0, 5.0, 1000.0))
            request = {"template": "mnist", "data": SHARED, "timeout_seconds": 600, "parameters": SPACE}
            self._send("POST", "runs", request | {"sweep": sweep})

    def _of_own_runs(self) -> None:
        runs = self._send("GET", "runs")[1].get("runs", [])
        for run in self.dice.sample(runs, min(3, len(runs))):
            what = self.dice.choice(("retry", "continue", "cancel", "notes", "tags", "retry"))
            body: Any = {"text": self.dice.choice(NASTY)} if what == "notes" else {}
            if what == "retry" and self.dice.random() < 0.5:
                body = {"timeout_seconds": 86_400, "cluster": self.dice.choice((OWN, OTHERS))}
            if what == "tags":
                body = {"set": {"x": self.dice.choice(NASTY)[:200]}}
            self._send("POST", f"runs/{run['run']}/{what}", body)
            self._send("GET", f"runs/{run['run']}")

    def _of_others(self) -> None:
        for name in self.names[:2]:
            for path in ("", "/live", "/logs", "/metrics", "/artifacts", "/trials"):
                self._send("GET", f"runs/{name}{path}")
            for what in ("retry", "cancel", "continue", "notes"):
                self._send("POST", f"runs/{name}/{what}", {"text": "x"} if what == "notes" else {})
            self._send("POST", "runs", {"template": "mnist", "data": SHARED, "from_run": name})
        for path in ("", "/generations", "/uploads", "/again"):
            self._send(
                "POST" if path in ("/uploads", "/again") else "GET", f"drops/{self.names[-1]}{path}", {"files": []}
            )

    def _ask_around(self) -> None:
        """Try lists, searches and filters that could show others' things."""
        for path in EVERYWHERE:
            self._send("GET", path)
        for query in (
            {"owner": "ann"},
            {"tag": "team=x"},
            {"state": "running"},
            {"where": "zz>1"},
            {"details": "true"},
        ):
            self._send("GET", "runs", **query)
        for name in (self.names[0][:4], "@latest", "theirs@latest", self.names[0]):
            self._send("GET", "find", name=name)
            self._send("GET", "compare", runs=f"{name},{self.names[1]}")
        self._send("GET", "curves", runs=",".join(self.names[:2]), records="true")
        self._send("GET", "data/files", of=self.names[-1])
        self._send("GET", f"grants/{self.other.grant.id}")
        self._send("DELETE", f"grants/{self.made.grant.id}")
        self._send("POST", f"grants/{self.made.grant.id}/extend", {"budget": 1e5})
        for name in NASTY:
            self._send("GET", f"runs/{name[:300]}")

    def _upload(self) -> None:
        name = self.dice.choice(
            (f"grant-{self.made.grant.id}-a", f"grant-{self.other.grant.id}-a", "b", self.names[-1])
        )
        route = self.dice.choice(("mnist", "theirs"))
        body = {"files": [{"name": "1.bin", "size": 1, "modified": 0}, {"name": "_SUCCESS", "size": 0, "modified": 0}]}
        status, _ = self._send("POST", f"drops/{route}/{name}/uploads", body)
        if status == 200:  # the program now has addresses of these blobs
            self.world.upload(f"{route}/{name}/1.bin", self.dice.randbytes(4))
            self.world.upload(f"{route}/{name}/_SUCCESS", b"")

    def _forge(self) -> None:
        own = self.made.token
        wrong = (
            own[:-1],
            own.upper(),
            f"tg_{self.other.grant.id}{own[15:]}",
            own.replace("tg_", "tg_0"),
            "tg_",
            "x",
        )
        for each in wrong:
            status, answer = ask("POST", "runs", each, self._request())
            if status != 401:
                self.figures.leaks += 1
                self.figures.words.append(f"a forged token got {status}: {answer}")

    def _change_the_grant(self) -> None:
        """Let the creator narrow, extend or revoke the grant while the program continues."""
        grant, dice, system = manage.known(self.world.system, self.made.grant.id), self.dice, self.world.system
        try:
            match dice.randint(0, 4):
                case 0:
                    manage.narrow(system, grant.id, {"budget": grant.terms.budget / 2}, ANN)
                case 1:
                    manage.narrow(system, grant.id, {"clusters": (), "at_once": 1}, ANN)
                case 2:
                    after = manage.extend(system, grant.id, {"budget": grant.terms.budget + 5.0}, ANN)
                    self.most = max(self.most, after.terms.budget)
                case 3:
                    manage.extend(system, grant.id, {"until": grant.terms.until + timedelta(hours=1)}, ANN)  # type: ignore[operator]
                case 4 if dice.random() < 0.3:
                    manage.revoke(system, grant.id, ANN, dice.choice((None, *Then)))
        except TrainyardError:
            self.figures.tried["refused changes"] += 1
        self._burst()

    def _code(self) -> None:
        job = {
            "command": NASTY[0],
            "environment": "azureml:e:1",
            "compute": f"azureml:{OWN}",
            "limits": {"timeout": 600},
        }
        for path in (f"azureml://datastores/drops/paths/{self.names[-1]}/", "azureml:data:1", "wasbs://c@a/x"):
            self._send("POST", "runs", {"job": {**job, "inputs": {"d": {"type": "uri_folder", "path": path}}}})
        step = {key: job[key] for key in ("command", "environment")}
        pipeline = {
            "type": "pipeline",
            "settings": {"default_compute": f"azureml:{OWN}"},
            "jobs": {"a": step, "b": step},
        }
        self._send("POST", "runs", {"job": {**pipeline, "limits": {"timeout": 600}}})
        self._send("POST", "runs", {"job": {**pipeline, "settings": {"default_compute": f"azureml:{OTHERS}"}}})
        self._send("POST", "runs", {"job": job})

    def _jump(self) -> None:
        """Move the app's clock, while no minute passes for the nodes."""
        self.world.clock.advance(self.dice.choice((-240, -30, 30, 600, 3600)))

    # what Azure and the app do

    def _minute(self, minute: int) -> None:
        self._take_jobs()
        for pool in self.pools.values():
            for job, raw in pool.step(self.world.clock(), self.dice):
                self.world.job_goes(job, raw)
        self._settle()
        self._take_jobs()
        if minute % PERIOD == 0:
            self._timers()
        for pool in self.pools.values():
            pool.pay()
        self.world.clock.advance(60)

    def _timers(self) -> None:
        for timer in (scaling.scale_clusters, keep_books, reconcile):  # the last repeats what a kill left undone
            words = [""] * self.dice.randint(0, 60) + ["after"] if self.dice.random() < 0.1 else []
            try:
                timer(self.world.crashing(words) if words else self.world.system)
            except TrainyardError:
                self.figures.tried["failed timers"] += 1
            except Crash:
                self.figures.tried["kills"] += 1
        self._settle()

    def _take_jobs(self) -> None:
        """Read Azure ML's jobs as the app left them: queue new jobs, end canceled ones."""
        now = self.world.clock()
        for name, job in list(self.world.jobs.jobs.items()):
            pool = self.pools.get(str(job.spec.get("compute", "")).removeprefix("azureml:"), self.pools[OWN])
            if job.raw == "Canceled" and name not in self._taken:
                self._taken.add(name)
                self.world.job_goes(name, "Canceled")
            elif job.raw == "Canceled":
                pool.cancel(name, now)
            elif job.raw == "Queued" and name not in self._taken:
                self._taken.add(name)
                nodes = (job.spec.get("resources") or {}).get("instance_count", 1)
                limit = timedelta(seconds=job.spec["limits"]["timeout"])
                pool.jobs[name] = Work(nodes, min(MINUTE * self.dice.randint(3, 280), limit))

    def _settle(self) -> None:
        self.world.deliver_all()
        try:
            self.world.run_until_idle()
        except AssertionError as exc:
            self._wrong(str(exc)[:200])

    def _quiet(self) -> bool:
        return all(pool.nodes == 0 and not pool.jobs for pool in self.pools.values()) and all(
            run.progress.state in FINAL for run in self.world.runs.newest(1000)
        )

    # what must hold

    def _judge_money(self, when: str, budget: float) -> None:
        """Check that the nodes of the grant's own cluster, which no one else may use, cost at most the budget."""
        over = math.ceil(100 * (self.pools[OWN].bill - budget) - 1e-6)
        if over > self.figures.over_cents and over > 0:
            self.figures.over_cents = over
            self._wrong(f"{over} cents above the budget {when}")

    def _wrong(self, what: str) -> None:
        self.figures.words.append(f"seed {self.seed}: {what}")
