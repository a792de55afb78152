"""Train RetinaNet, or another of torchvision's detectors, on images with boxes in the layout of COCO, VOC or CSV.

One process, small images:
    $ python detection/train.py --data DIR --backbone resnet18 --min-size 256 --max-size 320 --epochs 40

Two processes on this machine:
    $ torchrun --nproc-per-node 2 detection/train.py --data DIR

Two nodes of Azure ML, which sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:
    $ az ml job create --file detection/job.yaml

All of them run the same code. A batch is cut into shares, one per process. Every process knows the order of all images
from the seed, and takes its share of each batch, so no image is trained on twice in an epoch. --batch-size is the total
over all processes; with --batch-per-process it grows with their number, and so does the learning rate.

Exit codes: 0 done, 1 failed, 2 bad arguments or bad data, 130 Ctrl-C, 143 stopped by SIGTERM. The last line of each
process states the reason.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

# The snapshot that goes to the nodes is the folder above; `python detection/train.py` puts only detection/ on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dist
import files
import training
import warm_start
from checkpoint import Position, dice
from detection import coco, layouts, results
from detection import model as models
from detection.data import DataSet, Example, Examples, Pictures, grouped, remaining
from detection.options import LR, Settings, arguments

MAX_BYTES = 64 * 2**30  # of an archive's files; COCO has 19 GiB


def learning_rate(settings: Settings, batch: int, seen: int, total: int) -> float:
    """Return the rate for the step after `seen` of `total` images, with `batch` images per step over all processes.

    The rate scales with the batch (Goyal et al. 2017, arXiv:1706.02677), for AdamW with its square root (Malladi et al.
    2022, arXiv:2205.10287). It rises evenly, and falls to a tenth after 2/3 and again after 8/9, like RetinaNet's rate.
    The rate is a function of images, not steps, so a restart with another batch size or world size needs no other
    schedule.
    """
    top = LR[settings.optimizer] if settings.lr is None else settings.lr
    scale = batch / 16 if settings.optimizer == "sgd" else math.sqrt(batch / 16)
    warmup = min(settings.warmup_steps * batch, total // 10)
    rise = min(1.0, (seen + batch) / warmup) if warmup else 1.0
    return top * scale * rise * 0.1 ** (sum(seen >= total * part for part in (2 / 3, 8 / 9)))


@dataclass(kw_only=True)
class Training(training.Training):
    """The state of one training."""

    settings: Settings
    plan: models.Plan  # of the model that is trained
    model: DistributedDataParallel
    dataset: DataSet
    batch_size: int
    cuts: list[tuple[int, int]]  # batch sizes of this epoch before a restart, and the images taken with each

    def save(self) -> None:
        """Start to write a checkpoint."""
        done = self.position.samples - sum(done for _, done in self.cuts)
        self.checkpoints.save(self.state, {**asdict(self.position), "cuts": [*self.cuts, (self.batch_size, done)]})

    @property
    def tested(self) -> Pictures:
        """Return the images for testing the model."""
        return self.dataset.val if self.dataset.val and self.settings.test_on == "val" else self.dataset.train

    @property
    def part(self) -> str:
        """Return the name of the part of the data set that the model is tested on."""
        return "val" if self.tested is self.dataset.val else "train"


@dataclass(frozen=True)
class PictureBatch:
    """This process's share of a batch, on the device. `whole` is the size of the batch over all processes.

    An empty share holds one image with weight 0, because a model needs an input.
    """

    images: list[Tensor]
    targets: list[dict[str, Tensor]]
    share: int
    whole: int
    waited: float  # seconds until the batch was ready


def rest_of_epoch(t: Training) -> list[list[int]]:
    """Return the remaining batches of this epoch."""
    train = t.dataset.train
    order = torch.randperm(len(train), generator=dice(t.settings.seed, t.position.epoch)).tolist()
    return remaining(order, train.wide(), t.cuts, t.batch_size)


def batches(t: Training, wholes: list[list[int]]) -> Iterator[PictureBatch]:
    """Yield this process's shares of the batches `wholes`. (seed, epoch) decides whether an image is mirrored."""
    mirrored = torch.rand(len(t.dataset.train), generator=dice(t.settings.seed, t.position.epoch, 1)) < 0.5
    if not t.settings.mirror:
        mirrored.zero_()
    shares = [whole[t.place.rank :: t.place.world_size] for whole in wholes]
    wanted = [
        [(index, bool(mirrored[index])) for index in share or whole[:1]]
        for share, whole in zip(shares, wholes, strict=True)
    ]
    asked = time.perf_counter()
    for whole, share, examples in zip(wholes, shares, loaded(t, t.dataset.train, wanted), strict=True):
        images = [as_input(t, example) for example in examples]
        targets = [{"boxes": e.boxes.to(t.device), "labels": e.labels.to(t.device)} for e in examples]
        yield PictureBatch(images, targets, len(share), len(whole), time.perf_counter() - asked)
        asked = time.perf_counter()


def loaded(t: Training, pictures: Pictures, wanted: list[list[tuple[int, bool]]]) -> Iterator[list[Example]]:
    """Yield the lists of images in `wanted` (index, and whether the image is mirrored). Raises DataError for a
    broken image."""
    # batch_size=None: an item of the sampler is a whole list, and is passed on as a list.
    loader: DataLoader[Any] = DataLoader(Examples(pictures), None, sampler=wanted, num_workers=workers(t))
    for examples in loader:
        if isinstance(examples, files.DataError):
            raise examples
        yield examples


def as_input(t: Training, example: Example) -> Tensor:
    """Convert an image to the models' input format."""
    return example.pixels.to(t.device).float() / 255  # bytes are sent to the GPU, a quarter of the size of floats


def workers(t: Training) -> int:
    """Return the number of this process's reading processes."""
    return t.settings.workers if t.settings.workers is not None else 4 if t.device.type == "cuda" else 0


def train_epoch(t: Training, wholes: list[list[int]]) -> None:
    """The training loop over the remaining batches of this epoch. Numbers are over all processes."""
    settings, position, total = t.settings, t.position, t.settings.epochs * len(t.dataset.train)
    t.model.train()  # type: ignore[no-untyped-call]  # of this kind of model, torch has no types for it
    sums: dict[str, Tensor] = {}  # of images, and of each loss over them, since the last line
    waited, since = 0.0, time.perf_counter()
    for number, batch in enumerate(batches(t, wholes), start=1):
        t.stop.check(position.step)
        rate = learning_rate(
            settings, t.batch_size, (position.epoch - 1) * len(t.dataset.train) + position.samples, total
        )
        for group in t.optimizer.param_groups:
            group["lr"] = rate

        with settings.speed.autocast(t.device):
            losses: dict[str, Tensor] = t.model(batch.images, batch.targets)  # means over the share
        # DDP takes the mean of the processes' gradients. With this factor, the result is the mean over the whole batch,
        # even if the shares differ in size.
        weight = batch.share * t.place.world_size / batch.whole
        (torch.stack(list(losses.values())).sum() * weight).backward()  # type: ignore[no-untyped-call]
        if settings.clip_norm:
            nn.utils.clip_grad_norm_(t.model.parameters(), settings.clip_norm)
        t.optimizer.step()
        t.optimizer.zero_grad()

        for name, loss in {"images": torch.ones((), device=t.device), **losses}.items():
            sums[name] = sums.get(name, torch.zeros((), device=t.device)) + loss.detach().float() * batch.share
        position.samples += batch.whole
        position.step += 1
        waited += batch.waited
        if position.step % settings.log_interval == 0 or number == len(wholes):
            seconds = time.perf_counter() - since
            log_step(t, number, len(wholes), sums, seconds, waited)
            sums, waited, since = {}, 0.0, time.perf_counter()
        if t.checkpoints.due(position.step, t.stop) and number < len(wholes):
            t.save()


def log_step(t: Training, number: int, count: int, sums: dict[str, Tensor], seconds: float, waited: float) -> None:
    """Write a row of metrics and a line of the log for the time since the last row."""
    images, *totals = dist.all_sum(torch.stack(list(sums.values()))).tolist()
    means = {f"train_{name}": total / images for name, total in zip(list(sums)[1:], totals, strict=True)}
    loss, rate = sum(means.values()), t.optimizer.param_groups[0]["lr"]
    t.row(seconds, waited, train_loss=loss, **means, images_per_second=images / seconds)
    parts = ", ".join(f"{name.removeprefix('train_')} {value:.4f}" for name, value in means.items())
    t.say(
        f"epoch {t.position.epoch}/{t.settings.epochs} step {number}/{count}  Loss {loss:.4f} ({parts})  "
        f"lr {rate:.3g}  {images / seconds:.2f} images/s  waiting {waited / seconds:.0%}"
    )


def test(t: Training) -> tuple[dict[str, float], Tensor | None]:
    """Return COCO's numbers over all test images, and on rank 0 the detected boxes (see coco.gathered).

    The batches are the same for any number of processes, so that an image is always padded to the same size.
    """
    t.model.eval()
    pictures, found = t.tested, [torch.zeros(0, 7, dtype=torch.float64)]
    groups = grouped(range(len(pictures)), pictures.wide(), t.settings.test_batch_size)
    mine = groups[t.place.rank :: t.place.world_size]
    images = loaded(t, pictures, [[(index, False) for index in group] for group in mine])
    for turn in range(math.ceil(len(groups) / t.place.world_size)):
        t.stop.check(t.position.step)
        if turn < len(mine):  # the last turn may lack a batch for some processes
            found += detect(t, mine[turn], next(images))
    rows = coco.gathered(torch.cat(found), [index for group in mine for index in group], pictures)
    numbers = coco.measure(pictures, t.dataset.categories, rows) if rows is not None else None
    return coco.everywhere(numbers), rows


def detect(t: Training, indices: list[int], examples: list[Example]) -> list[Tensor]:
    """Return the model's detections in some images: a table (K, 7) for each image, in the format of coco.gathered."""
    # Not through DDP: processes may have different numbers of batches here.
    with torch.inference_mode(), t.settings.speed.autocast(t.device):
        answers = t.model.module([as_input(t, example) for example in examples])
    tables = []
    for index, answer in zip(indices, answers, strict=True):
        columns = [torch.full_like(answer["scores"], index), *answer["boxes"].unbind(1), answer["scores"]]
        tables.append(torch.stack([column.double() for column in (*columns, answer["labels"])], 1).cpu())
    return tables


def finish_epoch(t: Training) -> dict[str, float]:
    """Save a checkpoint, test, and write the current model, so that a model exists even after a kill."""
    t.save()
    if t.position.epoch < t.settings.epochs and t.position.epoch % t.settings.test_every:
        return {}
    numbers, found = test(t)
    epoch = min(t.position.epoch, t.settings.epochs)
    told = {f"{t.part}_{name}": value for name, value in numbers.items()}
    t.metrics.write(t.position.step, epoch, **told)
    t.say(
        f"epoch {epoch}/{t.settings.epochs} {t.part}  "
        + "  ".join(f"{name} {numbers[name]:.2%}" for name in ("map", "map50", "map75", "recall_100"))
    )
    if found is not None and (folder := t.settings.model_dir):
        facts = {"tested_on": t.part, "epoch": epoch, "metrics": told, "step": t.position.step}
        results.save(t.model.module, t.plan, t.dataset.categories, folder, **facts, training=t.settings.plain())
        results.draw(t.tested, t.dataset.categories, found, t.settings.pictures, folder / "pictures")
    return numbers


def plan_of(settings: Settings, found: DataSet) -> models.Plan:
    """Return the model for this data set: from the settings, or the model under test."""
    names = [category.name for category in found.categories]
    if tested := warm_start.only_tests(settings.epochs, settings.from_model, names):
        return models.Plan(**warm_start.facts(tested)["plan"])
    return replace(settings.plan, classes=len(names))


def prepared(settings: Settings, plan: models.Plan, folder: Path) -> tuple[models.Plan, nn.Module, list[str]]:
    """Return the model with first weights and frozen parts, and lines for the log about both."""
    whole = settings.weights != "none"
    source = settings.weights if whole else settings.weights_backbone
    owner = plan.name if whole else models.backbone_name(plan)
    weights = models.pretrained(source, owner, folder) if source != "none" else {}
    frozen = models.has_batch_norm(weights)
    if settings.from_model:
        frozen = bool(warm_start.facts(settings.from_model).get("plan", {}).get("frozen_norm"))
    plan = replace(plan, frozen_norm=frozen)
    torch.manual_seed(settings.seed)
    net = models.build(plan)
    notes = [models.put(source, weights, net if whole else models.body(net))] if weights else []
    if settings.from_model:
        notes.append(warm_start.put(net, settings.from_model, whole=not settings.epochs))
    models.SharedPadding.put_into(net)
    pretrained = bool(weights or settings.from_model)
    stages = settings.trainable_stages if settings.trainable_stages is not None else 3 if pretrained else 5
    models.freeze(net, 0 if settings.freeze_backbone else stages)
    trained, every = (
        sum(part.numel() for part in net.parameters() if part.requires_grad or which) for which in (False, True)
    )
    notes.append(
        f"{plan.name}{f' on {plan.backbone}' if plan.backbone else ''}: {every:,} weights, {trained:,} of them "
        f"trained, {'frozen batch' if plan.frozen_norm else 'group'} normalisation"
    )
    return plan, net, notes


def optimizer(settings: Settings, net: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of the trained parts; the learning rate is set at each step."""
    trained = [part for part in net.parameters() if part.requires_grad]
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(trained, weight_decay=settings.weight_decay)
    return torch.optim.SGD(trained, momentum=settings.momentum, weight_decay=settings.weight_decay)


def run_epochs(t: Training) -> dict[str, float]:
    """Train the remaining epochs, and return the numbers of the last test."""
    while True:
        if t.settings.epochs:
            train_epoch(t, rest_of_epoch(t))
        numbers = finish_epoch(t)
        if t.position.epoch >= t.settings.epochs:
            return numbers
        t.cuts.clear()
        t.position.epoch, t.position.samples = t.position.epoch + 1, 0


def train(settings: Settings, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> str:
    """Train, test after every epoch, and save. Returns the text of the last line."""
    began = time.perf_counter()
    with files.opened(settings.data, MAX_BYTES) as folder, settings.metrics(place) as metrics:
        found = layouts.read(folder)
        plan, net, notes = prepared(settings, plan_of(settings, found), folder)
        net = settings.speed.prepare(net, device)
        model = DistributedDataParallel(net, gradient_as_bucket_view=True)
        if settings.speed.compile:
            backbone: Any = net.backbone
            backbone.compile(dynamic=True)  # the heads and later parts depend on each image's size
        batch = settings.batch_per_process * place.world_size if settings.batch_per_process else settings.batch_size
        checkpoints = settings.checkpoints(place, **identity(settings, plan, found))
        learner = optimizer(settings, net)
        state = {"model": model, "optimizer": learner, "metrics": metrics}
        restored = checkpoints.restore(state)
        t = Training(
            settings=settings,
            plan=plan,
            place=place,
            stop=stop,
            device=device,
            model=model,
            optimizer=learner,
            dataset=found,
            batch_size=batch,
            metrics=metrics,
            checkpoints=checkpoints,
            state=state,
            position=Position.of(restored),
            cuts=[(size, done) for size, done in restored["cuts"]] if restored else [],
        )
        t.say(
            f"{t.processes()}, {settings.speed}; {found.layout}, {len(found.categories)} classes; "
            f"training {found.train}; testing {t.tested}{'' if t.tested is found.val else ', those of training'}; "
            f"{batch} images a step"
        )
        for note in (*notes, *remarks(found)):
            t.say(note)
        with t.kept_when_stopped():
            numbers = run_epochs(t)
        if settings.model_dir and settings.script and place.rank == 0:
            results.save_script(settings.model_dir)
    measured = f"map {numbers['map']:.2%}, map50 {numbers['map50']:.2%}"
    return f"{t.part} {measured} after {settings.epochs} epochs, {time.perf_counter() - began:.1f} s"


def identity(settings: Settings, plan: models.Plan, found: DataSet) -> dict[str, object]:
    """Return the values for a checkpoint's identity: the training continues only from a checkpoint with equal
    values.
    """
    same = ("epochs", "batch_size", "batch_per_process", "optimizer", "mirror", "seed")
    counts = {"training images": len(found.train), "classes": [category.name for category in found.categories]}
    return {**asdict(plan), **settings.named(*same), **counts}


def remarks(found: DataSet) -> list[str]:
    """Return lines for the log about training images and objects that are not used."""
    train = found.train
    counts = {"crowds": int(train.crowd.sum()), "objects without area in the image": int(train.empty.sum())}
    return [f"left out of training: {count:,} {what}" for what, count in counts.items() if count]


def main(argv: Sequence[str] | None = None) -> int:
    settings, place = training.read(arguments(__doc__ or ""), Settings, argv)
    return dist.run(lambda device, stop: train(settings, place, device, stop), place)


if __name__ == "__main__":
    dist.leave(main())
