"""What makes a step faster without changing what is learned: bfloat16, torch.compile, channels_last; each a flag."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass

import torch
from torch import nn


def add_arguments(parser: argparse.ArgumentParser, channels_last: bool = True) -> None:
    """Add --amp, --compile and --channels-last, each with its --no- form. `channels_last` is the last one's default."""
    group = parser.add_argument_group("speed")
    add, switch = group.add_argument, argparse.BooleanOptionalAction
    add("--amp", action=switch, help="compute in bfloat16 where that is safe (default: on a GPU that has it)")
    add("--compile", action=switch, help="torch.compile, a minute at the start (default: on a GPU)")
    help_text = f"order of images in memory that convolutions like (default: {'on' if channels_last else 'off'})"
    add("--channels-last", action=switch, default=channels_last, help=help_text)


@dataclass(frozen=True)
class Speed:
    """Which of them are on. bfloat16 has float32's range, so no gradient is scaled."""

    amp: bool = False
    compile: bool = False
    channels_last: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> Speed:
        """What the command line says, and this machine where it says nothing."""
        gpu = torch.cuda.is_available()
        amp = args.amp if args.amp is not None else gpu and torch.cuda.is_bf16_supported(including_emulation=False)
        return cls(amp, args.compile if args.compile is not None else gpu, args.channels_last)

    def __str__(self) -> str:
        """For the log: `amp off, compile off, channels_last on`."""
        return ", ".join(f"{name} {'on' if on else 'off'}" for name, on in vars(self).items())

    def autocast(self, device: torch.device) -> contextlib.AbstractContextManager[object]:
        """Around the forward pass and the loss, not around backward."""
        return torch.autocast(device.type, torch.bfloat16) if self.amp else contextlib.nullcontext()

    def prepare(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model on the device, its weights in the order of memory that was asked for."""
        return model.to(device, memory_format=torch.channels_last) if self.channels_last else model.to(device)  # type: ignore[call-overload]

    def images(self, images: torch.Tensor) -> torch.Tensor:
        """Images (N, C, H, W) in the same order of memory as the weights."""
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

    def compiled(self, model: nn.Module) -> nn.Module:
        """What to call in a step; wrap DDP, and keep the model itself for its state. Without --compile the same."""
        return torch.compile(model) if self.compile else model  # type: ignore[return-value]
