"""The command line of transfer/train.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import training
from parameters import positive


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """The command line; `arguments` gives each setting's meaning and default."""

    backbone: str
    weights: str
    tune: str
    freeze_batch_norm: bool
    image_size: int | None
    val_share: float
    max_broken: float
    test_batch_size: int
    lr: float
    momentum: float
    weight_decay: float
    workers: int | None
    export: bool


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add, flag = parser.add_argument, argparse.BooleanOptionalAction
    words = "folder with the images, or an archive of it"
    add("--input-dir", "--input_dir", dest="data", metavar="INPUT_DIR", type=Path, required=True, help=words)
    words = "where model, pictures and skipped.txt go (default: nowhere)"
    add("--output-dir", "--output_dir", dest="model_dir", metavar="OUTPUT_DIR", type=Path, help=words)
    add("--test-batch-size", type=positive, default=32, help="images at once per process in validation (default: 32)")
    add("-j", "--workers", type=int, help="processes that decode (default: 4 with a GPU, 0 without)")
    add("--export", action=flag, default=True, help="also write model.pt2 with torch.export (default: yes)")
    training.add_arguments(parser, Path(__file__).with_name("parameters.json"))
    return parser
