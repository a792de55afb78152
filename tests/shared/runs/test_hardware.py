"""The hardware of a run: its GPUs, driver and CUDA, as the trainer reported its node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.runs.results.node_facts import hardware
from tests.fakes.world import World, trainers_folder
from tests.shared.models.test_promoting import trained

CPU = {"gpus": [], "driver": "", "cuda": "", "processor": "x86_64 EPYC", "cores": 8}
GPUS = {**CPU, "gpus": ["Tesla T4", "Tesla T4"], "driver": "535.183.01", "cuda": "12.6"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (GPUS, "2 of Tesla T4, driver 535.183.01, CUDA 12.6"),
        ({**GPUS, "driver": "", "cuda": ""}, "2 of Tesla T4, driver unknown, CUDA unknown"),
        ({"gpus": ["Tesla T4"]}, "1 of Tesla T4, driver unknown, CUDA unknown"),  # a row of the previous version
        (CPU, "x86_64 EPYC, 8 cores, no GPU"),
        ({**GPUS, "gpus": []}, "x86_64 EPYC, 8 cores, no GPU, although driver 535.183.01 is installed"),
        ({"gpus": "none", "processor": ""}, ""),
        ({}, ""),
    ],
)
def test_the_hardware_is_one_line(facts: dict[str, Any], words: str) -> None:
    """The line has the GPUs with driver and CUDA, else the processor; an unused GPU is mentioned."""
    assert hardware(facts) == words


def test_the_archived_run_says_what_it_trained_with(world: World) -> None:
    """The record and the manifest of an archived run have the line made from its node's file."""
    run = trained(world)
    folder = run.archive.output.partition("/")[2]
    facts, manifest = (
        json.loads(world.blobs.read("output", f"{folder}/{name}", 10**6))
        for name in ("outputs/environment.json", "manifest.json")
    )
    assert run.measured.hardware == manifest["run"]["hardware"] == hardware(facts) != ""
