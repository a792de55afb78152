"""A scripted agent searches for a better learning rate of mnist, within a grant of $1 and ten minutes.

    python3 trainyard.py bench agent_search [--quick] [--write] [--json]

A person trains with a learning rate of 0.005. The agent starts `trainyard mcp` with the token of the grant, and has
only the eight tools of that server. The agent repeats the training as a baseline, tries other rates, cancels runs that
can no longer win, promotes the best run, and checks the proof of that run. --write puts the conversation into
docs/agent-search.md. The cloud is local; the trainings are real. The benchmark fails unless the agent found a better
rate and the proof holds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks._options import options
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import Desk, one_node_each

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "agent-search.md"
BUDGET, SECONDS = 1.0, 600  # dollars, and seconds of the local clock
DATA, METRIC, MODEL = "drops/mnist/digits-1", "test_accuracy", "digits"
EPOCHS = 2
START, OTHERS = 0.005, (0.015, 0.05, 0.15)  # learning rates: the person's, and those that the agent tries
SHOWN = 700  # characters of an answer on the page
SHOWN_WHOLE = ("compare", "inspect")  # the tools whose answers are shown whole
LOSING = 0.15  # a run this far behind the best after as many epochs is canceled
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "scripted-agent", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INTRODUCTION = """# A search by a scripted agent

This is the conversation of a small program with the [tools for agents](agents.md). Somebody trains mnist with a
learning rate of 0.005. The program looks for a better one, with a grant of $1 and ten minutes, on a local cloud.
`python3 trainyard.py bench agent_search --write` ran the program and wrote this page; no language model took part.
`>` is a call, and the answer follows; long answers are cut, and a repeated call has only its
last answer.
"""


@dataclass
class Tools:
    """The agent's side of `trainyard mcp`. `spoken` holds each call with its answer."""

    server: subprocess.Popen[str]
    spoken: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool. Raises RuntimeError with the tool's error message."""
        assert self.server.stdin
        assert self.server.stdout
        params = {"name": tool, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": len(self.spoken) + 1, "method": "tools/call", "params": params}
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        text = answer["result"]["content"][0]["text"]
        self.spoken.append((tool, arguments, text))
        if answer["result"]["isError"]:
            raise RuntimeError(text)
        found: dict[str, Any] = json.loads(text)
        return found


@contextmanager
def tools_of(desk: Desk, token: str) -> Iterator[Tools]:
    argv = [sys.executable, "-m", "cli", "mcp"]
    env = {**desk.env, "TRAINYARD_TOKEN": token}
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield Tools(server)
        assert server.stdin
        server.stdin.close()


@dataclass
class Search:
    """The agent's search: the rates it has tried, by run, and their results."""

    tools: Tools
    until: float
    rates: dict[str, float] = field(default_factory=dict)
    canceled: list[str] = field(default_factory=list)

    def train(self, rate: float) -> None:
        """Plan a training, and submit the plan if it states a cost."""
        parameters = {"lr": rate, "epochs": EPOCHS}
        asked = {"template": "mnist", "data": DATA, "nodes": 1, "timeout_seconds": 300, "parameters": parameters}
        planned = self.tools("plan", train=asked)
        if planned["greatest_cost"] is None or planned["greatest_cost"] > BUDGET:
            return
        self.rates[self.tools("submit", plan=planned["plan"])["run"]] = rate

    def follow(self, runs: Sequence[str], sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait for these runs. Cancel a run whose metric is far behind that of another run after as many epochs."""
        while True:
            told = self.tools("wait", runs=list(runs))
            if told["all_ended"] or time.monotonic() > self.until:
                return
            for run in losing(told):
                self.tools("cancel", run=run)
                self.canceled.append(run)
            sleep(min(told["ask_again_in_seconds"], max(self.until - time.monotonic(), 0)))

    def best(self) -> str:
        """Return the run with the best saved model."""
        found = self.tools("compare", runs=list(self.rates))
        return str(found["from_outside"]["metrics"][METRIC]["best"])

    def promote(self, run: str) -> dict[str, Any]:
        """Promote the run, and return its version as the tools show it."""
        why = f"the best learning rate of {len(self.rates)}: {self.rates[run]}"
        planned = self.tools("plan", promote={"model": MODEL, "run": run, "alias": "production", "why": why})
        version = self.tools("submit", plan=planned["plan"])["number"]
        return self.tools("inspect", model=MODEL, version=str(version))


def losing(told: dict[str, Any]) -> list[str]:
    """Return the running runs whose newest metric is LOSING behind the best run after as many epochs."""
    values: dict[str, tuple[float, float]] = {}
    for run in told["runs"]:
        last = told.get("from_outside", {}).get(run["run"], {}).get("metrics_last", {})
        if METRIC in last and "epoch" in last:
            values[run["run"]] = (last["epoch"], last[METRIC])
    running = {run["run"] for run in told["runs"] if run["state"] == "running"}
    return [
        name
        for name, (epoch, value) in values.items()
        if name in running and any(at <= epoch and other - value > LOSING for at, other in values.values())
    ]


def searched(desk: Desk, quick: bool) -> tuple[dict[str, Any], Tools]:
    """Run the agent. Return its findings and the conversation."""
    create = ("grant", "create", "--for", "search a learning rate", "--budget", str(BUDGET), "--until", "10m")
    limits = ("--may", "read,submit,cancel,promote", "--routes", "mnist", "--clusters", "cpu-cluster")
    own = ("--models", MODEL, "--shares", DATA, "--runs", "8", "--at-once", "2")
    grant = desk.ask(*create, *limits, *own)
    began = time.monotonic()
    with tools_of(desk, grant["token"]) as tools:
        search = Search(tools, began + SECONDS)
        tools("find", kind="routes", name="mnist")
        search.train(START)
        baseline = next(iter(search.rates))
        search.follow([baseline])
        others = OTHERS[:1] if quick else OTHERS
        for rate in others:
            if time.monotonic() < search.until - 120:
                search.train(rate)
                search.follow([list(search.rates)[-1], baseline])
        best = search.best()
        version = search.promote(best)
    found = {"rate": search.rates[best], "runs": len(search.rates), "canceled": len(search.canceled)}
    found |= {"better_than_start": best != baseline, "proof_holds": version["proof_holds"]}
    found |= {"seconds": round(time.monotonic() - began), "calls": len(tools.spoken)}
    spent = desk.ask("grant", "show", grant["id"])
    return {**found, "dollars": round(float(spent["spent"]), 4)}, tools


def page(found: dict[str, Any], tools: Tools) -> str:
    """Return the page with the findings and the conversation."""
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.items())
    calls = ((f"> {tool} {json.dumps(arguments)}", shortened(tool, text)) for tool, arguments, text in tools.spoken)
    spoken = "\n\n".join(starmap(last_answer, groupby(calls, key=itemgetter(0))))
    return f"{INTRODUCTION}\nThe result: {told}.\n\n```text\n{spoken}\n```\n"


def last_answer(call: str, repeated: Iterable[tuple[str, str]]) -> str:
    """Return a call, how often it was repeated at once, and its last answer."""
    answers = [answer for _, answer in repeated]
    times = f"   ({len(answers)} times; the last answer:)" if len(answers) > 1 else ""
    return f"{call}{times}\n{answers[-1]}"


def shortened(tool: str, text: str) -> str:
    return (
        text if len(text) <= SHOWN or tool in SHOWN_WHOLE else f"{text[:SHOWN]}… ({len(text) - SHOWN} more characters)"
    )


def main(argv: list[str]) -> None:
    parser = options(__doc__, "two learning rates")
    parser.add_argument("--write", action="store_true", help="write docs/agent-search.md")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        digits.write(folder / "digits")
        routes = Options(node_start_seconds=0.2, idle_seconds=60, routes=one_node_each(folder))
        with Cloud.start(folder / "cloud", routes) as cloud:
            desk = Desk(cloud, folder)
            _upload(desk)
            found, tools = searched(desk, asked.quick)
    if asked.write:
        PAGE.write_text(page(found, tools), "utf-8")
    print(json.dumps(found) if asked.json else "\n".join(f"{name:20} {value}" for name, value in found.items()))
    if not (found["proof_holds"] and found["better_than_start"]):
        sys.exit(1)


def _upload(desk: Desk) -> None:
    """Upload the data, and cancel the run that the upload starts, because the agent starts its own runs."""
    run = desk.ask("drop", "digits", "mnist/digits-1")["run"]
    desk.type("cancel", run)


if __name__ == "__main__":
    main(sys.argv[1:])
