"""Train a small convolutional network on MNIST, or on any digits in MNIST's four IDX files.

One process:
    $ python mnist/train.py --data DIR --epochs 2

Two processes on this machine:
    $ torchrun --nproc-per-node 2 mnist/train.py --data DIR --epochs 2

Two machines by hand; 10.0.0.4 is the address of rank 0:
    $ python mnist/train.py --data DIR --world-size 2 --rank 0 --dist-url tcp://10.0.0.4:23456
    $ python mnist/train.py --data DIR --world-size 2 --rank 1 --dist-url tcp://10.0.0.4:23456

Two nodes of Azure ML, which sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:
    $ az ml job create --file mnist/job.yaml

All of them run the same code. The batch size is the total over all processes, every process draws the same order from
the seed and takes its share of each batch, and the gradient is the mean over the whole batch. So the number of
processes changes only the speed.

With --checkpoint-dir a stopped or killed training continues from its newest checkpoint, with any number of processes;
no image of an epoch is left out or seen twice.

Exit codes: 0 done, 1 failed, 2 bad arguments or bad data, 130 Ctrl-C, 143 stopped by SIGTERM. The last line of each
process states the reason.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

# The snapshot that goes to the nodes is the folder above; `python mnist/train.py` puts only mnist/ on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import checkpoint
import dist
import files
import training
import warm_start
import weights
from checkpoint import OwnLength, Position
from labelled import Batch, Images
from metrics import Mean
from mnist import idx
from parameters import positive


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """The command line; `arguments` gives each setting's meaning and default."""

    test_batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    workers: int


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the four IDX files (.gz or not), or an archive of them")
    add("--model-dir", type=Path, help="folder for model.safetensors and model.json (default: the model is not saved)")
    add("--test-batch-size", type=positive, default=1000, help="test images at once, per process (default: 1000)")
    add("-j", "--workers", type=int, default=0, help="processes that gather batches; 0 is fastest here (default: 0)")
    training.add_arguments(parser, Path(__file__).with_name("parameters.json"))
    return parser


class Net(nn.Sequential):
    """A small convolutional network: normalized images (N, 1, 28, 28) to logits (N, 10); 105,866 weights.

    No batch normalisation and no dropout: both would make the result depend on how a batch is split over processes.
    """

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1),  # (N, 16, 28, 28)
            nn.MaxPool2d(2),  # before the ReLU, which then has a quarter of the work and the same result
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),  # (N, 32, 14, 14)
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),  # (N, 32 * 7 * 7)
            nn.Linear(32 * 7 * 7, 64),
            nn.ReLU(),
            nn.Linear(64, idx.CLASSES),
        )
        # He et al. 2015, arXiv:1502.01852. PyTorch's default starts smaller and costs about an epoch on small data.
        for values in self.parameters():
            if values.ndim > 1:
                nn.init.kaiming_normal_(values, nonlinearity="relu")
            else:
                nn.init.zeros_(values)  # a bias


def normalise(pixels: Tensor, mean: float, std: float) -> Tensor:
    """Convert uint8 (N, 1, 28, 28) to float32 with mean 0 and deviation 1, given the mean and deviation of pixels
    in 0..1."""
    return (pixels.float() - mean) / std


def statistics(pixels: Tensor) -> tuple[float, float]:
    """Return the exact mean and standard deviation of uint8 pixels, without a float copy of all pixels."""
    counts = torch.bincount(pixels.flatten(), minlength=256).double()
    values = torch.arange(256, dtype=torch.double)
    mean = (counts * values).sum() / counts.sum()
    variance = (counts * (values - mean) ** 2).sum() / counts.sum()
    return mean.item(), max(variance.sqrt().item(), 1e-3)  # one plain colour has no deviation to divide by


def scale_of(folder: Path) -> tuple[float, float]:
    """Return the mean and deviation that the model in this folder was trained with."""
    told = warm_start.facts(folder)["normalisation"]
    return told["mean"], told["std"]


@dataclass(kw_only=True)
class Training(training.Training):
    """The state of one training. A step calls `model`, which wraps `net` in DDP."""

    settings: Settings
    net: nn.Module
    model: nn.Module
    schedule: torch.optim.lr_scheduler.LRScheduler
    scale: tuple[float, float]
    epoch_steps: int


def batches(t: Training, images: Images) -> Iterator[Batch]:
    """Yield the rest of an epoch's batches, in this epoch's own order. Each batch is shifted as a whole by up to
    one pixel in each direction."""
    seed, epoch, size = t.settings.seed, t.position.epoch, t.settings.batch_size
    order = torch.randperm(len(images), generator=checkpoint.dice(seed, epoch))
    starts = range(t.position.samples, len(images), size)
    wholes = [order[start : start + size] for start in starts]
    shares = [whole[t.place.rank :: t.place.world_size] for whole in wholes]
    # batch_size=None: one index tensor fetches one batch, so there is no Python work per image.
    loader: DataLoader[Any] = DataLoader(images, None, sampler=shares, num_workers=t.settings.workers)  # type: ignore[arg-type]
    asked = time.perf_counter()
    for start, whole, (pixels, labels) in zip(starts, wholes, loader, strict=True):
        # Digits have an empty border, so only background rolls out on one side and in on the other.
        shift = torch.randint(-1, 2, (2,), generator=checkpoint.dice(seed, epoch, start)).tolist()
        pixels = t.settings.speed.images(normalise(pixels.to(t.device).roll(shift, dims=(2, 3)), *t.scale))
        labels = labels.to(t.device)
        yield Batch(pixels, labels, len(whole), time.perf_counter() - asked)
        asked = time.perf_counter()


def train_epoch(t: Training, images: Images) -> None:
    """The training loop. Log lines and metrics are sums over all processes; `value (mean of this epoch so far)`."""
    times, waits, losses, firsts, fives = (Mean() for _ in range(5))
    sums, waited, since, steps_since = torch.zeros(4, device=t.device), 0.0, time.perf_counter(), 0
    for batch in batches(t, images):
        t.stop.check(t.position.step)

        with t.settings.speed.autocast(t.device):
            logits = t.model(batch.pixels)
        logits = logits.float()
        loss = F.cross_entropy(logits, batch.labels, reduction="sum")
        # DDP takes the mean of the processes' gradients. With this factor, the result is the mean over the whole batch,
        # even if the shares differ in size.
        (loss * t.place.world_size / batch.whole).backward()  # type: ignore[no-untyped-call]
        t.optimizer.step()
        t.optimizer.zero_grad()
        t.schedule.step()
        t.position.step += 1
        t.position.samples += batch.whole

        number = t.position.step - (t.position.epoch - 1) * t.epoch_steps
        sums += tally(logits.detach(), batch.labels, loss.detach())
        waited += batch.waited
        steps_since += 1
        if number % t.settings.log_interval == 0 or number == t.epoch_steps:
            count, loss_sum, first, five = dist.all_sum(sums).tolist()
            seconds = time.perf_counter() - since
            times.add(seconds / steps_since, steps_since)
            waits.add(waited / steps_since, steps_since)
            losses.add(loss_sum / count, count)
            firsts.add(100 * first / count, count)
            fives.add(100 * five / count, count)
            rate = count / seconds
            t.row(seconds, waited, train_loss=losses.value, train_accuracy=first / count, images_per_second=rate)
            t.say(
                f"epoch {t.position.epoch}/{t.settings.epochs} step {number}/{t.epoch_steps}  Time {times:.4f}  "
                f"Data {waits:.4f}  Loss {losses:.4f}  Prec@1 {firsts:.2f}  Prec@5 {fives:.2f}"
            )
            sums, waited, since, steps_since = torch.zeros(4, device=t.device), 0.0, time.perf_counter(), 0
        if (
            t.checkpoints.due(t.position.step, t.stop) and number < t.epoch_steps
        ):  # after the last step, the test comes first
            t.save()


def evaluate(t: Training, images: Images) -> tuple[float, float, float]:
    """Return mean loss, Prec@1 and Prec@5 (shares) over all images. Each image is counted once, whatever the world
    size."""
    sums = torch.zeros(4, device=t.device)
    mine = torch.arange(len(images))[t.place.rank :: t.place.world_size]
    size = t.settings.test_batch_size
    with torch.inference_mode(), t.settings.speed.autocast(t.device):
        for start in range(0, len(mine), size):
            pixels, labels = (part.to(t.device) for part in images[mine[start : start + size]])
            # Not through DDP: processes may have different numbers of batches here.
            logits = t.net(t.settings.speed.images(normalise(pixels, *t.scale))).float()
            sums += tally(logits, labels, F.cross_entropy(logits, labels, reduction="sum"))
    count, loss, first, five = dist.all_sum(sums).tolist()
    assert count == len(images), f"{count:.0f} of {len(images)} test images were counted"
    return loss / count, first / count, five / count


def tally(logits: Tensor, labels: Tensor, loss: Tensor) -> Tensor:
    """Return [images, sum of `loss`, correct first guesses, correct within five guesses] of one batch, shape (4,)."""
    hits = logits.topk(5).indices == labels[:, None]  # (N, 5)
    return torch.stack([torch.tensor(len(labels), device=logits.device), loss, hits[:, 0].sum(), hits.sum()])


def save(net: nn.Module, folder: Path, facts: dict[str, object]) -> None:
    """Write model.safetensors and model.json (building and feeding the network). Each file is written whole or not at
    all.
    """
    weights.write(folder, net.state_dict())
    weights.describe(folder, {"architecture": "mnist.train.Net", **facts})


def fit(t: Training, train_set: Images, test_set: Images) -> float:
    """Train the remaining epochs; test and save after each epoch. Returns the test accuracy after the last epoch."""
    first = None if t.settings.epochs else measure(t, test_set)
    while t.position.epoch <= t.settings.epochs:
        train_epoch(t, train_set)
        first = measure(t, test_set)
        t.position.epoch, t.position.samples = t.position.epoch + 1, 0
        t.save()
    return evaluate(t, test_set)[1] if first is None else first  # None: the checkpoint was made at the end


def measure(t: Training, test_set: Images) -> float:
    """Test the model, log the result, and return the accuracy."""
    (loss, first, five), epoch = evaluate(t, test_set), min(t.position.epoch, t.settings.epochs)
    t.metrics.write(t.position.step, epoch, test_loss=loss, test_accuracy=first)
    t.say(f"epoch {epoch}/{t.settings.epochs} test  Loss {loss:.4f}  Prec@1 {first:.2%}  Prec@5 {five:.2%}")
    return first


def train(settings: Settings, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> str:
    """Train, test after every epoch, and save. Returns the text of the last line."""
    began = time.perf_counter()
    with files.opened(settings.data) as folder:
        train_set, test_set = idx.read(folder)

    torch.manual_seed(settings.seed)
    net = settings.speed.prepare(Net(), device)
    tested = warm_start.only_tests(settings.epochs, settings.from_model)
    note = warm_start.put(net, settings.from_model, whole=bool(tested)) if settings.from_model else ""
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    nesterov = settings.momentum > 0
    optimizer = torch.optim.SGD(
        model.parameters(), settings.lr, settings.momentum, weight_decay=settings.weight_decay, nesterov=nesterov
    )
    epoch_steps = math.ceil(len(train_set) / settings.batch_size)
    schedule = training.one_cycle(optimizer, settings.lr, settings.epochs * epoch_steps)
    scale = scale_of(tested) if tested else statistics(train_set.pixels)

    fixed = settings.named("batch_size", "epochs", "lr", "momentum", "weight_decay", "seed")
    with settings.metrics(place) as rows:
        checkpoints = settings.checkpoints(place, **fixed, **{"training images": len(train_set)})
        state = {"model": model, "optimizer": optimizer, "schedule": OwnLength(schedule), "metrics": rows}
        t = Training(
            settings=settings,
            place=place,
            stop=stop,
            device=device,
            net=net,
            model=settings.speed.compiled(model),
            optimizer=optimizer,
            schedule=schedule,
            scale=scale,
            epoch_steps=epoch_steps,
            metrics=rows,
            checkpoints=checkpoints,
            state=state,
            position=Position.of(checkpoints.restore(state)),
        )
        counts = f"training images {len(train_set):,}, test images {len(test_set):,}"
        t.say(f"{t.processes()}, {counts}, {settings.speed}")
        if note:
            t.say(note)
        with t.kept_when_stopped():
            first = fit(t, train_set, test_set)
    if settings.model_dir and place.rank == 0:
        save(net, settings.model_dir, facts(settings, scale, first, t.position.step))
    return f"test accuracy {first:.2%} after {settings.epochs} epochs, {time.perf_counter() - began:.1f} s"


def facts(settings: Settings, scale: tuple[float, float], accuracy: float, step: int) -> dict[str, object]:
    """Return the remaining content of model.json: how to feed the network, and the origin of the model."""
    return {
        "classes": [str(digit) for digit in range(idx.CLASSES)],
        "input": {"shape": [1, idx.SIDE, idx.SIDE], "pixels": "0 to 255, 0 is background"},
        "normalisation": {"mean": scale[0], "std": scale[1]},
        "metrics": {"test_accuracy": accuracy},
        "step": step,
        "training": settings.plain(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    settings, place = training.read(arguments(), Settings, argv)
    return dist.run(lambda device, stop: train(settings, place, device, stop), place)


if __name__ == "__main__":
    dist.leave(main())
