"""A minimal training for tests that stop, kill and resume it: each row of its metrics lists the samples of the
step."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "trainers"))

import checkpoint
import dist
import torch
from metrics import Metrics
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAMPLES, BATCH = 30, 4  # the last batch of an epoch is half empty


def train(args: argparse.Namespace, place: dist.Place, stop: dist.StopRequest) -> str:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, args.width), nn.Linear(args.width, 1))
    if args.fsdp2:
        from torch.distributed.fsdp import fully_shard

        model: Any = fully_shard(net)
    else:
        model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    with Metrics(args.checkpoint_dir, place.rank) as metrics:
        fixed = {"width": args.width}
        checkpoints = checkpoint.Checkpoints(args.checkpoint_dir, place, args.checkpoint_every, fixed=fixed)
        state = {"model": model, "optimizer": optimizer, "schedule": schedule, "metrics": metrics}
        at = checkpoint.Position.of(checkpoints.restore(state))
        try:
            while at.epoch <= args.epochs:
                order = torch.randperm(SAMPLES, generator=checkpoint.dice(1, at.epoch))
                while at.samples < SAMPLES:
                    stop.check(at.step)
                    whole = order[at.samples : at.samples + BATCH].tolist()
                    inputs = torch.tensor([[n % 2, n % 3, n % 5, 1.0] for n in whole])[place.rank :: place.world_size]
                    (model(inputs).sub(1).square().sum() * place.world_size / len(whole)).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    schedule.step()
                    at.samples += len(whole)
                    at.step += 1
                    seen = int("".join(f"{number:02d}" for number in [1, *whole]))
                    metrics.write(at.step, at.epoch, seen=seen, learning_rate=float(schedule.get_last_lr()[0]))
                    if at.step == args.kill_at and place.rank and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                        os.kill(os.getpid(), signal.SIGKILL)
                    if checkpoints.due(at.step, stop):
                        checkpoints.save(state, vars(at))
                at.epoch, at.samples = at.epoch + 1, 0
        except dist.Stopped:
            checkpoints.save(state, vars(at))
            checkpoints.finish()
            raise
        checkpoints.save(state, vars(at))
        checkpoints.finish()
    weights = [p.full_tensor() if args.fsdp2 else p for p in net.parameters()]  # type: ignore[attr-defined]
    return " ".join(f"{float(w.detach().double().sum()):.5f}" for w in weights)


def main() -> int:
    parser = argparse.ArgumentParser()
    dist.add_arguments(parser)
    checkpoint.add_arguments(parser)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--fsdp2", action="store_true")
    parser.add_argument("--kill-at", type=int)
    args = parser.parse_args()
    place = dist.place(args, os.environ)
    return dist.run(lambda _, stop: train(args, place, stop), place)


if __name__ == "__main__":
    dist.leave(main())
