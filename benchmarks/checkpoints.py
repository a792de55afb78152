"""How long an asynchronous checkpoint holds up the training, as a share of the time of a plain save.

    python3 trainyard.py bench checkpoints [--quick] [--mib 300] [--saves 9] [--folder DIR] [--json]

held      the call of `save`, plus the time for which the next optimizer step waits for the copy
plain     the same state written while the training waits: from the call of `save` until the checkpoint is complete
slower    how much longer a step takes while the thread writes, as a share of a usual step

One process trains layers of 1,024 x 1,024 with AdamW, and makes saves of the two kinds in turn. The first save of each
kind is left out, because its memory is new.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks._options import options

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "trainers"))

import dist  # noqa: E402 (as on a node, where trainers/ is the working directory)
from checkpoint import Checkpoints  # noqa: E402

WIDTH = 1024
LAYER_MIB = 3 * WIDTH * WIDTH * 4 / 2**20  # parameters, and two numbers of AdamW for each
STEPS = 12  # to measure a usual step


class Learner:
    def __init__(self, layers: int) -> None:
        self.net = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers)))
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.inputs = torch.rand(32, WIDTH)
        self._before = self.waited = 0.0
        self.optimizer.register_step_pre_hook(self._note)

    def _note(self, *_: Any) -> None:
        self._before = time.perf_counter()

    def listen(self) -> None:
        """From the next step on, store in `waited` the seconds that the hooks before this one took in the last
        step."""

        def note(*_: Any) -> None:
            self.waited = time.perf_counter() - self._before

        self.optimizer.register_step_pre_hook(note)

    @property
    def state(self) -> dict[str, Any]:
        return {"model": self.net, "optimizer": self.optimizer}

    def step(self) -> float:
        """Make one step, and return its seconds."""
        began = time.perf_counter()
        self.net(self.inputs).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return time.perf_counter() - began


def measure(folder: Path, place: dist.Place, mib: int, saves: int) -> dict[str, Any]:
    learner, checkpoints = Learner(max(1, round(mib / LAYER_MIB))), Checkpoints(folder, place)
    steps = [learner.step() for _ in range(STEPS)][2:]
    usual = statistics.median(steps)
    held, plain, slower = [], [], []
    for number in range(2 * (saves + 1)):
        began = time.perf_counter()
        checkpoints.save(learner.state, {"epoch": 1, "samples": 0, "step": number + 1})
        if number % 2:
            checkpoints.finish()
            plain.append(time.perf_counter() - began)
            continue
        called = time.perf_counter() - began
        if not number:
            learner.listen()  # after the hook of the first save
        learner.step()
        held.append(called + learner.waited)
        meanwhile = []
        while checkpoints.writing:
            meanwhile.append(learner.step())
        if meanwhile:
            slower.append(sum(meanwhile) / len(meanwhile) / usual - 1)
        checkpoints.finish()
    shares = sorted(h / statistics.median(plain[1:]) for h in held[1:])
    return {
        "MiB": mib,
        "saves": saves,
        "step": usual,
        "plain": statistics.median(plain[1:]),
        "held": statistics.median(held[1:]),
        "share": statistics.median(shares),
        "least": shares[0],
        "most": shares[-1],
        "slower": statistics.median(slower) if slower else 0.0,
    }


def main(argv: list[str]) -> int:
    parser = options(__doc__, "30 MiB, and 3 saves of each kind")
    parser.add_argument("--mib", type=int, default=300, help="size of the state (default 300)")
    parser.add_argument("--saves", type=int, default=9, help="saves of each kind (default 9)")
    parser.add_argument("--folder", type=Path, help="where to (default: a temporary folder)")
    args = parser.parse_args(argv)
    if args.quick:
        args.mib, args.saves = 30, 3
    place, found = dist.Place(0, 1, "env://", "gloo"), dict[str, Any]()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:

        def train(_device: torch.device, _stop: dist.StopRequest) -> str:
            found.update(measure(Path(folder), place, args.mib, args.saves))
            return "measured"

        code = dist.run(train, place)
    shown = "   ".join(f"{name} {value:.3g}" for name, value in found.items())
    print(json.dumps(found) if args.json else shown)
    return code


if __name__ == "__main__":
    dist.leave(main(sys.argv[1:]))
