"""The imports of the server of tests/trainers/forked.py, which its forks need not repeat. One thread, because the
server forks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "trainers"))

import azure.data.tables
import azure.identity  # noqa: F401
import torch
import torch._dynamo  # the first step of an optimizer imports it
import torch.distributed.checkpoint
import torch.distributed.fsdp
import torch.distributed.run
import torch.nn.parallel  # noqa: F401
import torchvision  # noqa: F401
