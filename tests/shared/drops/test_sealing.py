"""What an upload becomes: drops and their generations, job files, and rejected names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.drops import collect
from shared.drops.messages import CheckDrop
from shared.drops.model import DropState
from shared.jobs.location import Asset, Location
from shared.jobs.readers.azureml import read_job
from shared.jobs.route import JobFileRule
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blob, Place
from tests.fakes.ports import FakeBlobs
from tests.fakes.world import ROUTE, World, trainers_folder

A = DropKey("mnist", "a")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def drop_state(world: World, key: DropKey = A) -> tuple[DropState, str, str]:
    drop = world.drops.rows[key].value
    return drop.state, drop.code, drop.why


def test_overwriting_makes_a_new_generation(world: World) -> None:
    """New content in a sealed drop creates its next generation and a second run; the same bytes create nothing."""
    world.complete("1.bin")
    world.clock.advance(10)
    world.complete("1.bin")
    assert drop_state(world)[1] == "unchanged"
    assert len(world.runs.rows) == 1

    world.clock.advance(10)
    world.upload("mnist/a/1.bin", b"other")
    world.complete()
    assert world.drops.rows[A].value.generation == 2
    assert len(world.jobs.jobs) == 2


def test_late_duplicates_of_a_sealed_drop_cost_one_read(world: World) -> None:
    """Events repeated long after the sealing write nothing."""
    events = [world.upload("mnist/a/1.bin"), world.upload("mnist/a/2.bin")]
    world.clock.advance(2)
    world.complete()
    before = world.drops.rows[A]
    for event in events * 3:
        world.deliver(event)
    world.run_until_idle()

    assert world.drops.rows[A] == before


def test_an_unknown_route_is_told_which_routes_there_are(world: World) -> None:
    """The drop is rejected with the list of routes, and becomes a run once an administrator adds the route."""
    key = DropKey("minst", "a")
    world.upload("minst/a/1.bin")
    world.deliver_all()
    world.run_until_idle()
    assert drop_state(world, key) == (DropState.REJECTED, "unknown_route", "There is no route 'minst'. Routes: mnist.")

    routes = {**world.system.routes, "minst": replace(ROUTE, name="minst")}
    world.system = replace(world.system, routes=routes)
    world.clock.advance(61)
    world.reconcile()
    world.run_until_idle()
    assert drop_state(world, key)[0] is DropState.SEALED


@pytest.mark.parametrize(
    ("job_file", "why"),
    [
        (
            "inputs:\n  epochs: 3\nlimits:\n  timeout: soon\n",
            "job.yaml line 4: limits.timeout: is 'soon'; use whole seconds",
        ),
        ("inputs: {epochs: 3\n", "job.yaml line 2: not valid YAML"),
        ("- 1\n", "job.yaml line 1: expected the keys of an Azure ML command job, found list."),
        ("a: &x 1\nb: *x\n", "job.yaml line 2: YAML aliases (*x)"),
        ("\xff\xfe", "job.yaml is not UTF-8 text: byte 0"),
        ("type: automl\n", "job.yaml line 1: type: is 'automl'; Trainyard runs command jobs, sweeps and pipelines."),
        ("code: ./src\n", "job.yaml line 1: code: a drop can't have its own on this route"),
        ("experiment_name: ../x\n", "job.yaml line 1: experiment_name: is '../x'"),
        ("compute: azureml:../x\n", "job.yaml line 1: compute: is '../x'"),
        ("inputs:\n  extra:\n    path: ../../other\n", "job.yaml line 3: inputs.extra.path"),
        ("inputs:\n  extra:\n    path: /etc\n", "is on your machine"),
        (
            "outputs:\n  models:\n    path: azureml://datastores/drops/paths/x/\n",
            "outputs.models.path: is in the drops container",
        ),
        ("command: ''\n", "job.yaml line 1: command: Missing data"),
        ("environment_variables: {D: 2024-01-01}\n", "neither text nor number"),
        ("inputs: {x: !!binary aGVsbG8=}\n", "neither text nor number"),
        (
            "resources: {instance_count: 5}\n",
            "job.yaml line 1: resources.instance_count: is 5; use a whole number from 1",
        ),
        ("resources: {instance_count: '9'}\n", "job.yaml line 1: resources.instance_count: is 9"),
        ("resources: {instance_count: true}\n", "job.yaml line 1: resources.instance_count: is True"),
        ("distribution: {process_count_per_instance: 1000000}\n", "is 1000000; use a whole number from 1 to 64"),
        ("limits: {timeout: '999999999'}\n", "limits.timeout: is 999999999; use whole seconds from 1 to 3600."),
        ("outputs: [a]\n", "job.yaml line 1: outputs: must be a mapping, it is a list."),
        ("outputs:\n  ..\\x: {}\n", "use letters, digits, dashes and underscores in its name."),
        ("compute: gpu-cluster\n", "job.yaml line 1: compute: is 'gpu-cluster'; choose one of cpu-cluster."),
        ("identity: {type: managed}\n", "job.yaml line 1: identity: is not allowed here"),
        ("resources: {docker_args: --privileged}\n", "resources.docker_args: is not allowed here"),
        ("a: 1\na: 2\n", "job.yaml line 2: the key 'a' is there twice"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "nested more than 30 deep"),
        ("limits: {timeout: 3601}\n", "job.yaml line 1: limits.timeout: is 3601; use whole seconds from 1 to 3600."),
    ],
)
def test_a_bad_job_file_is_explained_by_line(world: World, job_file: str, why: str) -> None:
    """The drop is rejected with the line and the reason, and a corrected file creates its run."""
    world.complete("1.bin", job_file=job_file)
    state, code, told = drop_state(world)
    assert (state, code) == (DropState.REJECTED, "bad_job_file")
    assert why in told
    assert not world.jobs.jobs

    world.clock.advance(10)
    world.complete(job_file="inputs:\n  epochs: 7\n")
    assert world.jobs.jobs[world.only_run().name].spec["inputs"]["epochs"] == 7


def test_a_job_file_overrides_the_template(world: World) -> None:
    """The job file's keys override route and template, inputs are merged, and relative paths are inside the drop."""
    job_file = (
        "inputs:\n  extra: {type: uri_folder, path: ./more/}\nresources: {instance_count: 3}\nexperiment_name: mine\n"
    )
    world.complete("1.bin", job_file=job_file)
    run = world.only_run()
    job = world.jobs.jobs[run.name].spec

    assert (run.asked.nodes, run.asked.experiment) == (3, "mine")
    assert job["inputs"]["extra"]["path"] == "azureml://datastores/drops/paths/mnist/a/more/"
    assert job["inputs"]["data"]["path"] == "azureml://datastores/drops/paths/mnist/a/"
    assert job["inputs"]["epochs"] == 2


def test_a_template_may_have_neither_inputs_nor_outputs(tmp_path: Path) -> None:
    """The job has only the keys that the template and the job file name, because Azure ML refuses empty ones."""
    bare = {"command": "true", "environment": "azureml:e:1"}
    world = World(trainers_folder(tmp_path), [replace(ROUTE, template=read_job(bare))])
    world.complete("1.bin")
    job = world.jobs.jobs[world.only_run().name].spec

    assert not {"inputs", "outputs"} & job.keys()
    assert None not in job.values()


def test_a_job_file_keeps_the_limits_that_it_does_not_name(world: World) -> None:
    """Empty limits or other resources in a job file keep the route's timeout and nodes."""
    world.complete("1.bin", job_file="limits: {}\nresources: {shm_size: 4g}\n")
    job = world.jobs.jobs[world.only_run().name].spec

    assert job["limits"] == {"timeout": 3600}
    assert job["resources"] == {"instance_count": 2, "shm_size": "4g"}


@pytest.mark.parametrize(
    ("rule", "job_file", "allowed"),
    [
        (JobFileRule(allowed=False), "inputs: {epochs: 3}", False),
        (JobFileRule(environments=(Asset("good:1"),)), "environment: azureml:bad:1", False),
        (JobFileRule(environments=(Asset("good:1"),)), "environment: azureml:good:1", True),
        (JobFileRule(environments=(Asset("good:1"),)), "inputs: {epochs: 3}", True),
    ],
)
def test_an_administrator_limits_job_files(tmp_path: Path, rule: JobFileRule, job_file: str, allowed: bool) -> None:
    """A route may forbid job files, or list the environments that they may use."""
    world = World(trainers_folder(tmp_path), [replace(ROUTE, job_file=rule)])
    world.complete("1.bin", job_file=job_file)

    assert (drop_state(world)[0] is DropState.SEALED) == allowed


def test_two_job_files_are_one_too_many(world: World) -> None:
    """Choosing one of two job files would be a guess."""
    world.upload("mnist/a/job.json", b"{}")
    world.complete("1.bin", job_file="{}")

    assert drop_state(world)[2] == "The drop contains job.yaml and job.json; keep only one of them."


def test_a_single_archive_is_a_file_input(world: World) -> None:
    """An archive directly in the route's folder becomes a run at once, with a uri_file as its data."""
    world.upload("mnist/digits.zip")
    world.deliver_all()
    world.run_until_idle()

    job = world.jobs.jobs[world.only_run().name].spec
    assert job["inputs"]["data"] == {"type": "uri_file", "path": "azureml://datastores/drops/paths/mnist/digits.zip"}


class Interrupted:
    """Blobs that let something happen between a listing and its use."""

    def __init__(self, blobs: FakeBlobs, then: Callable[[], None]) -> None:
        self.blobs, self.then = blobs, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self.blobs, name)

    def paged(self, place: Place, *rest: Any) -> Iterator[tuple[str, Blob]]:
        yield from list(self.blobs.paged(place, *rest))
        self.then()


def test_an_archive_beside_its_job_file_is_a_file_input(world: World) -> None:
    """The upload of `drop digits.zip -p epochs=9 --nodes 1` trains on the archive, with these parameters and nodes."""
    job = {
        "inputs": {"data": {"type": "uri_file", "path": "digits.zip"}, "epochs": 9},
        "resources": {"instance_count": 1},
    }
    world.complete("digits.zip", job_file=json.dumps(job))
    run = world.only_run()
    data = run.asked.request.data["data"]
    assert (data.kind, data.path) == ("file", Location("drops", "mnist/a/digits.zip"))
    assert (run.asked.parameters["epochs"], run.asked.nodes) == (9, 1)


def test_an_upload_during_the_look_that_closes_is_not_lost(world: World) -> None:
    """A file and event that arrive between the listing and the sealing are trained in the next generation."""

    def meanwhile() -> None:
        if "mnist/a/2.bin" not in world.blobs.containers["drops"]:
            world.upload("mnist/a/2.bin")
            collect.note_upload(world.system, "mnist/a/2.bin", world.clock())

    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    collect.note_upload(world.system, "mnist/a/1.bin", world.clock())
    look = replace(world.system, blobs=Interrupted(world.blobs, meanwhile))
    collect.note_upload(look, "mnist/a/_SUCCESS", world.clock())
    assert (world.drops.rows[A].value.generation, world.drops.rows[A].value.blobs) == (1, 2)

    world.settle()
    assert (world.drops.rows[A].value.generation, world.drops.rows[A].value.blobs) == (2, 3)


def test_a_late_marker_is_no_new_content(world: World) -> None:
    """A drop that closed after a quiet period is not trained again when its marker arrives, and that marker does
    not close later content."""
    world.upload("mnist/a/1.bin")
    world.settle()
    world.complete()
    world.clock.advance(20)
    assert len(world.runs.rows) == 1

    world.upload("mnist/a/2.bin")
    world.deliver_all()
    world.run_until_idle()
    assert drop_state(world)[0] is DropState.OPEN


def test_events_for_blobs_that_are_gone(world: World) -> None:
    """A drop whose blobs were all deleted before it closed is forgotten."""
    world.upload("mnist/a/1.bin")
    world.deliver_all()
    world.blobs.delete("drops", "mnist/a/1.bin")
    world.run_until_idle()
    world.clock.advance(61)
    world.run_until_idle()

    assert not world.drops.rows
    assert not world.queues.visible("drop-events")


@pytest.mark.parametrize(
    "name",
    ["x" * 1024, "mnist/" + "n" * 300 + "/1", "mnist//1", "mnist/a\x01/1", "stray.txt", "mnist/12:30/1", "mnist/a@b/1"],
)
def test_unusable_names_are_rejected_with_the_reason(world: World, name: str) -> None:
    """A blob whose name fits no drop creates a rejected drop that explains the right form."""
    collect.note_upload(world.system, name, world.clock())

    (drop,) = world.drops.listed()
    assert (drop.state, drop.code) == (DropState.REJECTED, "bad_name")
    assert "Upload to drops/<route>/<name>/<files>." in drop.why


@pytest.mark.parametrize("late", [False, True], ids=["it collects", "it was sealed"])
def test_a_drop_that_the_timer_found_first_says_how_its_event_came(world: World, late: bool) -> None:
    """The first event of a drop that the timer opened records its event form, whenever it arrives. Later events
    change nothing, and there is one run."""
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    at = world.clock()
    world.reconcile()
    if late:
        world.clock.advance(4)
        world.run_until_idle()
    assert drop_state(world)[0] is (DropState.SEALED if late else DropState.OPEN)
    assert world.drops.rows[A].value.event_form == ""
    for form in ("base64", "text"):
        collect.note_upload(world.system, "mnist/a/1.bin", at, form)
    world.in_flight.clear()
    world.settle()
    drop = world.drops.rows[A].value
    assert (drop.event_form, drop.generation, len(world.runs.rows)) == ("base64", 1, 1)


def test_a_look_that_an_event_overtakes_is_made_again(world: World) -> None:
    """A drop that the timer found closes even if an event was recorded during its only check."""

    def meanwhile() -> None:
        collect.note_upload(world.system, "mnist/a/1.bin", world.clock(), "base64")

    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.reconcile()
    world.queues.messages["drop-events"].clear()
    world.clock.advance(4)
    look = replace(world.system, blobs=Interrupted(world.blobs, meanwhile))
    collect.check_drop(look, CheckDrop(A.route, A.name, world.drops.rows[A].value.token))
    assert drop_state(world)[0] is DropState.OPEN
    world.in_flight.clear()
    world.run_until_idle()
    assert drop_state(world)[0] is DropState.SEALED
