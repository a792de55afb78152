"""Train ResNet-18 on CIFAR-10, on nodes that join and leave.

One process:
    $ python cifar_elastic/train.py --data DIR --checkpoint-dir DIR

Two processes on this machine, both restarted when one dies:
    $ torchrun --nproc-per-node 2 --max-restarts 3 cifar_elastic/train.py --data DIR --checkpoint-dir DIR

Nodes of Azure ML, each a separate job, that meet through a table; Trainyard sets the PET_* variables:
    $ python -m elastic.launch --in-place cifar_elastic/train.py --data DIR --checkpoint-dir DIR

With --in-place a process outlives its teams. The death of a node loses nothing: the others continue with fewer
processes, from the last step of the most advanced process, and a joining process gets the state from their memory.
Without --in-place (torchrun) all processes restart from the newest checkpoint. The batch size is the total over all
processes, the learning rate follows the completed steps, and the rest of an epoch is divided anew. So, except for
rounding, the result equals that of one undisturbed process.

Exit codes: 0 done, 1 failed, 2 bad arguments or bad data, 130 Ctrl-C, 143 stopped by SIGTERM. The last line of each
process states the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

# The snapshot that goes to the nodes is the folder above; `python cifar_elastic/train.py` puts only this on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import checkpoint
import dist
import files
import training
import warm_start
from checkpoint import OwnLength, Position
from cifar_elastic import batches, results
from cifar_elastic.pixels import PAD, Normalised, shifted
from cifar_elastic.resnet import ResNet18
from labelled import Batch, Images
from metrics import Metrics
from parameters import positive


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """The command line; `arguments` gives each setting's meaning and default."""

    trace_dir: Path | None
    test_batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    width: int


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="cifar-10-python.tar.gz, or a folder with it or with what is in it")
    add(
        "--model-dir",
        type=Path,
        help="folder for model.safetensors, model.pt2 and model.json (default: the model is not saved)",
    )
    add("--test-batch-size", type=positive, default=500, help="test images at once, per process (default: 500)")
    add("--trace-dir", type=Path, help="record which images each process uses in each step (default: no)")
    own = Path(__file__).with_name("parameters.json")
    training.add_arguments(parser, own, skip=("checkpoint_every", "dist_timeout"))
    return parser


@dataclass(kw_only=True)
class Training(training.Training):
    """The state of one training. A step calls `model`, which wraps `net` in DDP."""

    settings: Settings
    net: nn.Module
    model: nn.Module
    schedule: torch.optim.lr_scheduler.LRScheduler
    normalised: Normalised
    epoch_steps: int


def shares(t: Training, count: int) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    """Yield the remaining steps of an epoch: this process's images, their shifts and mirrorings, and the size of the
    batch.

    Every process draws the random numbers of the whole batch, from seed, epoch and position alone, and then takes its
    share.
    """
    seed, epoch, size = t.settings.seed, t.position.epoch, t.settings.batch_size
    order = torch.randperm(count, generator=checkpoint.dice(seed, epoch))
    mine = slice(t.place.rank, None, t.place.world_size)
    for start in range(t.position.samples, count, size):
        whole = order[start : start + size]
        throws = checkpoint.dice(seed, epoch, start)
        by = torch.randint(-PAD, PAD + 1, (len(whole), 2), generator=throws)
        mirrored = torch.rand(len(whole), generator=throws) < 0.5
        yield whole[mine], by[mine], mirrored[mine], len(whole)


def load(t: Training, images: Images) -> Iterator[Batch]:
    """Yield the remaining batches of an epoch. The images are in the device's memory, so one operation makes a
    batch.
    """
    asked = time.perf_counter()
    for indices, *drawn, whole in shares(t, len(images)):
        trace(t, indices)
        indices, by, mirrored = (part.to(t.device) for part in (indices, *drawn))
        pixels = shifted(images.pixels[indices], by, mirrored)
        ready = t.settings.speed.images(t.normalised(pixels))
        yield Batch(ready, images.labels[indices], whole, time.perf_counter() - asked)
        asked = time.perf_counter()


def trace(t: Training, indices: Tensor) -> None:
    """Append this process's images of the next step. `restart` is the step of the checkpoint at the start."""
    if t.settings.trace_dir:
        t.settings.trace_dir.mkdir(parents=True, exist_ok=True)
        row = {
            "step": t.position.step + 1,
            "epoch": t.position.epoch,
            "images": indices.tolist(),
            "restart": t.checkpoints.start,
        }
        with (t.settings.trace_dir / f"rank-{t.place.rank}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def train_epoch(t: Training, images: Images) -> None:
    """The training loop. Log lines and metrics cover all processes, since the last line."""
    sums, waited, since = torch.zeros(3, device=t.device), 0.0, time.perf_counter()
    for batch in load(t, images):
        t.stop.check(t.position.step)

        with t.settings.speed.autocast(t.device):
            logits = t.model(batch.pixels)
        loss = F.cross_entropy(logits.float(), batch.labels, reduction="sum")
        # DDP takes the mean of the processes' gradients. With this factor, the result is the mean over the whole batch,
        # even if the shares differ in size.
        (loss * t.place.world_size / batch.whole).backward()  # type: ignore[no-untyped-call]
        number = t.position.step + 1 - (t.position.epoch - 1) * t.epoch_steps
        sums += tally(logits.detach(), batch.labels, loss.detach())
        waited += batch.waited
        if number % t.settings.log_interval == 0 or number == t.epoch_steps:
            # Before the step is made: if a peer is lost in this exchange, the others repeat the step and its row.
            report(t, number, dist.all_sum(sums), waited, time.perf_counter() - since)
            sums, waited, since = torch.zeros(3, device=t.device), 0.0, time.perf_counter()

        t.optimizer.step()
        t.optimizer.zero_grad()
        t.schedule.step()
        t.position.step += 1
        t.position.samples += batch.whole
        if (
            t.checkpoints.due(t.position.step, t.stop) and number < t.epoch_steps
        ):  # after the last step, the test comes first
            t.save()


def report(t: Training, number: int, sums: Tensor, waited: float, seconds: float) -> None:
    """Write the metrics row of the next step, the epoch's `number`-th, and a line to the log.

    `sums`: images, loss and correct guesses of all processes since the last row; `waited`: seconds of this process.
    """
    count, loss_sum, hits = sums.tolist()
    values = {"train_loss": loss_sum / count, "train_accuracy": hits / count, "images_per_second": count / seconds}
    t.row(seconds, waited, t.position.step + 1, **values)
    t.say(
        f"epoch {t.position.epoch}/{t.settings.epochs} step {number}/{t.epoch_steps}  Loss {loss_sum / count:.4f}  "
        f"Prec@1 {hits / count:.2%}  {count / seconds:,.0f} images/s"
    )


def evaluate(t: Training, images: Images) -> tuple[float, float]:
    """Return mean loss and accuracy over all images. Each image is counted once, whatever the world size."""
    sums = torch.zeros(3, device=t.device)
    size = t.settings.test_batch_size * t.place.world_size
    with torch.inference_mode():
        for start in range(0, len(images), size):  # as many rounds in every process, so all can stop together
            t.stop.check(t.position.step)
            mine = slice(start + t.place.rank, start + size, t.place.world_size)
            with t.settings.speed.autocast(t.device):
                # Not through DDP and not compiled: in the last round, a process may have no images.
                logits = t.net(t.settings.speed.images(t.normalised(images.pixels[mine])))
            labels = images.labels[mine]
            sums += tally(logits, labels, F.cross_entropy(logits.float(), labels, reduction="sum"))
    count, loss, hits = dist.all_sum(sums).tolist()
    assert count == len(images), f"{count:.0f} of {len(images)} test images were counted"
    return loss / count, hits / count


def tally(logits: Tensor, labels: Tensor, loss: Tensor) -> Tensor:
    """Return [images, sum of `loss`, correct guesses] of one batch, shape (3,)."""
    return torch.stack([torch.tensor(len(labels), device=logits.device), loss, (logits.argmax(1) == labels).sum()])


def fit(t: Training, train_set: Images, test_set: Images) -> float:
    """Train the remaining epochs; test and save after each. Returns the test accuracy after the last epoch."""
    accuracy = None if t.settings.epochs else measure(t, test_set)
    while t.position.epoch <= t.settings.epochs:
        train_epoch(t, train_set)
        accuracy = measure(t, test_set)
        t.position.epoch, t.position.samples = t.position.epoch + 1, 0
        t.save()
    return evaluate(t, test_set)[1] if accuracy is None else accuracy  # None: the checkpoint was made at the end


def measure(t: Training, test_set: Images) -> float:
    """Test the model, log the result, and return the accuracy."""
    (loss, accuracy), epoch = evaluate(t, test_set), min(t.position.epoch, t.settings.epochs)
    t.metrics.write(t.position.step, epoch, test_loss=loss, test_accuracy=accuracy)
    t.say(f"epoch {epoch}/{t.settings.epochs} test  Loss {loss:.4f}  Prec@1 {accuracy:.2%}")
    return accuracy


@dataclass
class Kept:
    """The part of a process that survives from one team of a run to the next: the data, and the state of the
    training.
    """

    images: tuple[Images, Images, list[str]] | None = None
    normalised: Normalised | None = None
    learned: tuple[nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler] | None = None
    at: Position | None = None  # the position of `learned`; None until it has caught up with the run
    rows: Metrics | None = None
    writes: bool = False  # whether `rows` go to a file
    began: float = field(default_factory=time.perf_counter)

    def metrics(self, settings: Settings, place: dist.Place) -> Metrics:
        """The metrics rows so far. If another process is the team's first, that process writes the rows."""
        before, writes = self.rows, place.rank == 0
        if before is None or self.writes != writes:
            self.writes = writes
            self.rows = settings.metrics(place)
            if before is not None:
                self.rows.load_state_dict(before.live_state_dict())
                before.__exit__(None, None, None)
        assert self.rows
        return self.rows


def learner(settings: Settings, device: torch.device, count: int) -> tuple[Any, Any, Any]:
    """Return network, optimizer and schedule for `count` training images, before the first step."""
    torch.manual_seed(settings.seed)
    net = settings.speed.prepare(ResNet18(10, settings.width), device)
    if settings.from_model:
        note = warm_start.put(
            net, settings.from_model, prefix="1.", whole=not settings.epochs
        )  # behind the normalisation
        dist.write_line(note, sys.stdout)
    optimizer = torch.optim.SGD(
        net.parameters(),
        settings.lr,
        settings.momentum,
        weight_decay=settings.weight_decay,
        nesterov=settings.momentum > 0,
    )
    return net, optimizer, training.one_cycle(optimizer, settings.lr, settings.epochs * steps_of(settings, count))


def steps_of(settings: Settings, count: int) -> int:
    """Return the number of steps of an epoch."""
    return math.ceil(count / settings.batch_size)


def prepared(settings: Settings, place: dist.Place, device: torch.device, count: int, kept: Kept) -> dict[str, Any]:
    """Return model, optimizer, schedule and checkpoints for `count` training images, in the current state of the
    run."""
    rows = kept.metrics(settings, place)
    kept.learned = kept.learned or learner(settings, device, count)
    net, optimizer, schedule = kept.learned
    optimizer.zero_grad()  # clears the gradients of a step that a lost peer interrupted
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    fixed = settings.named("batch_size", "epochs", "lr", "momentum", "weight_decay", "width", "seed")
    checkpoints = settings.checkpoints(place, **fixed, **{"training images": count})
    state = {"model": model, "optimizer": optimizer, "schedule": OwnLength(schedule), "metrics": rows}
    kept.at = Position.of(checkpoints.restore(state, vars(kept.at) if kept.at else None))
    parts = {"net": net, "optimizer": optimizer, "schedule": schedule, "checkpoints": checkpoints, "state": state}
    parts |= {"metrics": rows, "position": kept.at, "epoch_steps": steps_of(settings, count)}
    return {**parts, "model": settings.speed.compiled(model)}


def read(settings: Settings, device: torch.device) -> tuple[Images, Images, list[str]]:
    """Return training images, test images, and the names of the classes."""
    with files.opened(settings.data) as folder:
        *sets, classes = batches.read(folder)
    train_set, test_set = (Images(part.pixels.to(device), part.labels.to(device)) for part in sets)
    return train_set, test_set, classes


def of_model(folder: Path) -> Normalised:
    """Return the normalization of the model in this folder."""
    told = warm_start.weights(folder)
    return Normalised(told["0.mean"], told["0.std"])


def train(settings: Settings, kept: Kept, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> str:
    """Unpack the data, train, test after every epoch, and save. Returns the text of the last line."""
    kept.images = kept.images or read(settings, device)
    train_set, test_set, classes = kept.images
    tested = warm_start.only_tests(settings.epochs, settings.from_model, classes)
    kept.normalised = kept.normalised or (of_model(tested) if tested else Normalised.like(train_set.pixels)).to(device)
    parts = prepared(settings, place, device, len(train_set), kept)
    t = Training(settings=settings, place=place, stop=stop, device=device, normalised=kept.normalised, **parts)
    counts = f"training images {len(train_set):,}, test images {len(test_set):,}"
    t.say(f"{t.processes()}, {counts}, {settings.speed}")
    with t.kept_when_stopped():
        accuracy = fit(t, train_set, test_set)
    if settings.model_dir and place.rank == 0:
        results.save(t.net, t.normalised, settings.model_dir, facts(settings, classes, accuracy, t.position.step))
    return f"test accuracy {accuracy:.2%} after {settings.epochs} epochs, {time.perf_counter() - kept.began:.1f} s"


def facts(settings: Settings, classes: list[str], accuracy: float, step: int) -> dict[str, Any]:
    """Return the rest of model.json: the model's input, the accuracy, and the origin."""
    return {
        "architecture": f"cifar_elastic: pixels.Normalised, then resnet.ResNet18 of width {settings.width}",
        "classes": classes,
        "input": {"shape": ["N", 3, batches.SIDE, batches.SIDE], "type": "uint8", "channels": "RGB"},
        "output": {"shape": ["N", len(classes)], "type": "float32", "meaning": "logits"},
        "metrics": {"test_accuracy": accuracy},
        "step": step,
        "training": settings.plain(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    settings, place = training.read(arguments(), Settings, argv)
    kept = Kept()
    try:
        return dist.run_in_rounds(lambda place, device, stop: train(settings, kept, place, device, stop), place)
    finally:
        if kept.rows:
            kept.rows.__exit__(*sys.exc_info())


if __name__ == "__main__":
    dist.leave(main())
