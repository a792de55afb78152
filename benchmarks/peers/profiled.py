"""Where a step's time goes in one process, by torch.profiler: shares of ten steps, as one line of JSON.

    python -m benchmarks.peers.profiled MODULE ARGUMENT ...

MODULE is one of our trainers (mnist.train) or a peer (benchmarks.peers.mnist). The training is stopped after the
measurement. The profiler itself takes time, most of all in Python and in small operations.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

BEFORE, WARM, MEASURED = 5, 1, 10  # steps
# Prefixes of the topmost operations of a step. On a CPU, the backward pass runs in the same thread.
KINDS = {
    "enumerate(DataLoader)": "data",
    "autograd::": "backward",
    "Optimizer.": "optimiser",
    "gloo:": "exchange",
    "c10d::": "exchange",
    "ProfilerStep": "python",
}


def report(profiler: Any) -> None:
    """Print the shares, and end the process, because the rest of the training is not needed."""
    spent: Counter[str] = Counter(dict.fromkeys(KINDS.values(), 0.0))
    for event in profiler.events():
        kind = next((kind for start, kind in KINDS.items() if event.name.startswith(start)), "forward and loss")
        parent = event.cpu_parent.name if event.cpu_parent else ""
        if event.name.startswith("ProfilerStep"):
            spent["python"] += event.time_range.elapsed_us()
        elif parent.startswith("ProfilerStep"):
            spent[kind] += event.time_range.elapsed_us()
            spent["python"] -= event.time_range.elapsed_us()
    total = sum(spent.values())
    shares = {kind: round(value / total, 3) for kind, value in spent.items()}
    print(json.dumps({"ms_per_step": round(total / 1000 / MEASURED, 2), **shares}), flush=True)
    os._exit(0)


def main(argv: list[str]) -> None:
    plan = schedule(wait=BEFORE, warmup=WARM, active=MEASURED, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=report) as profiler:
        backward = torch.Tensor.backward

        def next_step(*args: Any, **options: Any) -> None:
            profiler.step()
            backward(*args, **options)  # type: ignore[no-untyped-call]  # torch has no types for it

        torch.Tensor.backward = next_step  # type: ignore[method-assign]  # once a step, outside of any other range
        code = importlib.import_module(argv[0]).main(argv[1:])
    sys.exit(code or f"{argv[0]} ended before {BEFORE + WARM + MEASURED} steps")


if __name__ == "__main__":
    main(sys.argv[1:])
