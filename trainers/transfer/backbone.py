"""A torchvision network with a new last layer, and the source of its first weights."""

from __future__ import annotations

import pickle
import socket
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch
import torchvision
from files import DataError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision.models import get_model, get_model_weights
from transfer.images import View

# googlenet and inception_v3 train with additional outputs, and maxvit_t supports only one image size.
UNFIT = {"googlenet", "inception_v3", "maxvit_t"}
BACKBONES = [name for name in torchvision.models.list_models(module=torchvision.models) if name not in UNFIT]
FETCH_SECONDS = 60  # of silence; without a limit, a network that drops packets blocks a job for minutes


def view_for(name: str, size: int | None) -> View:
    """Return the view of torchvision's training for the backbone `name`, or this view at another `size` in pixels."""
    preset: Any = get_model_weights(name).DEFAULT.transforms()
    crop, resize = preset.crop_size[0], preset.resize_size[0]
    wanted = size or crop
    return View(round(resize * wanted / crop), wanted, list(preset.mean), list(preset.std))


def build(name: str, classes: int, size: int) -> nn.Module:
    """Return the backbone `name` with new weights and one logit per class: (N, 3, size, size) to (N, classes)."""
    only_this_size = {"image_size": size} if name.startswith("vit_") else {}
    net: nn.Module = get_model(name, weights=None, num_classes=classes, **only_this_size)
    return net


def head(net: nn.Module) -> tuple[str, nn.Module]:
    """Return the name and the module of the layer with the logits: in torchvision's backbones, the last layer of its
    type.
    """
    return [(name, part) for name, part in net.named_modules() if isinstance(part, nn.Linear | nn.Conv2d)][-1]


def load(net: nn.Module, name: str, source: str) -> None:
    """Load all but the head of `net` from `source`: `imagenet` (torchvision's best weights), or a file.

    A file holds a state_dict (.pt, .pth; only tensors are unpickled) or is a .safetensors file, for any number of
    classes. Raises DataError if the file cannot be read or downloaded, or does not belong to this backbone.
    """
    given = _fetch(name) if source == "imagenet" else _read(Path(source))
    skip = f"{head(net)[0]}."
    ours = {key: value for key, value in net.state_dict().items() if not key.startswith(skip)}
    # Files from before 2018 lack this counter, which nothing here reads.
    missing = [key for key in ours if key not in given and not key.endswith("num_batches_tracked")]
    if missing:
        raise DataError(f"{source}: expected the weights of {name}, found no {missing[0]} (of {len(missing)} missing)")
    for key in ours.keys() & given.keys():
        if given[key].shape != ours[key].shape:
            expected, found = (" x ".join(map(str, part[key].shape)) for part in (ours, given))
            raise DataError(f"{source}: expected {key} of {name} with {expected} values, found {found}")
    net.load_state_dict({key: given[key] for key in ours.keys() & given.keys()}, strict=False)


def _fetch(name: str) -> dict[str, Tensor]:
    weights: Any = get_model_weights(name).DEFAULT
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(FETCH_SECONDS)
    try:
        # Through the model, which renames entries of old files (densenet).
        return dict(get_model(name, weights=weights, progress=False).state_dict())
    except (URLError, TimeoutError, ConnectionError) as error:
        cache = Path(torch.hub.get_dir(), "checkpoints")
        raise DataError(
            f"expected torchvision's weights of {name} at {weights.url}, found no way there: {error}. Choose "
            f"--weights FILE with that file or another state_dict, --weights none (-p weights=none where the run was "
            f"asked for), or put the file into {cache}"
        ) from error
    finally:
        socket.setdefaulttimeout(before)


def _read(path: Path) -> dict[str, Tensor]:
    """Return the state_dict in a file; the file may also be a checkpoint ({"model": ...}, {"state_dict": ...}) or
    hold a DDP model."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError(f"--weights {path}: expected imagenet, none or a file with weights, found nothing") from None
    except (pickle.UnpicklingError, SafetensorError, EOFError, RuntimeError, KeyError, ValueError) as error:
        raise DataError(f"--weights {path}: expected a state_dict, found none: {str(error).splitlines()[0]}") from error
    for key in ("state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise DataError(f"--weights {path}: expected a state_dict (names and tensors), found {type(content).__name__}")
    return {key.removeprefix("module."): value for key, value in content.items()}


def freeze_all_but_head(net: nn.Module) -> None:
    """Freeze every layer but the head (feature extraction)."""
    net.requires_grad_(False)
    head(net)[1].requires_grad_(True)


def set_training(net: nn.Module, tune: str, freeze_batch_norm: bool) -> None:
    """Put `net` into training mode. In feature extraction the loaded backbone stays unchanged: batch normalization
    keeps its statistics, and dropout is off.
    """
    net.train(tune == "all")
    for part in net.modules():
        if freeze_batch_norm and isinstance(part, nn.BatchNorm2d):
            part.eval()
