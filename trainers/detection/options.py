"""The command line of detection/train.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import training
from detection import model as models
from parameters import positive

LR = {"sgd": 0.01, "adamw": 1e-4}  # for 16 images a step: RetinaNet's (arXiv:1708.02002), and a usual one for AdamW


@dataclass(frozen=True, kw_only=True)
class Settings(training.Settings):
    """The command line; `arguments` gives each setting's meaning and default."""

    plan: models.Plan
    weights: str
    weights_backbone: str
    freeze_backbone: bool
    trainable_stages: int | None
    batch_per_process: int | None
    test_batch_size: int
    optimizer: str
    lr: float | None
    momentum: float
    weight_decay: float
    warmup_steps: int
    clip_norm: float
    mirror: bool
    test_on: str
    test_every: int
    pictures: int
    script: bool
    workers: int | None

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """Return the settings on a command line. Raises ValueError for contradicting flags."""
        args.plan = models.Plan(args.model, args.backbone, 1, args.min_size, args.max_size, args.anchor)
        args.plan.check()
        if args.weights != "none" and args.weights_backbone != "none":
            raise ValueError("--weights has a backbone in it; give it or --weights-backbone")
        if args.from_model and args.weights != "none":
            raise ValueError("--from-model is a whole model; give it or --weights")
        return super().of(args)


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add, switch = parser.add_argument, argparse.BooleanOptionalAction
    add("--data", type=Path, required=True, help="folder in the layout of COCO, Pascal VOC or CSV, or an archive of it")
    add("--model-dir", type=Path, help="folder for the model and pictures (default: the model is not saved)")
    add("--batch-per-process", type=positive, help="images per step and process, instead of --batch-size")
    add("--test-batch-size", type=positive, default=4, help="test images at once, per process (default: 4)")
    add("--clip-norm", type=float, default=10.0, help="longest gradient, 0 for any (default: 10)")
    add("--test-on", choices=["val", "train"], default="val", help="images to test on (default: val)")
    add("--test-every", type=positive, default=1, help="epochs between two tests (default: 1)")
    add("--pictures", type=int, default=4, help="test images to draw, with true and found boxes (default: 4)")
    add("--script", action=switch, default=True, help="also save the model as TorchScript (default: on)")
    add("-j", "--workers", type=int, help="processes that read images (default: 4 where there is a GPU, else 0)")
    _add_model_arguments(parser)
    training.add_arguments(parser, Path(__file__).with_name("parameters.json"), channels_last=False)
    # Off even on a GPU: nearly every batch has another size, and would need a new compilation.
    parser.set_defaults(compile=False)
    return parser


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    add = group.add_argument
    add("--backbone", choices=models.RESNETS, help="another ResNet below retinanet, fcos or fasterrcnn_resnet50_fpn")
    add("--freeze-backbone", action="store_true", help="train the pyramid and the heads only")
    add("--trainable-stages", type=int, choices=range(6), help="of a ResNet's five (default: 3 with weights, else 5)")
    add("--anchor", type=positive, help="side of RetinaNet's smallest boxes as the model sees it (default: 32)")
