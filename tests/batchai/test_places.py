"""The location of a mount's files, and the result of a drop with a Batch AI job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.drops.model import DropState
from shared.jobs.batchai.adopt import Order, adopt
from shared.jobs.batchai.job import Beside
from shared.jobs.location import Location
from shared.jobs.readers.place_text import place_text
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Place
from tests.batchai.documents import gloo, practitioner, project
from tests.fakes.world import World, trainers_folder

BESIDE = "azureml://datastores/workspaceblobstore/paths/batchai/scripts/"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def close(world: World) -> None:
    """Deliver the events, and let the drops be quiet for long enough."""
    world.deliver_all()
    for _ in range(3):
        world.clock.advance(4)
        world.run_until_idle()


def place_of(world: World, order: Order) -> tuple[str, bool]:
    """The folder where the recipe's scripts are expected, and whether something is missing there."""
    adopted = adopt(world.system, order)
    return place_text(adopted.layer.job.data["scripts"].path), bool(adopted.absent)


def test_a_mounts_files_are_looked_for_in_order(world: World) -> None:
    """The order is: an explicit mount, the drop's folder, a datastore of that name, and the workspace's own
    storage."""
    folder = Place("drops", "mnist/a/")
    assert place_of(world, Order(gloo(), folder=folder)) == (BESIDE, True)
    world.blobs.put(world.jobs.datastores["workspaceblobstore"], "batchai/scripts/x")
    assert place_of(world, Order(gloo(), folder=folder)) == (BESIDE, False)
    world.jobs.datastores["scripts"] = "old-share"
    world.blobs.put("old-share", "pytorch/mnist_trainer.py")
    assert place_of(world, Order(gloo(), folder=folder)) == ("azureml://datastores/scripts/paths/", False)
    world.blobs.put("drops", "mnist/a/scripts/pytorch/mnist_trainer.py")
    assert place_of(world, Order(gloo(), folder=folder)) == ("azureml://datastores/drops/paths/mnist/a/scripts/", False)
    told = Order(gloo(), mounts={"scripts": "drops/mnist/b"}, folder=folder)
    assert place_of(world, told) == ("azureml://datastores/drops/paths/mnist/b/", True)


def test_a_place_that_is_none_is_refused(world: World) -> None:
    """A --mount path that can't be a datastore's path is a fault with its location."""
    adopted = adopt(world.system, Order(gloo(), mounts={"scripts": "../x"}))

    assert [problem.path for problem in adopted.problems] == ["mounts.scripts"]


@pytest.mark.parametrize("name", ["..", "a/../../b", "${{name}}", "a\nb"])
def test_a_share_that_can_be_no_folder_is_refused(world: World, name: str) -> None:
    """The name of a container or a project's share that can't be part of a path is a fault with its location."""
    mount = {"accountName": "ours", "containerName": name, "relativeMountPath": "x"}
    job = gloo()
    job["properties"]["mountVolumes"] = {"azureBlobFileSystems": [mount]}
    assert [p.path for p in adopt(world.system, Order(job)).problems] == [f"mounts.{name}"]
    described = Order(gloo(), Beside(project=project(logFileShareName=name)))
    assert f"mounts.{name}" in [p.path for p in adopt(world.system, described).problems]


def test_a_drop_of_batch_ais_files_becomes_their_job(world: World) -> None:
    """The project.json and the script beside the job.json belong to the job; the drop shows how its files were
    read."""
    described = project(experimentName="ants", clusterName="cpu-cluster")
    world.upload("mnist/a/datalake/hymenoptera_data/ant.jpg")
    world.upload("mnist/a/PyTorchTransferLearning.py", b"print()")
    world.upload("mnist/a/project.json", json.dumps(described).encode())
    world.upload("mnist/a/job.json", json.dumps(practitioner()).encode())
    close(world)

    drop = world.system.drops.get(DropKey("mnist", "a")).value  # type: ignore[union-attr]
    assert (drop.state, "Read as a Batch AI job" in drop.why) == (DropState.SEALED, True), drop.why
    job = drop.request
    assert job.experiment == "ants"
    assert job.data["datalake"].path == Location("drops", "mnist/a/datalake/")
    assert "logs" not in job.inputs


def test_a_drop_without_the_files_of_a_mount_is_rejected_with_what_to_do(world: World) -> None:
    """The reason names the mount and the folders where its files may go; an Azure ML job.json still works."""
    world.upload("mnist/a/readme.md")
    world.upload("mnist/a/job.json", json.dumps(gloo()).encode())
    world.upload("mnist/b/1.bin")
    world.upload("mnist/b/job.json", b'{"inputs": {"epochs": 2},\n}')
    close(world)

    refused = world.system.drops.get(DropKey("mnist", "a")).value  # type: ignore[union-attr]
    assert (refused.state, "/scripts is empty: copy its files to" in refused.why) == (DropState.REJECTED, True)
    other = world.system.drops.get(DropKey("mnist", "b")).value  # type: ignore[union-attr]
    assert "Batch AI" not in other.why


def test_a_secret_in_a_drops_job_file_is_told(world: World) -> None:
    """The secret stays in the drop, whatever happens to the job, so the drop names the secret without its value."""
    described = practitioner()
    described["properties"]["secrets"] = [{"name": "TOKEN", "value": "hunter2"}]
    folder = Place("drops", "mnist/a/")
    told = adopt(world.system, Order(described, folder=folder)).summary
    assert "Everybody who may read the drop can read it" in told
    assert "hunter2" not in told
    assert "Everybody who may read" not in adopt(world.system, Order(practitioner(), folder=folder)).summary
