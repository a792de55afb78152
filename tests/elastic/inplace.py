"""The script that `elastic.launch --in-place` starts in these tests: all processes make steps together, and no
death may lose a step.

    inplace.py FOLDER

What is learned is one number, the steps done, which each process has in its memory. The first of a team notes each step
in FOLDER/progress.jsonl. All end after the step at which the first finds a file FOLDER/finish.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from elastic.worker import RoundEnded, RunOver, Team

PACE = 0.05  # seconds of a step, for the work that isn't done here

ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG: end with the agent
if os.environ.get("BAD_DATA"):
    sys.exit(2)
folder = Path(sys.argv[1])
if os.environ.get("PET_LOCAL_ADDR", "127.0.0.1") == "127.0.0.1":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
found = Team.of(os.environ)
assert found
team: Team = found
learned = 0
stopped = False


def stop(*_: object) -> None:
    global stopped
    stopped = True


def exchanged(words: torch.Tensor, world: int) -> torch.Tensor:
    """Return the sum of all processes' values, sent from each process to each other. (An all_reduce uses a ring,
    which leaves out half of the links.)"""
    heard = torch.empty(world * len(words), dtype=words.dtype)
    dist.all_to_all_single(heard, words.repeat(world))
    return heard.view(world, -1).sum(0)


def steps(rank: int, world: int) -> bool:
    """Make steps until the round ends. Return True if all work is done."""
    global learned
    furthest = torch.tensor(learned)
    dist.all_reduce(furthest, op=dist.ReduceOp.MAX)
    learned = int(furthest)
    while True:
        team.tick()
        time.sleep(PACE)
        last = rank == 0 and (folder / "finish").exists()
        flags = exchanged(torch.tensor([1, int(last), int(team.wanted), int(stopped)]), world)
        learned += 1
        assert int(flags[0]) == world
        if rank == 0:
            with (folder / "progress.jsonl").open("a") as out:
                line = {"time": time.time(), "step": learned, "world": world, "process": os.getpid()}
                out.write(json.dumps(line) + "\n")
        if flags[1]:
            return True
        if os.environ.get("HANGS") and (folder / "hang").exists():
            (folder / "hang").unlink()
            team.cut()
            time.sleep(3600)
        if flags[2] or flags[3]:
            raise RoundEnded("somebody comes or goes")


signal.signal(signal.SIGTERM, stop)
while True:
    try:
        place = team.meet(timedelta(seconds=120))
        if steps(place.rank, place.world_size):
            os._exit(0)
    except RunOver:
        os._exit(75)
    except Exception as error:
        if not team.lost_peer(error):
            raise
    if stopped:
        os._exit(143)
    team.part()
