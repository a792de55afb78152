"""Training with more epochs, and starting from an earlier model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import warm_start
from checkpoint import OwnLength
from files import DataError
from torch import nn


def one_cycle(steps: int) -> tuple[torch.optim.SGD, torch.optim.lr_scheduler.OneCycleLR]:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps, cycle_momentum=False)


def rates(steps: int, of: int) -> list[float]:
    optimizer, schedule = one_cycle(of)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("longer", [20, 50])
def test_a_schedule_goes_on_over_its_own_length(longer: int) -> None:
    """After 12 steps of 20, a training of 20 or of 50 steps has the rates of a training that had this length from
    the start."""
    optimizer, schedule = one_cycle(20)
    for _ in range(12):
        optimizer.step()
        schedule.step()
    saved = OwnLength(schedule).state_dict()
    optimizer, schedule = one_cycle(longer)
    OwnLength(schedule).load_state_dict(saved)
    found = []
    for _ in range(12, 18):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert found == pytest.approx(rates(18, longer)[12:])


def left_behind(folder: Path, net: nn.Module) -> Path:
    folder.mkdir()
    torch.save(net.state_dict(), folder / "model.pt")
    (folder / "model.json").write_text(json.dumps({"weights": "model.pt"}))
    return folder


def net(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, classes))


def test_what_fits_is_taken(tmp_path: Path) -> None:
    """Weights of the same name and shape come from the earlier model; a head for other classes stays new, and is
    named."""
    old, new = net(3), net(5)
    head = new.state_dict()["2.weight"].clone()
    said = warm_start.put(new, left_behind(tmp_path / "old", old))
    assert torch.equal(new.state_dict()["0.weight"], old.state_dict()["0.weight"])
    assert torch.equal(new.state_dict()["2.weight"], head)
    assert said == "begins with 2 of 4 tensors of the model in old; new are 2.weight, 2.bias"


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    """A folder without a model, or with a model without matching weights, is bad data, and is named."""
    with pytest.raises(DataError, match="expected a model with its"):
        warm_start.put(net(3), tmp_path)
    with pytest.raises(DataError, match="expected a model like this one"):
        warm_start.put(net(3), left_behind(tmp_path / "old", nn.Conv2d(1, 1, 3)))


def test_only_the_same_model_is_tested(tmp_path: Path) -> None:
    """With 0 epochs, only a complete model with the same classes in the same order is tested."""
    old = left_behind(tmp_path / "old", net(3))
    facts = json.loads((old / "model.json").read_text())
    (old / "model.json").write_text(json.dumps({**facts, "classes": ["ant", "bee"]}))
    assert warm_start.only_tests(0, old, ["ant", "bee"]) == old
    assert warm_start.only_tests(1, None) is None
    with pytest.raises(DataError, match="of the classes bee, ant, found one of ant, bee"):
        warm_start.only_tests(0, old, ["bee", "ant"])
    with pytest.raises(DataError, match="expected one in --from-model, found none"):
        warm_start.only_tests(0, None)
    with pytest.raises(DataError, match=r"found no 2.weight of its shape, of 2 tensors"):
        warm_start.put(net(5), old, whole=True)


class _Runs:
    """An object whose pickle would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("it ran",)


def test_a_pickle_is_refused_with_our_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says which format to save instead; torch's own message advises to trust the file."""
    torch.save({"weight": _Runs()}, tmp_path / "model.pt")
    with pytest.raises(DataError, match="a pickle that may run code") as refused:
        warm_start.read(tmp_path / "model.pt")
    assert "weights_only" not in str(refused.value)
    assert "safetensors" in str(refused.value)
    assert capsys.readouterr().out == ""
