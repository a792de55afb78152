"""The command line of transfer/train.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import checkpoint
import dist
import metrics
import parameters
import speed
import torch
import warm_start
from parameters import positive


@dataclass(frozen=True)
class Settings:
    """The command line; `arguments` gives each setting's meaning and default."""

    input_dir: Path
    from_model: Path | None
    output_dir: Path | None
    metrics_dir: Path | None
    tensorboard_dir: Path | None
    checkpoint_dir: Path | None
    checkpoint_every: int
    backbone: str
    weights: str
    tune: str
    freeze_batch_norm: bool
    image_size: int | None
    val_share: float
    max_broken: float
    epochs: int
    batch_size: int
    test_batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    seed: int
    workers: int
    log_interval: int
    export: bool


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add, flag = parser.add_argument, argparse.BooleanOptionalAction
    add("--input-dir", "--input_dir", type=Path, required=True, help="folder with the images, or an archive of it")
    add("--output-dir", "--output_dir", type=Path, help="where model, pictures and skipped.txt go (default: nowhere)")
    add("--test-batch-size", type=positive, default=32, help="images at once per process in validation (default: 32)")
    workers = 4 if torch.cuda.is_available() else 0
    add("-j", "--workers", type=int, default=workers, help="processes that decode (default: 4 with a GPU, 0 without)")
    add("--log-interval", type=positive, default=10, help="steps between two lines of log and metrics (default: 10)")
    add("--export", action=flag, default=True, help="also write model.pt2 with torch.export (default: yes)")
    parameters.add_arguments(parser, Path(__file__).with_name("parameters.json"))
    for part in (dist, checkpoint, metrics, speed, warm_start):
        part.add_arguments(parser)
    return parser
