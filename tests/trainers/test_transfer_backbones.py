"""transfer's networks: any torchvision network with a new head, and first weights from a file or from the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from files import DataError
from safetensors.torch import save_file
from torch import nn
from transfer import backbone

from tests.trainers.launch import free_port

pytestmark = pytest.mark.usefixtures("alone")  # for its one thread

# One of each family that torchvision has, the smallest.
FAMILIES = [
    *("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "mnasnet0_5", "mobilenet_v3_small"),
    *("regnet_y_400mf", "resnet18", "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "vgg11", "vit_b_32"),
]

NAME = "shufflenet_v2_x0_5"  # the smallest of all: 1.4 million weights


@pytest.mark.parametrize("name", FAMILIES)
def test_the_head_of_every_family_is_found(name: str) -> None:
    """The last layer has one logit per class; in feature extraction only its weights learn."""
    with torch.device("meta" if "regnet" not in name else "cpu"):
        net = backbone.build(name, 7, 224)
    head, layer = backbone.head(net)
    assert isinstance(layer, nn.Linear | nn.Conv2d)
    assert layer.weight.shape[0] == 7
    backbone.freeze_all_but_head(net)
    assert {key for key, p in net.named_parameters() if p.requires_grad} == {f"{head}.weight", f"{head}.bias"}


@pytest.mark.parametrize(
    ("name", "size", "resize", "crop"), [("resnet18", None, 256, 224), ("resnet18", 112, 128, 112)]
)
def test_images_are_shown_as_to_the_weights(name: str, size: int | None, resize: int, crop: int) -> None:
    """Size and normalisation are those of torchvision's weights; another size keeps the border's proportion."""
    view = backbone.view_for(name, size)
    assert (view.resize, view.size) == (resize, crop)


@pytest.fixture(scope="module")
def known() -> nn.Module:
    """Weights that were trained on 1,000 classes."""
    torch.manual_seed(3)
    return backbone.build(NAME, 1000, 224)


@pytest.mark.parametrize("form", ["state_dict.pth", "in a checkpoint.pt", "of DDP.pt", "model.safetensors"])
def test_a_file_gives_all_weights_but_the_heads(known: nn.Module, tmp_path: Path, form: str) -> None:
    """Files with any number of classes fit, in all common formats; the head stays new."""
    state, path = known.state_dict(), tmp_path / form
    if form == "model.safetensors":
        save_file(state, path)
    else:
        wrapped = {"in a checkpoint.pt": {"model": state, "epoch": 3}}
        wrapped["of DDP.pt"] = {f"module.{key}": value for key, value in state.items()}
        torch.save(wrapped.get(form, state), path)
    net: Any = backbone.build(NAME, 3, 224)
    head = net.fc.weight.detach().clone()
    backbone.load(net, NAME, str(path))
    ours = net.state_dict()
    assert all(torch.equal(ours[key], value) for key, value in state.items() if not key.startswith("fc."))
    assert torch.equal(net.fc.weight, head)


class Evil:
    """An object that creates a folder if a trusting reader unpickles it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.path,)


def test_a_file_that_does_not_fit_says_why(known: nn.Module, tmp_path: Path) -> None:
    """A missing file, a file without weights, with code, of another backbone or of another shape gives one line,
    and no code runs."""
    paths = {name: tmp_path / f"{name}.pt" for name in ("nowhere", "text", "evil", "list", "other", "shape")}
    paths["text"].write_text("weights")
    torch.save({"a": Evil(str(tmp_path / "made"))}, paths["evil"])
    torch.save([1, 2], paths["list"])
    torch.save(backbone.build("squeezenet1_1", 2, 224).state_dict(), paths["other"])
    torch.save(known.state_dict() | {"conv1.0.weight": torch.zeros(24, 1, 3, 3)}, paths["shape"])
    expected = {
        "nowhere": "expected imagenet, none or a file with weights, found nothing",
        "text": "expected a state_dict, found none",
        "evil": "expected a state_dict, found none",
        "list": "expected a state_dict (names and tensors), found list",
        "other": f"expected the weights of {NAME}, found no conv1.0.weight",
        "shape": f"expected conv1.0.weight of {NAME} with 24 x 3 x 3 x 3 values, found 24 x 1 x 3 x 3",
    }
    net = backbone.build(NAME, 2, 224)
    for name, path in paths.items():
        with pytest.raises(DataError) as error:
            backbone.load(net, NAME, str(path))
        assert expected[name] in str(error.value)
        assert str(path) in str(error.value)
    assert not (tmp_path / "made").exists()


def test_without_a_network_the_choices_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If weights cannot be downloaded, the message names their address, --weights FILE, --weights none, and where
    to put the file."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{free_port()}")  # where nobody listens
    with pytest.raises(DataError) as error:
        backbone.load(backbone.build(NAME, 2, 224), NAME, "imagenet")
    for words in (
        "download.pytorch.org/models/shufflenet",
        "--weights FILE",
        "--weights none",
        "-p weights=none",
        str(tmp_path),
    ):
        assert words in str(error.value)


def test_weights_in_torchs_cache_need_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`imagenet` loads weights by torchvision's own way: a file in torch's cache is used."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{free_port()}")
    cache = tmp_path / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    known: Any = backbone.build(NAME, 1000, 224)
    torch.save(known.state_dict(), cache / "shufflenetv2_x0.5-f707e7126e.pth")
    net: Any = backbone.build(NAME, 2, 224)
    backbone.load(net, NAME, "imagenet")
    assert torch.equal(net.conv1[0].weight, known.conv1[0].weight)


def test_the_backbone_of_feature_extraction_does_not_move() -> None:
    """With --tune head a training step changes neither weights nor running statistics of the backbone."""
    net = backbone.build(NAME, 2, 64)
    backbone.freeze_all_but_head(net)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    backbone.set_training(net, "head", freeze_batch_norm=False)
    net(torch.randn(4, 3, 64, 64)).sum().backward()
    torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1).step()
    head = backbone.head(net)[0]
    assert {key for key, value in net.state_dict().items() if not torch.equal(value, before[key])} == {
        f"{head}.weight",
        f"{head}.bias",
    }


@pytest.mark.parametrize("freeze", [False, True])
def test_batch_norm_can_be_kept_in_fine_tuning(freeze: bool) -> None:
    """With --freeze-batch-norm the statistics stay those of --weights, while every weight learns."""
    net: Any = backbone.build(NAME, 2, 64)
    backbone.set_training(net, "all", freeze)
    net(torch.randn(4, 3, 64, 64)).sum().backward()
    assert torch.equal(net.conv1[1].running_mean, torch.zeros(24)) == freeze
    assert net.conv1[0].weight.grad is not None
