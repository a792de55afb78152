"""torchvision's detection models by name, changed for sharing a batch among several processes.

Two parts of torchvision's models make the result depend on how a batch is split over processes:
- Batch normalisation. Weights that were trained with batch normalisation keep their statistics frozen, as in
  torchvision's pretrained models. Without such weights, group normalisation replaces it; detectors learn well with it
  from scratch (He, Girshick and Dollar 2018, arXiv:1811.08883; Wu and He 2018, arXiv:1803.08494).
- Padding. Each process would pad its images to its own largest image. `SharedPadding` uses the largest image of all.
With both changes, RetinaNet's loss is a mean over images, and does not depend on the number of processes. FCOS and SSD
divide by the objects of their share, and Faster R-CNN draws random samples, so these agree only in expectation.
"""

from __future__ import annotations

import math
import urllib.error
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as c10d
import torch.nn.functional as F
import warm_start
from files import DataError
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision.models import detection as torchvision_models
from torchvision.models import get_model, get_model_weights, list_models
from torchvision.models.detection import FCOS, FasterRCNN, RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.detection.transform import GeneralizedRCNNTransform
from torchvision.ops.feature_pyramid_network import LastLevelP6P7
from torchvision.ops.misc import FrozenBatchNorm2d

# Mask and keypoint models need more than boxes.
NAMES = [name for name in list_models(module=torchvision_models) if "mask" not in name and "keypoint" not in name]
# Models that also support other ResNets, and whether their pyramid leaves out the finest level.
ON_RESNETS: dict[str, tuple[Callable[..., nn.Module], bool]] = {
    "retinanet_resnet50_fpn": (RetinaNet, True),
    "fcos_resnet50_fpn": (FCOS, True),
    "fasterrcnn_resnet50_fpn": (FasterRCNN, False),
}
RESNETS = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"]
GROUPS = 32  # of channels, for group normalisation: the value of both papers


@dataclass(frozen=True)
class Plan:
    """The settings of a model. Sizes are image sizes in pixels; None keeps torchvision's own (800 and 1333).

    An image is scaled so that its shorter side is `min_size`, or its longer side `max_size`, whichever gives the
    smaller image. `anchor` is the side of RetinaNet's smallest boxes, in pixels of the scaled image; torchvision's is
    32.
    """

    name: str = "retinanet_resnet50_fpn"
    backbone: str | None = None
    classes: int = 1
    min_size: int | None = None
    max_size: int | None = None
    anchor: int | None = None
    frozen_norm: bool = False

    def check(self) -> None:
        """Raise ValueError, with the flag, for an impossible combination."""
        if self.name not in NAMES:
            raise ValueError(f"--model must be one of {', '.join(NAMES)}, not {self.name!r}")
        if self.backbone and self.name not in ON_RESNETS:
            raise ValueError(f"--backbone needs --model {', '.join(ON_RESNETS)}, not {self.name}")
        if self.anchor and not self.name.startswith("retinanet"):
            raise ValueError(f"--anchor needs --model retinanet_*, not {self.name}")
        if (self.min_size or self.max_size) and self.name.startswith("ssd"):
            raise ValueError(f"--min-size and --max-size don't go with {self.name}, which has one size")


def build(plan: Plan) -> nn.Module:
    """Return the model with new weights, in training mode. In evaluation mode its input is a list of images, float
    0 to 1 (3, H, W)."""
    sizes = {"min_size": plan.min_size, "max_size": plan.max_size}
    settings: dict[str, Any] = {name: value for name, value in sizes.items() if value}
    if plan.anchor:
        settings["anchor_generator"] = _anchors(plan.anchor)
    if plan.backbone:
        family, coarse = ON_RESNETS[plan.name]
        # As torchvision builds them on ResNet-50. RetinaNet and FCOS go without P2 and have P6 and P7.
        levels = {"returned_layers": [2, 3, 4], "extra_blocks": LastLevelP6P7(256, 256)} if coarse else {}
        body = resnet_fpn_backbone(
            backbone_name=plan.backbone, weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5, **levels
        )
        net = family(body, num_classes=plan.classes + 1, **settings)
    else:
        net = get_model(plan.name, weights=None, weights_backbone=None, num_classes=plan.classes + 1, **settings)
    _renormalise(net, plan.frozen_norm)
    return net


def _anchors(smallest: int) -> AnchorGenerator:
    """Return RetinaNet's anchors: three sizes per octave, one octave per level, three shapes (Lin et al. 2017,
    arXiv:1708.02002)."""
    sides = [smallest * 2**level for level in range(5)]
    sizes = tuple((side, int(side * 2 ** (1 / 3)), int(side * 2 ** (2 / 3))) for side in sides)
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


def _renormalise(module: nn.Module, frozen: bool) -> None:
    """Replace batch normalization by frozen batch normalization or by group normalization."""
    for name, part in module.named_children():
        if isinstance(part, nn.BatchNorm2d):
            channels = part.num_features
            new = (
                FrozenBatchNorm2d(channels, part.eps) if frozen else nn.GroupNorm(math.gcd(GROUPS, channels), channels)
            )
            setattr(module, name, new)
        else:
            _renormalise(part, frozen)


class SharedPadding(GeneralizedRCNNTransform):  # type: ignore[misc]  # torchvision has no types
    """torchvision's scaling and padding, except that in training every process pads its batches to one common size."""

    @classmethod
    def put_into(cls, net: nn.Module) -> None:
        """Replace the model's own transform."""
        old: Any = net.transform
        new = cls(old.min_size, old.max_size, old.image_mean, old.image_std, old.size_divisible, old.fixed_size)
        net.transform = new

    def batch_images(self, images: list[Tensor], size_divisible: int = 32) -> Tensor:
        """Pad one process's scaled images (3, H, W) to (N, 3, H', W'). In training every process must call this
        method."""
        if self.training:
            largest = torch.tensor([list(image.shape[1:]) for image in images]).amax(0)
            c10d.all_reduce(largest, op=c10d.ReduceOp.MAX)
            height, width = (largest - torch.tensor(images[0].shape[1:])).tolist()
            images = [F.pad(images[0], (0, width, 0, height)), *images[1:]]
        padded: Tensor = super().batch_images(images, size_divisible)
        return padded


def pretrained(source: str, model: str, folder: Path) -> dict[str, Tensor]:
    """Return weights from a file (which may be in `folder`), or torchvision's weights of `model` with this name
    (DEFAULT is allowed).

    Raises DataError for a file that holds no weights, a name that does not exist, and without a network.
    """
    for path in (Path(source), folder / source):
        if path.is_file():
            return _file(path)
    known = get_model_weights(model)
    if source not in known.__members__:
        raise DataError(
            f"{source}: expected a file, none, or one of {', '.join(known.__members__)}, found no such file"
        )
    weights = known[source]
    try:
        return dict(weights.get_state_dict(progress=False, check_hash=True))
    except (urllib.error.URLError, OSError, RuntimeError) as error:
        raise DataError(f"{source}: expected {weights.url}, found {error}; download it and give the file") from error


def _file(path: Path) -> dict[str, Tensor]:
    try:
        is_safe = path.suffix == ".safetensors"
        content = load_file(path) if is_safe else torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DataError(f"{path}: expected weights saved by torch.save, found {type(error).__name__}") from error
    content = content.get("model", content) if isinstance(content, dict) else content
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise DataError(f"{path}: expected names with tensors, found something else")
    return content


def put(source: str, weights: dict[str, Tensor], module: nn.Module) -> str:
    """Load `weights` into `module`, except tensors with another shape, for example heads for other classes. Returns the
    parts that stay new.

    Raises DataError if a tensor is missing, or if most tensors have another shape.
    """
    # Whole classifiers have their features under that name; the first convolution is then features.0 of the file.
    weights = {name.removeprefix("features."): value for name, value in weights.items()}
    own = module.state_dict()
    fitting = {name: value for name, value in weights.items() if name in own and own[name].shape == value.shape}
    new = [name for name in own if name not in fitting]
    if absent := [name for name in new if name not in weights]:
        raise DataError(f"{source}: expected weights for this model, found no {absent[0]} and {len(absent) - 1} more")
    if len(new) > len(fitting):
        raise DataError(f"{source}: expected weights for this model, found {len(new)} of {len(own)} with other shapes")
    module.load_state_dict(fitting, strict=False)
    return f"{source}: {len(fitting)} tensors loaded" + (f", new: {', '.join(new)}" if new else "")


def has_batch_norm(weights: dict[str, Tensor]) -> bool:
    """Return whether the weights contain statistics of batch normalization. These statistics stay frozen."""
    return any(name.endswith("running_mean") for name in weights)


def backbone_name(plan: Plan) -> str:
    """Return the name of the torchvision classifier below the model; the classifier's weights fit the model's body."""
    return plan.backbone or next(name for name in ("resnet50", "mobilenet_v3_large", "vgg16") if name in plan.name)


def body(net: nn.Module) -> nn.Module:
    """Return the part below the feature pyramid, which can be pretrained as a classifier."""
    backbone: Any = net.backbone
    below: nn.Module = backbone.body if hasattr(backbone, "body") else backbone
    return below


def freeze(net: nn.Module, trainable: int) -> None:
    """Freeze all but the last `trainable` stages of the body; 0 freezes the whole body.

    A ResNet has five stages: conv1 with bn1, then layer1 to layer4. Other bodies are frozen as a whole or not at all.
    """
    part = body(net)
    stages = [name for name, _ in part.named_children() if name.startswith("layer")]
    kept = {"conv1", "bn1", *stages[: len(stages) - trainable]} if stages and trainable else None
    for name, weights in part.named_parameters():
        if trainable < 5 and (kept is None or name.partition(".")[0] in kept):
            weights.requires_grad_(False)


def load(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """Return the trained model in `folder`, ready for use, and the content of its model.json."""
    facts = warm_start.facts(folder)
    net = build(Plan(**facts["plan"]))
    net.load_state_dict(warm_start.weights(folder))
    return net.eval(), facts


def script(net: nn.Module) -> torch.jit.ScriptModule:
    """Return the model as TorchScript. The input is a list of images, the output is (losses, detections), and no code
    of this module is needed.

    torch.export cannot export the model, because the number of remaining boxes is known only at run time
    (torchvision.ops.batched_nms).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, and says so for every part
        scripted: torch.jit.ScriptModule = torch.jit.script(net)
    return scripted
