"""A node with a GPU that PyTorch can't use: the training ends at once, and the message gives the remedy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import dist
import gpu
import pytest
import torch

VERSION = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\n"
JOB = {"AZUREML_RUN_ID": "r-1"}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The driver's files under /proc on a node with two GPUs."""
    for bus in ("0001:00:00.0", "0002:00:00.0"):
        (tmp_path / "gpus" / bus).mkdir(parents=True)
    (tmp_path / "version").write_text(VERSION)
    return tmp_path


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch that finds no GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_the_driver_is_read(node: Path, tmp_path: Path) -> None:
    """Both kinds of NVIDIA's kernel module report their version; a node without a driver has none."""
    assert gpu.driver(node) == "535.183.01"
    (node / "version").write_text(OPEN)
    assert gpu.driver(node) == "580.65.06"
    assert gpu.driver(tmp_path / "absent") == ""


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({**JOB, "TRAINYARD_GPUS": "4"}, 4),  # as the VM size says
        (JOB, 2),  # a job that the app did not send
        ({**JOB, "TRAINYARD_GPUS": "0"}, 0),
        ({"TRAINYARD_GPUS": "4"}, 0),  # no job
        ({**JOB, "TRAINYARD_GPUS": "4", "TRAINYARD_LOCAL_NODES": "1"}, 0),
    ],
)
def test_how_many_gpus_are_expected(node: Path, environ: dict[str, str], count: int) -> None:
    """The VM size takes precedence, then the driver; outside of Azure ML's jobs no GPU is expected."""
    assert gpu.expected(environ, node) == count


def test_a_gpu_that_is_not_used_ends_the_training(node: Path, blind: None) -> None:
    """On a node with a GPU that PyTorch does not see, `auto` is refused."""
    with pytest.raises(ValueError, match=r"this node has 4 GPUs, and PyTorch sees none: NVIDIA driver 535\.183\.01"):
        gpu.choose("auto", {**JOB, "TRAINYARD_GPUS": "4"}, node)
    gpu.choose("auto", JOB, node / "absent")  # a node without GPUs


@pytest.mark.parametrize(
    ("driver", "cuda", "says"),
    [
        (
            "535.183.01",
            "13.0",
            "535.183.01, PyTorch 2.13.0 built for CUDA 13.0, which needs driver 580 or newer",
        ),
        ("535.183.01", None, "PyTorch 2.13.0 built without CUDA. Use a build for CUDA 12.6"),
        ("", "13.0", "NVIDIA driver not found, PyTorch 2.13.0 built for CUDA 13.0. Run nvidia-smi"),
        ("535.183.01", "12.6", "PyTorch 2.13.0 built for CUDA 12.6. Run nvidia-smi"),
    ],
)
def test_the_message_names_the_cause_and_the_cure(driver: str, cuda: str | None, says: str) -> None:
    """The message has the driver, PyTorch's CUDA version, the package to install, and how to train on the
    processor."""
    told = gpu.why_unused(1, driver, "2.13.0", cuda)
    assert says in told
    assert told.startswith("this node has 1 GPU, ")
    assert told.endswith("or train on the processor: --device cpu (-p device=cpu of a submission or a drop)")


def test_the_processor_is_allowed_by_a_flag(
    node: Path, blind: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--device cpu hides the GPUs from PyTorch, and the training runs over gloo."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpu, "NVIDIA", node)
    parser = argparse.ArgumentParser()
    dist.add_arguments(parser)
    environ = {**JOB, "TRAINYARD_GPUS": "1"}
    with pytest.raises(ValueError, match="--device cpu"):
        dist.place(parser.parse_args([]), environ)
    assert dist.place(parser.parse_args(["--device", "cpu"]), environ).backend == "gloo"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
