"""Train BERT from scratch on a folder of text: it learns to guess masked words.

One process:
    $ python bert/pythondocs.py DIR
    $ python bert/train.py --data DIR

Two processes on this machine:
    $ torchrun --nproc-per-node 2 bert/train.py --data DIR

A model that is too large for one GPU; each process holds a share of it:
    $ torchrun --nproc-per-node 8 bert/train.py --data DIR --model large --parallel fsdp2

Two nodes of Azure ML, which sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT:
    $ az ml job create --file bert/job.yaml

All of them run the same code. The batch size is the total over all processes, order and masks follow from seed, epoch
and row, and the gradient is the mean over all masked tokens of the whole batch. So without dropout the number of
processes changes only the speed.

Exit codes: 0 done, 1 failed, 2 bad arguments or bad data, 130 Ctrl-C, 143 stopped by SIGTERM. The last line of each
process states the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

# The snapshot that goes to the nodes is the folder above; `python bert/train.py` puts only bert/ on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dist
import files
import training
import warm_start
from bert import corpus, model, order, text
from checkpoint import Position
from parameters import positive
from transformers import BertConfig  # after bert.model, which keeps it offline


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """The command line; `arguments` gives each setting's meaning and default."""

    tokenizer: Path | None
    model: str
    vocabulary: int
    length: int
    dropout: float
    accumulate: int
    lr: float | None
    warmup: float
    weight_decay: float
    clip: float
    parallel: str
    val_share: float
    val_rows: int
    val_interval: int


# A checkpoint with other values of these settings, or of another text, is refused: it belongs to another training.
FIXED = (
    "model",
    "length",
    "dropout",
    "batch_size",
    "epochs",
    "lr",
    "warmup",
    "weight_decay",
    "clip",
    "val_share",
    "seed",
)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with text files in UTF-8 (.gz or not), or an archive of them")
    add("--tokenizer", type=Path, help="a tokenizer.json (default: the one in --data, else one is trained)")
    add("--model-dir", type=Path, help="folder for model, tokenizer and model.json (default: the model is not saved)")
    add("--val-rows", type=positive, default=4096, help="maximum number of held-out rows (default: 4096)")
    add("--val-interval", type=positive, help="steps between two validations, in addition to the one after each epoch")
    training.add_arguments(parser, Path(__file__).with_name("parameters.json"), channels_last=False)
    return parser


class Window:
    """The sums since the last line of the log."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(2, device=device, dtype=torch.double)  # sum and number of losses
        self.since = time.perf_counter()
        self.waited = 0.0
        self.rows = 0
        self.norm = torch.zeros(())  # norm of the last gradient before clipping


@dataclass(kw_only=True)
class Training(training.Training):
    """The state of one training."""

    settings: Settings
    corpus: corpus.Corpus
    model: nn.Module  # spread over the processes
    forward: nn.Module  # the same, compiled or not
    lr: float
    window: Window
    val_loss: float = math.nan

    @property
    def epoch_steps(self) -> int:
        return math.ceil(len(self.corpus.train) / self.settings.batch_size)

    def save(self) -> None:
        """Save a checkpoint of the current state, after writing the pending row of metrics."""
        if self.window.rows:
            report(self)
        self.checkpoints.save(self.state, {**vars(self.position), "val_loss": self.val_loss})


def rate(step: int, steps: int, warmup: float) -> float:
    """Return the share of the peak learning rate for `step` of 1..steps: a linear rise, then a fall to 0 along half a
    cosine.
    """
    rising = max(1, round(warmup * steps))
    if step <= rising:
        return step / rising
    return (1 + math.cos(math.pi * (step - rising) / (steps - rising + 1))) / 2


def part(t: Training, source: text.Rows, rows: order.Indices, seed: int) -> tuple[list[Tensor], float]:
    """Return the inputs, positions and targets of masked rows on the device, and the weight 1.0.

    A process without remaining rows gets an arbitrary row and the loss weight 0.0, because all processes must take
    part.
    """
    some = rows if len(rows) else np.zeros(1, dtype=np.int64)
    ids = t.corpus.specials
    masked = order.mask(source[some], some, seed, t.corpus.vocabulary, ids.mask, [ids.cls, ids.sep, ids.pad])
    arrays = (masked.inputs, masked.positions, masked.targets)
    return [torch.from_numpy(array).to(t.device, non_blocking=True) for array in arrays], float(len(rows) > 0)


def train_step(t: Training, whole: order.Indices, masks: int) -> None:
    """Train on one batch, given the rows of every process."""
    mine = whole[t.place.rank :: t.place.world_size]
    guesses = len(whole) * order.predicted(t.settings.length)
    for number, rows in enumerate(np.array_split(mine, t.settings.accumulate), start=1):
        asked = time.perf_counter()
        tensors, weight = part(t, t.corpus.train, rows, masks)
        t.window.waited += time.perf_counter() - asked
        with model.exchanging(t.model, last=number == t.settings.accumulate):
            with t.settings.speed.autocast(t.device):
                loss = t.forward(*tensors) * weight
            # DDP and FSDP2 take the mean of the processes' gradients. With this factor, the result is the mean over all
            # masked tokens of the whole batch, however the batch is divided.
            (loss * t.place.world_size / guesses).backward()
        t.window.sums[0] += loss.detach()
        t.window.sums[1] += len(rows) * order.predicted(t.settings.length)
    t.window.norm = model.clip(t.model, t.settings.clip)
    for group in t.optimizer.param_groups:
        group["lr"] = t.lr * rate(t.position.step + 1, t.settings.epochs * t.epoch_steps, t.settings.warmup)
    t.optimizer.step()
    t.optimizer.zero_grad()


def train_epoch(t: Training) -> None:
    """The training loop, from the position to the end of its epoch: every row once, in this epoch's order."""
    at, count, interval = t.position, len(t.corpus.train), t.settings.val_interval
    epoch_order, masks = (order.key(name, t.settings.seed, at.epoch) for name in ("order", "masks"))
    while at.samples < count:
        t.stop.check(at.step)
        places = np.arange(at.samples, min(at.samples + t.settings.batch_size, count))
        train_step(t, order.shuffled(places, count, epoch_order), masks)
        at.samples += len(places)
        at.step += 1
        t.window.rows += len(places)

        validates = bool(interval) and at.step % interval == 0 and at.samples < count
        saves = (
            t.checkpoints.due(at.step, t.stop) and at.samples < count
        )  # after the last step, the validation comes first
        # A row before each pause: otherwise the pause would count as training time, and a crash would lose the sums.
        if at.step % t.settings.log_interval == 0 or at.samples == count or validates or saves:
            report(t)
        if validates:
            validate(t)
        if saves:
            t.save()


def report(t: Training) -> None:
    """Write a line to the log and a row of metrics: sums over all processes since the last line."""
    loss, count = dist.all_sum(t.window.sums).tolist()
    seconds = time.perf_counter() - t.window.since
    at, norm, tokens = t.position, t.window.norm.item(), t.window.rows * t.settings.length / seconds
    t.row(seconds, t.window.waited, train_loss=loss / count, gradient_norm=norm, tokens_per_second=tokens)
    t.say(
        f"epoch {at.epoch}/{t.settings.epochs} step {at.step}/{t.settings.epochs * t.epoch_steps}  "
        f"Loss {loss / count:.4f}  Rate {t.optimizer.param_groups[0]['lr']:.2e}  Norm {norm:.2f}  "
        f"Tokens/s {tokens:,.0f}  Data {t.window.waited / seconds:.1%}"
    )
    t.window = Window(t.device)


def validate(t: Training) -> None:
    """Measure loss and perplexity on held-out rows. Rows and masks are the same for every seed."""
    held_out, k = t.corpus.held_out, order.predicted(t.settings.length)
    used = order.shuffled(np.arange(min(t.settings.val_rows, len(held_out))), len(held_out), order.key("validation"))
    at_once = max(t.place.world_size, t.settings.batch_size // t.settings.accumulate)
    sums = torch.zeros(2, device=t.device, dtype=torch.double)
    t.model.eval()
    with torch.no_grad(), t.settings.speed.autocast(t.device):
        for start in range(0, len(used), at_once):
            mine = used[start : start + at_once][t.place.rank :: t.place.world_size]
            tensors, weight = part(t, held_out, mine, order.key("validation"))
            sums += torch.stack([t.forward(*tensors) * weight, torch.tensor(len(mine) * k, device=t.device)])
    t.model.train()
    loss, count = dist.all_sum(sums).tolist()
    assert count == len(used) * k, f"{count:.0f} of {len(used) * k} masked tokens were counted"
    t.val_loss, at = loss / count, t.position
    t.metrics.write(at.step, at.epoch, val_loss=t.val_loss, val_perplexity=math.exp(t.val_loss))
    t.say(
        f"epoch {at.epoch}/{t.settings.epochs} validation  Loss {t.val_loss:.4f}  Perplexity {math.exp(t.val_loss):.2f}"
    )
    t.window = Window(t.device)


def save(t: Training, folder: Path) -> None:
    """Write the files for transformers' from_pretrained, and model.json. Each file is written whole or not at all."""
    weights = model.whole(t.model)
    if t.place.rank:
        return  # needed only to gather the model's shares
    with tempfile.TemporaryDirectory() as temporary:
        model.write(Path(temporary), weights, config(t.settings, t.corpus), t.corpus.tokenizer, t.corpus.specials)
        Path(temporary, "model.json").write_text(json.dumps(facts(t), indent=2) + "\n")
        for path in Path(temporary).iterdir():
            with files.replacing(folder / path.name) as target:
                shutil.copyfile(path, target)


def facts(t: Training) -> dict[str, object]:
    """Return the content of model.json: the model, the loss, and the origin."""
    return {
        "weights": "model.safetensors",
        "architecture": "transformers.BertForMaskedLM",
        "metrics": {"val_loss": t.val_loss, "val_perplexity": math.exp(t.val_loss)},
        "step": t.position.step,
        "tokens": {"train": t.corpus.train.tokens, "held_out": t.corpus.held_out.tokens},
        "training": t.settings.plain(),
    }


def config(settings: Settings, text: corpus.Corpus) -> BertConfig:
    return model.config(
        model.SIZES[settings.model], text.vocabulary, settings.length, text.specials.pad, settings.dropout
    )


def assemble(settings: Settings, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> Training:
    """Return the parts of a training, at the start or at the newest checkpoint."""
    tokenizer = settings.tokenizer or (settings.from_model and settings.from_model / "tokenizer.json")
    source = corpus.Source(settings.data, tokenizer, settings.vocabulary, settings.length, settings.val_share)
    rows = corpus.prepare(source, place, stop)
    torch.manual_seed(settings.seed)  # equal weights in every process
    whole = model.MaskedLanguage(config(settings, rows)).to(device)
    note = warm_start.put(whole.net, settings.from_model) if settings.from_model else ""
    weights = sum(parameter.numel() for parameter in whole.parameters())
    spread = model.spread(whole, settings.parallel, device)
    torch.manual_seed(settings.seed + place.rank)  # but different dropout
    lr = settings.lr or model.SIZES[settings.model].lr
    optimizer = model.optimizer(spread, lr, settings.weight_decay)
    checkpoints = settings.checkpoints(place, **settings.named(*FIXED), text=rows.fingerprint)
    written = settings.metrics(place)
    t = Training(
        settings=settings,
        place=place,
        stop=stop,
        device=device,
        corpus=rows,
        model=spread,
        forward=settings.speed.compiled(spread),
        optimizer=optimizer,
        lr=lr,
        window=Window(device),
        metrics=written,
        checkpoints=checkpoints,
        state={"model": spread, "optimizer": optimizer, "metrics": written},
    )
    t.say(
        f"{t.processes()}, {settings.parallel}, {settings.speed}; model {settings.model} with {weights:,} weights; "
        f"vocabulary {rows.vocabulary:,}, text {rows.train.tokens:,} tokens in {len(rows.train):,} rows, held out "
        f"{rows.held_out.tokens:,} in {len(rows.held_out):,}"
    )
    if note:
        t.say(note)
    if found := checkpoints.restore(t.state):
        t.position, t.val_loss = Position.of(found), found["val_loss"]
    return t


def train(settings: Settings, place: dist.Place, device: torch.device, stop: dist.StopRequest) -> str:
    """Train, validate after every epoch, and save. Returns the text of the last line."""
    began = time.perf_counter()
    t = assemble(settings, place, device, stop)
    with t.metrics, t.kept_when_stopped():
        while t.position.epoch <= settings.epochs:
            train_epoch(t)
            validate(t)
            t.position = Position(t.position.epoch + 1, 0, t.position.step)
            t.save()
    if settings.model_dir:
        save(t, settings.model_dir)
    perplexity = math.exp(t.val_loss)
    return f"perplexity {perplexity:.2f} after {settings.epochs} epochs, {time.perf_counter() - began:.1f} s"


def main(argv: Sequence[str] | None = None) -> int:
    settings, place = training.read(arguments(), Settings, argv)
    return dist.run(lambda device, stop: train(settings, place, device, stop), place)


if __name__ == "__main__":
    dist.leave(main())
