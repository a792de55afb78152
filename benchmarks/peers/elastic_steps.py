"""One small training in two versions for kill tests: in our teams, and with torchft (after torchft's train_ddp.py).

    python -m elastic.launch --in-place elastic_steps.py FILE
    LIGHTHOUSE=http://HOST:PORT python elastic_steps.py FILE --torchft NUMBER

Each process logs its steps in FILE: the time, the step, the number of processes, its process id. FILE.end ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

PACE = 0.05  # seconds of a step in addition to the model's time


def note(file: Path, step: int, world: int) -> None:
    with file.open("a") as out:
        out.write(json.dumps({"time": time.time(), "step": step, "world": world, "process": os.getpid()}) + "\n")


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))


def with_torchft(file: Path, number: int) -> None:
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

    net = model()
    inner = torch.optim.AdamW(net.parameters())

    def load(state: dict[str, Any]) -> None:
        net.load_state_dict(state["net"])
        inner.load_state_dict(state["optimizer"])

    address = os.environ.get("HOST_ADDRESS", "127.0.0.1")
    store = dist.TCPStore(address, 0, 1, True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
        min_replica_size=1,
        load_state_dict=load,
        state_dict=lambda: {"net": net.state_dict(), "optimizer": inner.state_dict()},
        replica_id=f"replica_{number}",
        lighthouse_addr=os.environ["LIGHTHOUSE"],
        store_addr=address,
        store_port=store.port,
        rank=0,
        world_size=1,
        timeout=timedelta(seconds=10),
        hostname=address,
    )
    wrapped, optimizer = DistributedDataParallel(manager, net), Optimizer(manager, inner)
    while not file.with_suffix(".end").exists():
        time.sleep(PACE)
        optimizer.zero_grad()
        wrapped(torch.rand(16, 256)).square().mean().backward()
        before = manager.current_step()
        optimizer.step()
        if manager.current_step() > before:
            note(file, manager.current_step(), manager.num_participants())
    os._exit(0)


def in_place(file: Path) -> None:
    from elastic.worker import RoundEnded, RunOver, Team

    team = Team.of(os.environ)
    assert team
    net = model()
    inner = torch.optim.AdamW(net.parameters())
    step, leaving = 0, []
    wrapped: Any = None
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(1))
    while True:
        try:
            place = team.meet(timedelta(seconds=60))
            step = shared(net, inner, step)
            wrapped = nn.parallel.DistributedDataParallel(net)
            while True:
                team.tick()
                flags = torch.tensor([int(file.with_suffix(".end").exists()), int(team.wanted), len(leaving)])
                dist.all_reduce(flags, op=dist.ReduceOp.MAX)
                if flags[0]:
                    os._exit(0)
                if flags[1] or flags[2]:
                    raise RoundEnded
                time.sleep(PACE)
                inner.zero_grad()
                wrapped(torch.rand(16, 256)).square().mean().backward()
                inner.step()
                step += 1
                note(file, step, place.world_size)
        except RunOver:
            os._exit(75)
        except Exception as error:
            if not team.lost_peer(error):
                raise
        if leaving:
            os._exit(143)
        wrapped = None
        team.part()


def shared(net: nn.Module, inner: torch.optim.Optimizer, step: int) -> int:
    """Return the state of the most advanced process, from its memory."""
    steps: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(steps, step)
    box: list[Any] = [None]
    if len(set(steps)) > 1:
        source = steps.index(max(steps))
        if source == dist.get_rank():
            box = [(net.state_dict(), inner.state_dict())]
        dist.broadcast_object_list(box, source)
        if step < max(steps):
            net.load_state_dict(box[0][0])
            inner.load_state_dict(box[0][1])
    return max(steps)


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    run: Callable[..., None] = with_torchft if "--torchft" in sys.argv else in_place
    run(Path(sys.argv[1]), *map(int, sys.argv[3:4]))
