"""Options for a faster step with unchanged learning: bfloat16, torch.compile and channels_last."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass

import torch
from torch import nn


def add_arguments(parser: argparse.ArgumentParser, channels_last: bool = True) -> None:
    """Add --amp, --compile and --channels-last, each with a --no- form. `channels_last` is the default of
    --channels-last."""
    group = parser.add_argument_group("speed")
    add, switch = group.add_argument, argparse.BooleanOptionalAction
    add("--amp", action=switch, help="compute in bfloat16 where that is safe (default: on a GPU that has it)")
    add("--compile", action=switch, help="torch.compile, a minute at the start (default: on a GPU)")
    help_text = f"order of images in memory that convolutions like (default: {'on' if channels_last else 'off'})"
    add("--channels-last", action=switch, default=channels_last, help=help_text)


@dataclass(frozen=True)
class Speed:
    """The options in use. bfloat16 has the range of float32, so gradients are not scaled."""

    amp: bool = False
    compile: bool = False
    channels_last: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> Speed:
        """Return the options from the command line; options that are not given depend on this machine."""
        gpu = torch.cuda.is_available()
        amp = args.amp if args.amp is not None else gpu and torch.cuda.is_bf16_supported(including_emulation=False)
        return cls(amp, args.compile if args.compile is not None else gpu, args.channels_last)

    def __str__(self) -> str:
        """Return the options for the log: `amp off, compile off, channels_last on`."""
        return ", ".join(f"{name} {'on' if on else 'off'}" for name, on in vars(self).items())

    def autocast(self, device: torch.device) -> contextlib.AbstractContextManager[object]:
        """Return the context for the forward pass and the loss. The backward pass runs outside it."""
        return torch.autocast(device.type, torch.bfloat16) if self.amp else contextlib.nullcontext()

    def prepare(self, model: nn.Module, device: torch.device) -> nn.Module:
        """Return the model on the device, with its weights in the chosen memory format."""
        return model.to(device, memory_format=torch.channels_last) if self.channels_last else model.to(device)  # type: ignore[call-overload]

    def images(self, images: torch.Tensor) -> torch.Tensor:
        """Return images (N, C, H, W) in the same memory format as the weights."""
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images

    def compiled(self, model: nn.Module) -> nn.Module:
        """Return the callable for a step: the compiled model with --compile, otherwise the model. Wrap this
        callable in DDP, and keep the model itself for its state."""
        return torch.compile(model) if self.compile else model  # type: ignore[return-value]
