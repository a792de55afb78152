"""Nodes that reach the table but not each other: how long no team makes steps while the network is really cut. Also how
soon all nodes are back after the links have healed, and how long no node makes a step meanwhile.

Four nodes, each in its own network; all stay alive. Our agents are compared with torchrun with our table, with torchrun
with c10d, whose store is on a host that every node reaches, and with torchft if a Python with torchft is given, whose
lighthouse is on that host too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.elastic.crowd import PEERS, Crowd, installed, lines
from emulators.testing.azurite import ACCOUNT, Azurite
from tests.elastic import hosts
from tests.elastic.hosts import GATEWAY, Host, Quality

NODES = 4
# A shorter pause is part of a step.
STEP_SECONDS = 1.0
FLAP_SECONDS = 5.0
BACK_SECONDS = 60.0
# Seconds between two cuts, so that each counts as the first: a recently lost link has to answer for longer.
APART_SECONDS = 16.0
# Seconds after the return of all nodes in which pauses still count for the healing.
AFTER_SECONDS = 3.0
# Seconds between two links that are refused in turn.
LINK_SECONDS = 1.0
# Number of failing crowds in a row before a cut is abandoned.
TRIES = 2
STORE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore(sys.argv[1], 29400, None, True, wait_for_workers=False)
time.sleep(3600)
"""

Change = Callable[[Quality, Sequence[Host]], None]
Row = dict[str, Any]


def halves(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([*made[:2]], [*made[2:]])


def halves_refused(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([*made[:2]], [*made[2:]], refuse=True)


def the_first(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([made[0]], [*made[1:]])


def the_first_by_links(wires: Quality, made: Sequence[Host]) -> None:
    """Refuse the links of the first node one after another, so that each time other nodes still reach each other."""
    for other in made[1:]:
        wires.cut([made[0]], [other], refuse=True)
        time.sleep(LINK_SECONDS)


def three_ways(wires: Quality, made: Sequence[Host]) -> None:
    wires.cut([*made[:2]], [*made[2:]])
    wires.cut([made[2]], [made[3]])


def one_way(wires: Quality, made: Sequence[Host]) -> None:
    """Cut one node's traffic to two of the three others. This breaks a ring for every order of ranks; a cut between
    two nodes that exchange nothing would break none."""
    wires.cut([made[1]], [*made[2:]], one_way=True)


# The cut, and whether it alternates with healing.
CUTS: dict[str, tuple[Change, bool]] = {
    "halves, dropped": (halves, False),
    "halves, refused": (halves_refused, False),
    "the first node": (the_first, False),
    "the first node, its links refused in turn": (the_first_by_links, False),
    "one node, one way to two": (one_way, False),
    "three ways": (three_ways, False),
    "halves, every 5 s": (halves, True),
}


class Hosts(Crowd):
    """A crowd in which each process runs on its own host."""

    def __init__(self, folder: Path, argv: Sequence[str], env: dict[str, str], made: Sequence[Host]) -> None:
        self._hosts = made
        super().__init__(folder, argv, {"GLOO_SOCKET_IFNAME": "eth0", **env}, 0)
        for host in made:
            self._argv = [*host.prefix, *(part.replace("{address}", host.address) for part in argv)]
            self.add()


def ours(folder: Path, account: Azurite, made: Sequence[Host], port: int) -> Crowd:
    """Start our agents, whose workers keep running."""
    env = {"PET_RDZV_ID": uuid.uuid4().hex, "PET_NNODES": f"1:{NODES}", **_table(account, port)}
    argv = [sys.executable, "-m", "elastic.launch", "--in-place", "--local-addr", "{address}"]
    return Hosts(folder, [*argv, str(PEERS / "elastic_steps.py"), str(folder / "steps")], env, made)


def _table(account: Azurite, port: int) -> dict[str, str]:
    """Return the environment in which the hosts find the table."""
    connection = account.connection_string.replace(account.table_url, f"http://{GATEWAY}:{port}/{ACCOUNT}")
    return {"AZURE_STORAGE_CONNECTION_STRING": connection}


def torchrun(folder: Path, made: Sequence[Host], options: Sequence[str], env: dict[str, str]) -> Crowd:
    """Start torchrun's own agents with their defaults, which restart from the newest checkpoint."""
    argv = [sys.executable, "-m", "torch.distributed.run", "--nnodes", f"1:{NODES}", "--rdzv-id", uuid.uuid4().hex]
    argv += [*options, "--max-restarts", "1000", "--local-addr", "{address}", str(PEERS / "elastic_trainer.py")]
    return Hosts(folder, [*argv, str(folder / "steps")], env, made)


@contextmanager
def c10d(folder: Path, made: Sequence[Host]) -> Iterator[Crowd]:
    options = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{GATEWAY}:29400", "--rdzv-conf", "is_host=false"]
    with _beside([sys.executable, "-c", STORE, GATEWAY]), torchrun(folder, made, options, {}) as crowd:
        yield crowd


@contextmanager
def torchft(folder: Path, python: str, made: Sequence[Host]) -> Iterator[Crowd]:
    """Start torchft's lighthouse and managers, with the settings of torchft's own example."""
    lighthouse = [str(Path(python).parent / "torchft_lighthouse"), "--bind", f"{GATEWAY}:29510"]
    lighthouse += ["--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000"]
    env = {"LIGHTHOUSE": f"http://{GATEWAY}:29510"}
    argv = ["env", "HOST_ADDRESS={address}", python, str(PEERS / "elastic_steps.py"), str(folder / "steps")]
    with _beside(lighthouse), Hosts(folder, [*argv, "--torchft", "{number}"], env, made) as crowd:
        yield crowd


@contextmanager
def _beside(argv: Sequence[str]) -> Iterator[None]:
    """Run a process on the host that every node reaches."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*hosts.hub().prefix, *argv], **quiet)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def without_a_team(times: Sequence[float], window: tuple[float, float]) -> float:
    """Return the seconds of the window in pauses longer than STEP_SECONDS, in which no process made a step."""
    inside = [window[0], *sorted(at for at in times if window[0] < at < window[1]), window[1]]
    return sum(after - before for before, after in pairwise(inside) if after - before > STEP_SECONDS)


def one_cut(crowd: Crowd, wires: Quality, made: Sequence[Host], name: str, seconds: float) -> Row:
    """Cut the network, wait, heal the network, and return a row of what happened meanwhile."""
    change, flaps = CUTS[name]
    crowd.wait(NODES, time.time(), BACK_SECONDS)
    time.sleep(APART_SECONDS)
    began = time.time()
    change(wires, made)
    turn = 1
    while time.time() < began + seconds:
        if flaps and time.time() > began + turn * FLAP_SECONDS:
            turn += 1
            change(wires, made) if turn % 2 else wires.heal()
        time.sleep(0.1)
    end = time.time()
    wires.heal()
    steps = lines(crowd.file)
    healing = _healing(crowd, end)
    rounds = [e for e in lines(crowd.events) if e["what"] == "round written" and began < e["time"] < end]
    first = {line["step"]: line["time"] for line in reversed(steps)}
    again = {line["step"] for line in steps if began < line["time"] < end and first[line["step"]] < began}
    row: Row = {"cut": name, "seconds": end - began}
    row["seconds_without_a_team"] = without_a_team([line["time"] for line in steps], (began, end))
    return {**row, "rounds": len(rounds), "steps_lost": len(again), **healing}


def _healing(crowd: Crowd, healed_at: float) -> Row:
    """Return the seconds from the healing of the links until all nodes step together, and the longest pause without
    a step."""
    before = len(lines(crowd.file))
    whole: list[float] = []
    while not whole and time.time() < healed_at + BACK_SECONDS:
        whole = [line["time"] for line in lines(crowd.file)[before:] if line["world"] == NODES]
        time.sleep(0.1)
    until = (whole[0] if whole else time.time()) + AFTER_SECONDS
    time.sleep(max(0.0, until - time.time()))
    moments = [healed_at, *sorted(line["time"] for line in lines(crowd.file) if healed_at < line["time"] < until)]
    pause = max(after - earlier for earlier, after in pairwise([*moments, until]))
    return {"seconds_until_whole": whole[0] - healed_at if whole else None, "longest_pause_after": pause}


def measure(account: Azurite, seconds: float, python: str) -> Iterator[Row]:
    """Yield a row for each cut and launcher. A crowd that is not whole again within a minute is replaced."""
    wires = Quality()
    with hosts.hosts(NODES, wires) as made, hosts.forwarded(account.ports.table) as port:
        kinds: dict[str, Callable[[Path], Any]] = {
            "trainyard": lambda folder: ours(folder, account, made, port),
            "torchrun": lambda folder: torchrun(
                folder, made, ["--rdzv-backend", "azure-table"], {**installed(folder), **_table(account, port)}
            ),
            "c10d": lambda folder: c10d(folder, made),
        }
        if python:
            kinds["torchft"] = lambda folder: torchft(folder, python, made)
        for kind, start in kinds.items():
            for row in _rows(start, wires, made, seconds):
                yield {"launcher": kind, **row, **({} if kind in ("trainyard", "torchrun") else {"rounds": ""})}


def _rows(start: Callable[[Path], Any], wires: Quality, made: Sequence[Host], seconds: float) -> Iterator[Row]:
    left, failed = [*CUTS], 0
    while left:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            try:
                crowd = stack.enter_context(start(Path(folder)))
                crowd.wait(NODES)
                while left:
                    yield one_cut(crowd, wires, made, left[0], seconds)
                    left.pop(0)
                    failed = 0
            except (RuntimeError, TimeoutError) as error:  # some processes ended, or did not meet (again)
                wires.heal()
                failed += 1
                if failed == TRIES:
                    yield {"cut": left.pop(0), "failed": str(error).partition(":")[0]}
                    failed = 0
