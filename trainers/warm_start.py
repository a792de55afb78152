"""Start a training from the model of an earlier run: --from-model names the folder with that model.

Weights with the same name and shape are copied; other weights, such as a head for other classes, stay new. A checkpoint
overrides these weights, so a training that was stopped resumes as usual.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from files import DataError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --from-model."""
    parser.add_argument(
        "--from-model", type=Path, metavar="DIR", help="begin with the model in this folder (default: new weights)"
    )


def facts(folder: Path) -> dict[str, Any]:
    """Return the content of model.json in the folder. Raises DataError if the file is missing."""
    try:
        found: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: expected a model with its model.json, found none: {error}") from error
    return found


def weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights that model.json names. Raises DataError for unreadable files; only tensors are unpickled."""
    return read(folder / Path(str(facts(folder).get("weights", ""))).name)


def read(file: Path) -> dict[str, Tensor]:
    """Return the weights in a file: safetensors, or a file of torch.save. Raises DataError; only tensors are
    unpickled."""
    try:
        found: Any = load_file(file) if file.suffix == ".safetensors" else torch.load(file, weights_only=True)
    except pickle.UnpicklingError as error:  # torch's own message advises to trust the file
        raise DataError(
            f"{file}: expected a model's weights, found a pickle that may run code when it is loaded; save weights as "
            "safetensors, or as a state_dict by torch.save"
        ) from error
    except (OSError, ValueError, RuntimeError, EOFError, SafetensorError) as error:
        raise DataError(f"{file}: expected a model's weights: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise DataError(f"{file}: expected a model's weights by name, found something else")
    return found


def only_tests(epochs: int, folder: Path | None, classes: Sequence[str] = ()) -> Path | None:
    """Return the folder of the model if it is only tested (0 epochs), or None for a training.

    Raises DataError without a model, or for a model of other classes than these.
    """
    if epochs:
        return None
    if folder is None:
        raise DataError("--epochs 0 only tests a model: expected one in --from-model, found none")
    named = [each["name"] if isinstance(each, dict) else str(each) for each in facts(folder).get("classes", ())]
    if classes and named != list(classes):
        raise DataError(f"{folder}: expected a model of the classes {_few(classes)}, found one of {_few(named)}")
    return folder


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "none"


def put(net: nn.Module, folder: Path, prefix: str = "", whole: bool = False) -> str:
    """Copy the matching weights of the folder's model into `net`, and return a description of how many matched.
    `prefix` precedes the weights' names in the folder.

    All processes call this function. DDP sends rank 0's weights to the others, but each process reads the file, because
    the folder is mounted on all nodes. Raises DataError if no weight matches, or, for a `whole` model, if any weight
    does not match.
    """
    theirs = {name.removeprefix(prefix): value for name, value in weights(folder).items()}
    own = net.state_dict()
    fits = {name: value for name, value in theirs.items() if name in own and own[name].shape == value.shape}
    if not any(own[name].is_floating_point() for name in fits):
        raise DataError(f"{folder}: expected a model like this one, found none of its weights there")
    net.load_state_dict(fits, strict=False)
    new = [name for name in own if name not in fits]
    if whole and new:
        raise DataError(
            f"{folder}: expected a model like this one, found no {new[0]} of its shape, of {len(new)} tensors"
        )
    rest = f"; new are {', '.join(new[:4])}{' and others' if len(new) > 4 else ''}" if new else ""
    return f"begins with {len(fits)} of {len(own)} tensors of the model in {folder.name}{rest}"
