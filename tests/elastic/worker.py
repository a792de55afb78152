"""The script that an agent of these tests starts: all ranks make steps together, with a checkpoint every EVERY
steps.

    worker.py FOLDER EVERY

Rank 0 notes in FOLDER/progress.jsonl each step with the time and the number of processes. The checkpoint is the
number of steps done. All end after the step at which rank 0 finds a file FOLDER/finish.
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

PACE = 0.05  # seconds of a step, for the work that isn't done here

ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG: end with the agent
if os.getppid() == 1:  # it was gone before
    sys.exit(1)
folder, every = Path(sys.argv[1]), int(sys.argv[2])
if os.environ["MASTER_ADDR"] == "127.0.0.1":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, world = dist.get_rank(), dist.get_world_size()
checkpoint, progress, finish = (folder / name for name in ("checkpoint", "progress.jsonl", "finish"))
step = torch.tensor(int(checkpoint.read_text()) if checkpoint.exists() else 0)
dist.broadcast(step, src=0)
last = False
while not last:
    time.sleep(PACE)
    counts = torch.tensor([1, rank == 0 and finish.exists()])
    dist.all_reduce(counts)
    step += 1
    last = bool(counts[1])
    assert int(counts[0]) == world
    if rank == 0:
        with progress.open("a") as out:
            out.write(json.dumps({"time": time.time(), "step": int(step), "world": world}) + "\n")
        if int(step) % every == 0:
            part = folder / f".checkpoint.{os.getpid()}"
            part.write_text(str(int(step)))
            part.replace(checkpoint)
dist.barrier()
os._exit(0)  # gloo's threads do not survive the interpreter's end
