"""The results of a training: weights, an exported program that needs none of this code, and their description."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import files
import torch
import weights
from cifar_elastic import batches
from torch import nn


def save(net: nn.Module, normalised: nn.Module, folder: Path, facts: dict[str, Any]) -> None:
    """Write model.safetensors, model.pt2 and, with these facts, model.json. Both models take unprocessed pixels."""
    whole = nn.Sequential(normalised, net).cpu().eval()
    weights.write(folder, whole.state_dict())
    with files.replacing(folder / "model.pt2") as path, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch.export, about itself
        pixels = torch.zeros(2, 3, batches.SIDE, batches.SIDE, dtype=torch.uint8)
        program = torch.export.export(whole, (pixels,), dynamic_shapes=({0: torch.export.Dim("images")},))
        with path.open("wb") as file:
            torch.export.save(program, file)
    weights.describe(folder, {"program": "model.pt2", **facts})
