"""Runs of a route whose model has a champion: dropped, trained again, and completed with a metric."""

from __future__ import annotations

import json

from shared.drops.retrain import train_again
from shared.jobs.route_model import RouteModel
from shared.kernel.drop_key import DropKey
from shared.runs.model import Run
from tests.fakes.world import World

RULE = RouteModel("churn", "test_accuracy", 0.02)
KEY = DropKey("mnist", "a")


def ends(
    world: World,
    run: str,
    accuracy: float,
    weights: bytes = b"w",
    processor: str = "x86_64 A",
    rows: bytes = b"",
    about: bytes = b"",
    name: str = "model.safetensors",
) -> Run:
    """Complete the run with this metric and these weights, and handle all messages that follow."""
    world.run_until_idle()
    world.job_goes(run, "Completed")
    folder = f"trainyard/{run}"
    world.blobs.remove("azureml-blobstore", [f"{folder}/models/model.pt"])
    world.blobs.put("azureml-blobstore", f"{folder}/models/{name}", weights)
    row = rows or json.dumps({"step": 1, "test_accuracy": accuracy}).encode()
    if about:
        world.blobs.put("azureml-blobstore", f"{folder}/models/model.json", about)
    world.blobs.put("azureml-blobstore", f"{folder}/metrics/metrics.jsonl", row)
    node = {"processor": processor, "packages": {"torch": "2.13.0"}}
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run}/outputs/environment.json", json.dumps(node).encode())
    world.deliver_all()
    settle(world)
    return world.runs.get(run).value


def settle(world: World) -> None:
    for _ in range(3):
        world.run_until_idle()
        world.clock.advance(5)


def dropped(world: World, accuracy: float, content: bytes = b"1") -> Run:
    """Return the run of a drop, completed with this metric."""
    world.upload("mnist/a/1.bin", content)
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(2):
        world.clock.advance(4)
        world.run_until_idle()
    stored = world.drops.get(KEY)
    assert stored is not None
    return ends(world, stored.value.run, accuracy)


def again(world: World, accuracy: float, key: str) -> Run:
    """Return another run on the same data."""
    return ends(world, train_again(world.system, KEY, key).name, accuracy)


def champion(world: World) -> str:
    model = world.models.get("churn")
    assert model
    version = world.models.version("churn", model.value.aliases["production"].number)
    assert version
    return version.run
