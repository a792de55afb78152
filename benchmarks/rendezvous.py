"""Nodes that meet: PyTorch's c10d backend and the Azure table on Azurite, side by side in one run.

    python -m benchmarks.rendezvous [--nodes 2,4,8,16] [--rounds 5] [--no-kill] [--json]

join      seconds from the call of next_rendezvous in all nodes until it returned in the last, median of the rounds;
          the nodes are processes, and have imported torch before. Requests are those of all nodes, for each of them
at work   requests to the table for each node and second, while agents and workers run
known     seconds from kill -9 of an agent until the rendezvous is without it
again     seconds from that kill until the first step of those that are left. For the table it is the first agent
          that is killed; c10d's first agent hosts its store and takes the run along, so there it is the last one
          c10d* has the table backend's settings instead of its own, which wait 30 s for more nodes.
          inf: not within two minutes
100       nodes that are threads of one process, for the number of requests only
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from emulators.process import wait_for
from emulators.storage import azurite
from tests.elastic.agents import Run
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.client import connect
from trainers.elastic.handler import NAME, AzureTableRendezvous, create
from trainers.elastic.state import _unpickled

STEADY_SECONDS = 12  # four heartbeats
OURS = "last_call_timeout=5,keep_alive_interval=3,keep_alive_max_attempt=2"
# Microsoft's price of 10,000 transactions of Table Storage (LRS, US regions), in dollars.
DOLLARS = 0.00036


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def node() -> None:
    """Be a node: for each line of standard input join that run, print the seconds and requests, and leave."""
    print("ready", flush=True)
    for line in sys.stdin:
        config = json.loads(line)
        nodes = config.pop("nodes")
        params = RendezvousParameters(
            config.pop("backend"), config.pop("endpoint"), config.pop("run"), nodes, nodes, "127.0.0.1", **config
        )
        handler = create(params) if params.backend == NAME else get_rendezvous_handler(params)
        began = time.monotonic()
        handler.next_rendezvous()
        taken = time.monotonic() - began
        requests = handler._store.table.requests if isinstance(handler, AzureTableRendezvous) else 0
        print(json.dumps([taken, requests]), flush=True)
        sys.stdin.readline()  # until all have joined
        handler.shutdown()


class Nodes:
    """Processes that wait for a run to join."""

    def __init__(self, count: int) -> None:
        argv = [sys.executable, "-m", "benchmarks.rendezvous", "--node"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._nodes = [subprocess.Popen(argv, **pipes) for _ in range(count)]
        self._answers()

    def _tell(self, *lines: str) -> None:
        for process, line in zip(self._nodes, lines, strict=True):
            assert process.stdin is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()

    def _answers(self) -> list[str]:
        return [process.stdout.readline() for process in self._nodes if process.stdout]

    def join(self, backend: str, endpoint: str) -> tuple[float, float]:
        """Seconds until the last has joined, and requests of each."""
        run = {"backend": backend, "endpoint": endpoint, "run": uuid.uuid4().hex, "nodes": len(self._nodes)}
        hosting = [{"is_host": str(not rank)} if backend == "c10d" else {} for rank in range(len(self._nodes))]
        self._tell(*(json.dumps({**run, **extra}) for extra in hosting))
        answers = [json.loads(answer) for answer in self._answers()]
        self._tell(*("" for _ in self._nodes))
        return max(taken for taken, _ in answers), sum(requests for _, requests in answers) / len(answers)

    def end(self) -> None:
        for process in self._nodes:
            process.kill()
            process.communicate()


def joins(count: int, rounds: int, url: str) -> dict[str, float]:
    nodes = Nodes(count)
    try:
        c10d = [nodes.join("c10d", f"127.0.0.1:{free_port()}") for _ in range(rounds)]
        ours = [nodes.join(NAME, url) for _ in range(rounds)]
    finally:
        nodes.end()
    join, requests = (statistics.median(column) for column in zip(*ours, strict=True))
    c10d_join = statistics.median(taken for taken, _ in c10d)
    return {"c10d join": c10d_join, "table join": join, "ratio": join / c10d_join, "join requests": requests}


def killed(count: int, account: azurite.Azurite, c10d: bool, conf: str) -> dict[str, float]:
    """Agents as processes: kill one of them. The figures that this backend has."""
    run_id = uuid.uuid4().hex
    endpoint = f"127.0.0.1:{free_port()}" if c10d else account.table_url
    env = {"PET_RDZV_BACKEND": "c10d" if c10d else NAME, "PET_LOCAL_ADDR": "127.0.0.1"}
    with (
        tempfile.TemporaryDirectory() as folder,
        Run(Path(folder), endpoint, run_id, f"{min(2, count - 1)}:{count}", **env) as run,
    ):
        for host in [True] + [False] * (count - 1):
            settings = ",".join(filter(None, [conf, f"is_host={host}" if c10d else ""]))
            launch = "torch.distributed.run" if c10d else "elastic.launch"
            run.start(launch=(launch,), PET_RDZV_CONF=settings)
        run.wait_for_steps(count, steps=5)
        found: dict[str, float] = {}
        if not c10d:
            found["at work"] = (-_lines(account) + (time.sleep(STEADY_SECONDS) or _lines(account))) / count
            found["at work"] /= STEADY_SECONDS
        victim, before = (run.agents[-1] if c10d else run.first()), len(run.progress())
        began = time.time()
        victim.kill()
        if not c10d:
            backend = AzureTableRendezvousBackend(connect(endpoint, os.environ), run_id)
            wait_for(lambda: victim.pid not in _pids(backend), 120, "the dead node to go", every=0.2)
            found["known"] = time.time() - began
        try:
            lines = run.wait_for_steps(count - 1, after=before)
        except AssertionError:
            return {**found, "again": math.inf}
        found["again"] = next(line["time"] for line in lines[before:] if line["world"] == count - 1) - began
        return found


def _pids(backend: AzureTableRendezvousBackend) -> set[int]:
    found = backend.get_state()
    assert found is not None
    return {node.pid for node in _unpickled(found[0]).participants}


def _lines(account: azurite.Azurite) -> int:
    return account.access_log.read_bytes().count(b"\n")


def hundred(url: str, count: int = 100) -> dict[str, float]:
    """Requests of many nodes, which are threads of this process."""
    run = uuid.uuid4().hex
    handlers = [create(RendezvousParameters(NAME, url, run, count, count, "127.0.0.1")) for _ in range(count)]
    threads = [threading.Thread(target=handler.next_rendezvous) for handler in handlers]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    joined, requests = time.monotonic() - began, _requests(handlers)
    began = time.monotonic()
    time.sleep(STEADY_SECONDS)
    rate = (_requests(handlers) - requests) / (time.monotonic() - began) / count
    gone = max(handler.num_nodes_waiting() for handler in handlers)
    for handler in handlers:
        handler._stop_heartbeats()
    return {
        "nodes": count,
        "join": joined,
        "join requests": requests / count,
        "at work": rate,
        "taken for dead": gone,
        "dollars an hour": rate * count * 3600 / 10_000 * DOLLARS,
    }


def _requests(handlers: list[AzureTableRendezvous]) -> int:
    return sum(handler._store.table.requests for handler in handlers)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="2,4,8,16", help="numbers of nodes (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of joining (default %(default)s)")
    parser.add_argument("--no-kill", action="store_true", help="leave out agents that are killed")
    parser.add_argument("--no-hundred", action="store_true", help="leave out the 100 nodes")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    parser.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.node:
        node()
        return 0
    with tempfile.TemporaryDirectory() as folder, azurite.start(Path(folder), key=azurite.KEY) as account:
        for count in map(int, args.nodes.split(",")):
            row = {"nodes": float(count), **joins(count, args.rounds, account.table_url)}
            if not args.no_kill:
                row |= killed(count, account, c10d=False, conf="")
                row["c10d again"] = killed(count, account, c10d=True, conf="")["again"]
                row["c10d* again"] = killed(count, account, c10d=True, conf=OURS)["again"]
            show(row, args.json)
        if not args.no_hundred:
            show(hundred(account.table_url), args.json)
    return 0


def show(row: dict[str, float], as_json: bool) -> None:
    print(json.dumps(row) if as_json else "   ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
