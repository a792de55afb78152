"""The software and hardware of a job's training: Python, packages, processor. Azure ML keeps a job's files in
./outputs.

`promote` signs these facts. If `reproduce` gets different weights, it compares the facts of both runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import gpu
import torch

FILE = Path("outputs", "environment.json")


def write(environ: Mapping[str, str]) -> None:
    """Write the facts, inside a job of Azure ML only. If the node can't write there, the training continues without
    the file."""
    if not environ.get("AZUREML_RUN_ID"):
        return
    try:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(facts(), indent=1) + "\n", "utf-8")
    except OSError as error:
        print(f"could not write {FILE}: {error}", flush=True)


def facts() -> dict[str, Any]:
    """Return Python, system, processor, GPUs with driver and CUDA version, and for every installed package its
    version, its licence as the package states it, and the SHA-256 of its list of files (RECORD)."""
    installed = sorted(
        ((each.metadata["Name"], each) for each in metadata.distributions() if each.metadata["Name"]),
        key=lambda pair: pair[0].lower(),
    )
    licences = {name: licence(each.metadata) for name, each in installed}
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "gpus": gpu.names(),
        "driver": gpu.driver(),  # NVIDIA's, '' without one
        "cuda": torch.version.cuda or "",  # that PyTorch was built for, '' for a build for processors
        "packages": {name: each.version for name, each in installed},
        "licences": {name: text for name, text in licences.items() if text},
        "records": {
            name: hashlib.sha256(record.encode()).hexdigest()
            for name, each in installed
            if (record := each.read_text("RECORD"))
        },
    }


def licence(about: Any) -> str:
    """Return a package's licence: its SPDX expression, else its classifiers, else the first line of its licence
    text."""
    if expression := about.get("License-Expression"):
        return str(expression)[:200]
    classifiers = [str(each) for each in about.get_all("Classifier") or [] if str(each).startswith("License ::")]
    if classifiers:
        return ", ".join(each.rpartition(" :: ")[2] for each in classifiers)[:200]
    return str(about.get("License") or "").strip().partition("\n")[0][:200]


def processor() -> str:
    """Return the processor's name from the system, for example `x86_64 Intel(R) Xeon(R) ...`."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{platform.machine()} {name or platform.processor()}".strip()
