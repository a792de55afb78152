"""A small training for any launcher, with this repository's checkpoints: the same code in our teams and under
torchrun.

    python -m elastic.launch --in-place elastic_trainer.py FILE
    torchrun --rdzv-backend c10d --rdzv-endpoint HOST:PORT elastic_trainer.py FILE

Each process logs its steps in FILE: the begin and the end of each step, its number, the number of processes, the
process. Checkpoints are beside FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import checkpoint
import dist
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PACE = 0.1  # seconds of a step in addition to the model's time
EVERY = 50  # steps between two checkpoints


class Learner:
    """The state that a process keeps from one team to the next."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.at: checkpoint.Position | None = None

    def train(self, file: Path, place: dist.Place, stop: dist.StopRequest) -> str:
        self.optimizer.zero_grad()
        model = DistributedDataParallel(self.net)
        checkpoints = checkpoint.Checkpoints(file.parent / "checkpoints", place, EVERY)
        state: dict[str, Any] = {"model": model, "optimizer": self.optimizer}
        self.at = at = checkpoint.Position.of(checkpoints.restore(state, vars(self.at) if self.at else None))
        began = time.time()
        while True:
            stop.check(at.step)
            time.sleep(PACE)
            self.optimizer.zero_grad()
            model(torch.rand(16, 256)).square().mean().backward()
            self.optimizer.step()
            at.step += 1
            line = {"began": began, "time": time.time(), "step": at.step, "world": place.world_size}
            began = line["time"]
            with file.open("a") as out:
                out.write(json.dumps({**line, "process": os.getpid()}) + "\n")
            if checkpoints.due(at.step, stop):
                checkpoints.save(state, vars(at))
                began = time.time()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    dist.add_arguments(parser)
    args = parser.parse_args()
    learner = Learner()
    place = dist.place(args, os.environ)
    return dist.run_in_rounds(lambda place, _, stop: learner.train(args.file, place, stop), place)


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    sys.stdout.flush()
    dist.leave(main())
