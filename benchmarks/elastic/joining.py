"""Rendezvous times: PyTorch's c10d backend and the Azure table on Azurite, in turn.

A node is a process that has already imported torch; its entry point is at the end of this module. The busy rounds run
beside four processes that only compute.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from benchmarks.elastic.crowd import free_port
from trainers.elastic.client import connect
from trainers.elastic.handler import NAME, AzureTableRendezvous, create
from trainers.elastic.store import AzureTableStore

STEADY_SECONDS = 18  # six heartbeats, two reads of the table
# Microsoft's price of 10,000 transactions of Table Storage (LRS, US regions), in dollars.
DOLLARS = 0.00036


def node() -> None:
    """Act as a node: for each line of standard input join that run, print the seconds and requests, and leave."""
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
        requests = handler.table.requests if isinstance(handler, AzureTableRendezvous) else 0
        print(json.dumps([taken, requests]), flush=True)
        sys.stdin.readline()  # until all have joined
        handler.shutdown()


class Nodes:
    """Processes that wait for a run to join."""

    def __init__(self, count: int) -> None:
        argv = [sys.executable, "-m", "benchmarks.elastic.joining"]
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
        """Return the seconds until the last node has joined, and the mean number of requests of a node."""
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


BUSY = 4


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Run `count` processes that only compute."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def joins(count: int, rounds: int, url: str) -> dict[str, float]:
    nodes = Nodes(count)
    row: dict[str, float] = {}
    try:
        for name, beside in (("", 0), ("busy ", BUSY)):
            with busy(beside):
                c10d, ours = [], []
                for _ in range(rounds):
                    c10d.append(nodes.join("c10d", f"127.0.0.1:{free_port()}"))
                    ours.append(nodes.join(NAME, url))
            join, requests = (statistics.median(column) for column in zip(*ours, strict=True))
            c10d_join = statistics.median(taken for taken, _ in c10d)
            row |= {f"{name}c10d": c10d_join, f"{name}table": join, f"{name}ratio": join / c10d_join}
            row[f"{name}requests"] = requests
    finally:
        nodes.end()
    return row


def at_work(url: str, count: int) -> float:
    """Return the requests for each node and second while a team of `count` nodes works."""
    handlers, _ = team(url, count)
    before, began = _requests(handlers), time.monotonic()
    time.sleep(STEADY_SECONDS)
    rate = (_requests(handlers) - before) / (time.monotonic() - began) / count
    for handler in handlers:
        handler.leave()
    return rate


def adders(url: str, threads: int = 8, each: int = 25) -> dict[str, float]:
    """Return the additions to one number for each second, and the share of additions that arrived."""
    stores = [AzureTableStore(connect(url, {}), "adders") for _ in range(threads)]
    stores[0].set("sum", "0")
    began = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda store: [store.add("sum", 1) for _ in range(each)], stores))
    taken = time.monotonic() - began
    return {"adds a second": threads * each / taken, "arrived": stores[0].add("sum", 0) / (threads * each)}


def team(url: str, count: int) -> tuple[list[AzureTableRendezvous], float]:
    """Start a team of `count` nodes as threads of this process. Return the nodes and the seconds until they met."""
    run = uuid.uuid4().hex
    handlers = [create(RendezvousParameters(NAME, url, run, count, count, "127.0.0.1")) for _ in range(count)]
    threads = [threading.Thread(target=handler.next_rendezvous) for handler in handlers]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return handlers, time.monotonic() - began


def hundred(url: str, count: int = 100) -> dict[str, float]:
    """Count the requests of many nodes, which are threads of this process."""
    handlers, joined = team(url, count)
    requests = _requests(handlers)
    began = time.monotonic()
    time.sleep(STEADY_SECONDS)
    rate = (_requests(handlers) - requests) / (time.monotonic() - began) / count
    gone = max(handler.num_nodes_waiting() for handler in handlers)
    for handler in handlers:
        handler.leave()
    return {
        "nodes": count,
        "join": joined,
        "join requests": requests / count,
        "at work": rate,
        "taken for dead": gone,
        "dollars an hour": rate * count * 3600 / 10_000 * DOLLARS,
    }


def _requests(handlers: list[AzureTableRendezvous]) -> int:
    return sum(handler.table.requests for handler in handlers)


if __name__ == "__main__":
    node()
