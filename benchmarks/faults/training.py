"""A training of a few seconds by gloo, with one fault: python training.py --fault NAME --marks FOLDER [--steps N].

The processes average their gradients as DistributedDataParallel does. The fault happens on one rank, after a few steps
where a step is needed for it, and the rank writes the time into the marks' folder just before it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import signal
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE, VICTIM, AT_STEP = 10, 64, 1, 5
TIMEOUT = timedelta(seconds=25)  # of a collective


class Digits(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Random vectors with labels. `fault` is raised by item 40 or kills the worker that reads it."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __len__(self) -> int:
        return 4_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if index % 100 == 40 and self.fault == "corrupt image":
            _open_damaged_image()
        if index % 100 == 40 and self.fault == "dead worker":
            os.kill(os.getpid(), signal.SIGKILL)
        wrong = index % 100 == 40 and self.fault == "wrong label"
        return torch.rand(SIZE), torch.tensor(CLASSES + 2 if wrong else index % CLASSES)


def _open_damaged_image() -> None:
    from io import BytesIO

    from PIL import Image

    content = BytesIO()
    Image.effect_noise((64, 64), 40).save(content, "JPEG")
    Image.open(BytesIO(content.getvalue()[:900])).load()


def _loaded(state: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, Path(folder, "model.pt"))
        nn.Linear(SIZE, CLASSES).load_state_dict(torch.load(Path(folder, "model.pt")))


def _damaged_checkpoint() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.pt").write_bytes(b"<html>not found</html>" * 90)
        torch.load(Path(folder, "model.pt"))


def _too_much_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    torch.ones(16 << 30, dtype=torch.uint8)


def _full_disk() -> None:
    with Path("/dev/full").open("wb", buffering=0) as out:
        out.write(bytes(1_000))


def _no_permission() -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0o600)
        os.setuid(65534)
        Path(file.name).read_bytes()


def _guarded(loss: float) -> None:
    print(f"Loss is {loss}, stopping training", flush=True)
    sys.exit(1)


def _own_mistake() -> None:
    print({"image": 1}["label"])


FAULTS: dict[str, Callable[[], object]] = {
    "out of memory": _too_much_memory,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segmentation fault": lambda: ctypes.string_at(0),
    "bus error": lambda: os.kill(os.getpid(), signal.SIGBUS),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "slow rank": lambda: time.sleep(TIMEOUT.total_seconds() + 60),
    "full disk": _full_disk,
    "nan": lambda: _guarded(float("nan")),
    "missing module": lambda: __import__("einops_of_nobody"),
    "missing data": lambda: Path("/nowhere/train/images.npy").read_bytes(),
    "no permission": _no_permission,
    "shape mismatch": lambda: nn.Linear(SIZE, CLASSES)(torch.rand(3, SIZE // 2)),
    "checkpoint of another model": lambda: _loaded(nn.Linear(SIZE, CLASSES + 1).state_dict()),
    "damaged checkpoint": _damaged_checkpoint,
    "no network": lambda: urllib.request.urlopen("http://weights.invalid/model.pt", timeout=5),
    "no gpu": lambda: torch.zeros(1, device="cuda"),
    "own mistake": _own_mistake,
}


def main() -> None:
    """Train for the steps, with the fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="none")
    parser.add_argument("--marks", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with _blocked_port() if options.fault == "blocked port" and rank == 0 else nullcontext():
        if options.fault == "blocked port":
            _mark(options)
        dist.init_process_group("gloo", timeout=TIMEOUT)
        _train(options, rank, world)
        dist.destroy_process_group()


def _blocked_port() -> socket.socket:
    """Another listener at the address where the processes meet."""
    return socket.create_server(("", int(os.environ["MASTER_PORT"])))


def _train(options: argparse.Namespace, rank: int, world: int) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, victim = nn.Linear(SIZE, CLASSES), rank == VICTIM
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    workers = 1 if victim and options.fault == "dead worker" else 0
    loader = DataLoader(Digits(options.fault if victim else ""), batch_size=16, num_workers=workers)
    if victim and options.fault in ("corrupt image", "dead worker", "wrong label"):
        _mark(options)
    for step, (images, labels) in enumerate(loader, 1):
        if victim and step == AT_STEP and options.fault in FAULTS:
            _mark(options)
            FAULTS[options.fault]()
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for gradient in [each.grad for each in model.parameters() if each.grad is not None]:
            dist.all_reduce(gradient)
            gradient /= world
        optimizer.step()
        print(f"epoch 1 step {step}/{options.steps} loss {loss.item():.4f}", flush=True)
        if step == options.steps:
            return


def _mark(options: argparse.Namespace) -> None:
    Path(options.marks, options.fault.replace(" ", "-")).write_text(str(time.time()))


if __name__ == "__main__":
    main()
