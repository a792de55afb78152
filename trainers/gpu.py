"""The GPUs of this node: their expected number, their driver, and the reason why PyTorch can't use them.

Azure ML's GPU nodes have NVIDIA's driver 535 (https://github.com/rapidsai/deployment/issues/719). A PyTorch built for a
CUDA version that needs a newer driver finds no GPU there and raises no error: the training would run on the processor,
at the price of a GPU.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch

GPUS = "TRAINYARD_GPUS"  # the number of GPUs of this job's VM size; set by the app
LOCAL = "TRAINYARD_LOCAL_NODES"  # set on the nodes of the local cloud, which have this machine's GPUs
NVIDIA = Path("/proc/driver/nvidia")
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
LEAST_DRIVER = {11: 450, 12: 525, 13: 580}
CURE = "pip install torch torchvision --index-url https://download.pytorch.org/whl/cu126"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    words = "auto: the GPU of a node that has one; cpu: the processor, also on a node with a GPU (default: auto)"
    parser.add_argument("--device", choices=["auto", "cpu"], default="auto", help=words)


def choose(device: str, environ: Mapping[str, str], nvidia: Path = NVIDIA) -> None:
    """Hide the GPUs from PyTorch if `device` is cpu. Raises ValueError if the node has a GPU that PyTorch can't use."""
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before the first call of CUDA, which reads it once
    elif (count := expected(environ, nvidia)) and not torch.cuda.is_available():
        raise ValueError(why_unused(count, driver(nvidia), torch.__version__, torch.version.cuda))


def expected(environ: Mapping[str, str], nvidia: Path = NVIDIA) -> int:
    """Return the number of GPUs of this node from the VM size, or else from the driver; 0 outside Azure ML."""
    if environ.get(LOCAL) or not environ.get("AZUREML_RUN_ID"):
        return 0
    told = environ.get(GPUS, "")
    return int(told) if told.isdecimal() else len(list(nvidia.glob("gpus/*")))


def driver(nvidia: Path = NVIDIA) -> str:
    """Return the version of NVIDIA's driver, for example 535.183.01, or '' without a driver."""
    try:
        found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", (nvidia / "version").read_text("utf-8"))
    except OSError:
        return ""
    return found[1] if found else ""


def why_unused(count: int, driver: str, build: str, cuda: str | None) -> str:
    """Return the message about GPUs that PyTorch does not see: the driver, PyTorch's CUDA version, and the cure."""
    least = LEAST_DRIVER.get(int(cuda.partition(".")[0])) if cuda else None
    if not cuda:
        fault, cure = "built without CUDA", f"Use a build for CUDA 12.6 ({CURE})"
    elif least and driver and int(driver.partition(".")[0]) < least:
        fault, cure = f"built for CUDA {cuda}, which needs driver {least} or newer", f"Use one for CUDA 12.6 ({CURE})"
    else:
        fault, cure = (
            f"built for CUDA {cuda}",
            "Run nvidia-smi in a job there to see whether the node is broken",
        )
    return (
        f"this node has {count} GPU{'s' if count > 1 else ''}, and PyTorch sees none: NVIDIA driver "
        f"{driver or 'not found'}, PyTorch {build} {fault}. {cure}, or train on the processor: --device cpu "
        "(-p device=cpu of a submission or a drop)"
    )


def names() -> list[str]:
    """Return the names of PyTorch's GPUs."""
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


def described() -> str:
    """Return a description for the log: `2 of Tesla T4, driver 535.183.01, CUDA 12.6`, or '' if PyTorch uses no
    GPU."""
    found = names()
    return f"{len(found)} of {found[0]}, driver {driver()}, CUDA {torch.version.cuda}" if found else ""
