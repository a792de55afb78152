"""Teach a network pretrained on ImageNet to distinguish your own classes of images, for example ants and bees.

One process:
    $ python transfer/train.py --input-dir DIR --output-dir OUT --epochs 25

Without network access to ImageNet's weights, give a file with weights, or start from random weights:
    $ python transfer/train.py --input-dir DIR --output-dir OUT --weights resnet18-f37072fd.pth
    $ python transfer/train.py --input-dir DIR --output-dir OUT --weights none

Feature extraction (only the last layer learns) instead of fine-tuning, and another backbone:
    $ python transfer/train.py --input-dir DIR --output-dir OUT --tune head --backbone efficientnet_b0

Two processes on this machine:
    $ torchrun --nproc-per-node 2 transfer/train.py --input-dir DIR --output-dir OUT

Two nodes of Azure ML, which sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:
    $ az ml job create --file transfer/job.yaml

DIR holds train/CLASS/*.jpg and val/CLASS/*.jpg, or CLASS/*.jpg alone, or is an archive of these. The batch size is the
total over all processes. Every process draws the same order from the seed and takes its share of each batch. The
augmentation of an image depends on seed, epoch and image alone, and the gradient is the mean over the whole batch. So
the number of processes changes only the speed, and in fine-tuning the input of batch normalisation, which is one
process's share.

Exit codes: 0 done, 1 failed, 2 bad arguments or bad data, 130 Ctrl-C, 143 stopped by SIGTERM. The last line of each
process states the reason.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as c10d
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

# The snapshot that goes to the nodes is the folder above; `python transfer/train.py` puts only transfer/ on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import checkpoint
import dist
import files
import training
import warm_start
from checkpoint import OwnLength, Position
from labelled import Batch
from metrics import Mean
from transfer import backbone, folder, images, results
from transfer.best import Best, Tested
from transfer.folder import Folder
from transfer.options import Settings, arguments


@dataclass(kw_only=True)
class Training(training.Training):
    """The state of one training. A step calls `model`, which wraps `net` in DDP."""

    settings: Settings
    data: Folder
    view: images.View
    net: nn.Module
    model: nn.Module
    schedule: torch.optim.lr_scheduler.LRScheduler
    best: Best

    @property
    def epoch_steps(self) -> int:
        return math.ceil(len(self.data.train) / self.settings.batch_size)

    def save(self) -> None:
        """Save a checkpoint of the current state."""
        share_statistics(self)
        super().save()


def batches(t: Training, data: images.ClassImages, wholes: list[list[int]]) -> Iterator[Batch]:
    """Yield the images at the positions of each whole batch; this process gets its share."""
    shares = [whole[t.place.rank :: t.place.world_size] for whole in wholes]
    on_gpu = t.device.type == "cuda"
    # batch_size=None: one list of positions fetches one batch.
    loader: DataLoader[Any] = DataLoader(
        data,
        None,
        sampler=shares,
        num_workers=t.settings.workers if t.settings.workers is not None else 4 if on_gpu else 0,
        pin_memory=on_gpu,
    )
    asked = time.perf_counter()
    for whole, (pixels, labels) in zip(wholes, loader, strict=True):
        # Bytes are sent to the device; as floats they would be four times as large.
        pixels = t.settings.speed.images(t.view.normalise(pixels.to(t.device, non_blocking=on_gpu)))
        yield Batch(pixels, labels.to(t.device), len(whole), time.perf_counter() - asked)
        asked = time.perf_counter()


def epoch_batches(t: Training) -> list[list[int]]:
    """Return the positions of the images in each remaining batch of this epoch.

    The sizes of batches differ by at most one. With a small last batch, the statistics of batch normalization would be
    mostly noise.
    """
    count, steps, done = len(t.data.train), t.epoch_steps, t.position.samples
    order = torch.randperm(count, generator=checkpoint.dice(t.settings.seed, t.position.epoch)).tolist()
    bounds = [count * i // steps for i in range(steps + 1)]
    return [order[start:end] for start, end in pairwise(bounds) if start >= done]


@dataclass
class Tally:
    """The counts since the last row of metrics, and the means of the epoch so far. `sums`: images, loss, correct
    guesses."""

    device: torch.device
    times: Mean = field(default_factory=Mean)
    waits: Mean = field(default_factory=Mean)
    losses: Mean = field(default_factory=Mean)
    rights: Mean = field(default_factory=Mean)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.sums, self.waited = torch.zeros(3, device=self.device), 0.0
        self.since, self.steps = time.perf_counter(), 0

    def add(self, batch: Batch, logits: Tensor, loss: Tensor) -> None:
        right = (logits.argmax(1) == batch.labels).sum()
        self.sums += torch.stack([torch.tensor(len(batch.labels), device=self.device), loss, right])
        self.waited += batch.waited
        self.steps += 1


def train_epoch(t: Training) -> None:
    """The training loop. Log lines and metrics are sums over all processes; `value (mean of this epoch so far)`."""
    s, epoch, tally = t.settings, t.position.epoch, Tally(t.device)
    chance = checkpoint.dice(s.seed, epoch, 1).initial_seed() // 2
    torch.manual_seed(s.seed + epoch * t.place.world_size + t.place.rank)  # dropout, in the backbones that have it
    tally.restart()
    for batch in batches(t, images.ClassImages(t.data.train, t.view, chance), epoch_batches(t)):
        t.stop.check(t.position.step)

        # Fewer than two images have no statistics; this happens if a batch has fewer than two images per process.
        backbone.set_training(t.net, s.tune, s.freeze_batch_norm or len(batch.labels) < 2)
        with t.settings.speed.autocast(t.device):
            logits = t.model(batch.pixels)
            loss = F.cross_entropy(logits.float(), batch.labels, reduction="sum")
        # DDP takes the mean of the processes' gradients. With this factor, the result is the mean over the whole batch,
        # even if the shares differ in size.
        (loss * t.place.world_size / batch.whole).backward()  # type: ignore[no-untyped-call]
        t.optimizer.step()
        t.optimizer.zero_grad()
        t.schedule.step()
        t.position.step += 1
        t.position.samples += batch.whole

        tally.add(batch, logits.detach(), loss.detach())
        number = t.position.step - (epoch - 1) * t.epoch_steps
        if number % s.log_interval == 0 or number == t.epoch_steps:
            report(t, number, tally)
            tally.restart()
        if t.checkpoints.due(t.position.step, t.stop) and number < t.epoch_steps:
            t.save()


def report(t: Training, number: int, tally: Tally) -> None:
    """Write the metrics row of a step, the epoch's `number`-th, and a line to the log."""
    count, loss_sum, right_sum = dist.all_sum(tally.sums).tolist()
    seconds = time.perf_counter() - tally.since
    tally.times.add(seconds / tally.steps, tally.steps)
    tally.waits.add(tally.waited / tally.steps, tally.steps)
    tally.losses.add(loss_sum / count, count)
    tally.rights.add(100 * right_sum / count, count)
    rate = count / seconds
    values = {"train_loss": tally.losses.value, "train_accuracy": right_sum / count, "images_per_second": rate}
    t.row(seconds, tally.waited, **values)
    t.say(
        f"epoch {t.position.epoch}/{t.settings.epochs} step {number}/{t.epoch_steps}  Time {tally.times:.3f}  "
        f"Data {tally.waits:.3f}  Loss {tally.losses:.4f}  Acc {tally.rights:.2f}"
    )


def evaluate(t: Training) -> Tested:
    """Test on all validation images. Each image is counted once, whatever the world size."""
    classes = len(t.data.classes)
    share_statistics(t)
    t.net.eval()
    counts = torch.zeros(classes * classes, dtype=torch.float64, device=t.device)
    loss = torch.zeros((), dtype=torch.float64, device=t.device)
    size = t.settings.test_batch_size * t.place.world_size
    positions = list(range(len(t.data.val)))
    wholes = [positions[start : start + size] for start in range(0, len(positions), size)]
    with torch.inference_mode(), t.settings.speed.autocast(t.device):
        for batch in batches(t, images.ClassImages(t.data.val, t.view), wholes):
            t.stop.check(t.position.step)
            # Not through DDP, which would wait for processes with one batch less.
            logits = t.net(batch.pixels).float()
            loss += F.cross_entropy(logits, batch.labels, reduction="sum")
            counts += torch.bincount(batch.labels * classes + logits.argmax(1), minlength=classes * classes)
    confusion = dist.all_sum(counts).view(classes, classes).cpu()
    total = confusion.sum().item()
    assert total == len(t.data.val), f"{total:.0f} of {len(t.data.val)} images of validation were counted"
    return Tested(dist.all_sum(loss).item() / total, confusion.diagonal().sum().item() / total, confusion)


def share_statistics(t: Training) -> None:
    """Give every process the mean of all processes' running statistics if batch normalization is trained."""
    if t.settings.tune == "head" or t.settings.freeze_batch_norm:
        return
    for part in t.net.modules():
        if isinstance(part, nn.BatchNorm2d):
            for statistic in (part.running_mean, part.running_var):
                assert statistic is not None
                dist.all_sum(statistic).div_(t.place.world_size)


def first_weights(net: nn.Module, settings: Settings, data: Path, place: dist.Place) -> str:
    """Load --weights, and return a description of their source. Only rank 0 downloads; DDP sends the weights to the
    other processes at the start.

    The file may be in the folder of the data set. If rank 0 can't load the weights, all processes raise DataError.
    """
    problem: list[str | None] = [None]
    beside = data / settings.weights
    if place.rank == 0 and settings.weights != "none":
        try:
            backbone.load(net, settings.backbone, str(beside) if beside.is_file() else settings.weights)
        except files.DataError as error:
            problem = [str(error)]
    c10d.broadcast_object_list(problem)
    if problem[0]:
        raise files.DataError(problem[0])
    return f"from {settings.weights}"


def rate(step: int, steps: int) -> float:
    """Return the share of --lr for `step` (from 0) of `steps`: a rise during the first tenth, then a fall along half a
    cosine to 0.
    """
    warm = max(1, steps // 10)
    return (step + 1) / warm if step < warm else (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))) / 2


def usable(
    data: Folder, side: int, settings: Settings, place: dist.Place, stop: dist.StopRequest
) -> tuple[Folder, str]:
    """Return the data set without broken images. Without a val folder, the seed draws the validation images, and
    the returned text says so."""
    broken = folder.check(data, side, settings.workers or torch.get_num_threads(), place, stop)
    data = folder.without(data, broken, settings.max_broken)
    if data.val:
        return data, ""
    return folder.split(data, settings.val_share, settings.seed), " (drawn from all by the seed: there is no val)"


def first_net(data: Folder, size: int, settings: Settings, tested: bool, place: dist.Place) -> tuple[nn.Module, str]:
    """Return the network with its first weights, and a description of their source."""
    s = settings
    torch.manual_seed(s.seed)
    net = backbone.build(s.backbone, len(data.classes), size)
    note = warm_start.put(net, s.from_model, whole=tested) if s.from_model else first_weights(net, s, data.root, place)
    if s.tune == "head":
        backbone.freeze_all_but_head(net)
    return net, note


def train(settings: Settings, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> str:
    """Train, validate after every epoch, keep the best epoch, and save. Returns the text of the last line."""
    began = time.perf_counter()
    s = settings
    with files.opened(s.data) as where, s.metrics(place) as metrics:
        found = folder.find(where)
        tested = warm_start.only_tests(s.epochs, s.from_model, found.classes)
        view = images.View.of(warm_start.facts(tested)) if tested else backbone.view_for(s.backbone, s.image_size)
        data, drawn = usable(found, view.side, s, place, stop)
        net, note = first_net(data, view.size, s, bool(tested), place)
        net = s.speed.prepare(net, device)
        # Each process keeps its own running statistics within an epoch; see share_statistics.
        model = s.speed.compiled(DistributedDataParallel(net, gradient_as_bucket_view=True, forward_sync_buffers=False))
        learning = [weights for weights in net.parameters() if weights.requires_grad]
        optimizer = torch.optim.SGD(learning, s.lr, s.momentum, weight_decay=s.weight_decay, nesterov=s.momentum > 0)
        steps = s.epochs * math.ceil(len(data.train) / s.batch_size)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
        checkpoints = s.checkpoints(place, **identity(s, data))
        best = Best(net, len(data.classes))
        state = {"net": net, "optimizer": optimizer, "schedule": OwnLength(schedule), "metrics": metrics, "best": best}
        t = Training(
            settings=s,
            place=place,
            stop=stop,
            device=device,
            data=data,
            view=view,
            net=net,
            model=model,
            optimizer=optimizer,
            schedule=schedule,
            best=best,
            metrics=metrics,
            checkpoints=checkpoints,
            state=state,
            position=Position.of(checkpoints.restore(state)),
        )
        t.say(
            f"{t.processes()}, {s.speed}; {s.backbone} {note}, tuning {s.tune}; classes {len(data.classes)}, "
            f"training images {len(data.train):,}, validation images {len(data.val):,}{drawn}"
        )
        folder.report_skipped(data, s.model_dir if place.rank == 0 else None, t.say)
        with t.kept_when_stopped():
            run_epochs(t)
        if s.model_dir and place.rank == 0:
            save(t, s.model_dir)
    return (
        f"validation accuracy {best.accuracy:.2%} in epoch {best.epoch} of {s.epochs}, "
        f"{time.perf_counter() - began:.1f} s"
    )


def run_epochs(t: Training) -> None:
    """Train the remaining epochs; validate and save after each epoch."""
    if not t.settings.epochs:
        validate(t)
    while t.position.epoch <= t.settings.epochs:
        train_epoch(t)
        validate(t)
        t.position = Position(t.position.epoch + 1, 0, t.position.step)
        t.save()


def validate(t: Training) -> None:
    """Test on the validation images, log the result, and keep the weights of a new best epoch."""
    tested, epoch = evaluate(t), min(t.position.epoch, t.settings.epochs)
    t.metrics.write(t.position.step, epoch, val_loss=tested.loss, val_accuracy=tested.accuracy)
    better = t.best.offer(t.net, epoch, tested)
    t.say(
        f"epoch {epoch}/{t.settings.epochs} val  Loss {tested.loss:.4f}  Acc {tested.accuracy:.2%}"
        f"{'  the best so far' if better else ''}"
    )


def identity(s: Settings, data: Folder) -> dict[str, object]:
    """Return the values for a checkpoint's identity: the training continues only from a checkpoint with equal
    values.
    """
    same = ("backbone", "tune", "image_size", "epochs", "batch_size", "lr", "momentum", "weight_decay", "seed")
    counts = {"training images": len(data.train), "validation images": len(data.val), "classes": data.classes}
    return {**s.named(*same), **counts}


def save(t: Training, folder: Path) -> None:
    """Write the best epoch's model and pictures; in rank 0, on the CPU."""
    net = t.net.cpu().to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]
    t.best.put_into(net)
    results.save_weights(net, folder, facts(t))
    results.confusion_picture(t.best.confusion, t.data.classes, folder / "confusion.png")
    results.predictions_picture(net, t.view, t.data.val, t.data.classes, folder / "predictions.png")
    if t.settings.export:
        difference = results.export(net, t.view, folder)
        t.say(f"model.pt2 gives the logits of the model, with differences up to {difference:.1e}")


def facts(t: Training) -> dict[str, Any]:
    """Return the content of model.json: building and feeding the network, the accuracy, and the origin."""
    return {
        "backbone": t.settings.backbone,
        "classes": t.data.classes,
        "input": {**vars(t.view), "pixels": "RGB, 0 to 1 before normalisation; model.pt2 normalises by itself"},
        "metrics": {"val_accuracy": t.best.accuracy, "val_loss": t.best.loss},
        "step": t.best.epoch * math.ceil(len(t.data.train) / t.settings.batch_size),
        "epoch": t.best.epoch,
        "confusion": t.best.confusion.int().tolist(),
        "training": t.settings.plain(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    settings, place = training.read(arguments(__doc__ or ""), Settings, argv)
    return dist.run(lambda device, stop: train(settings, place, device, stop), place)


if __name__ == "__main__":
    dist.leave(main())
