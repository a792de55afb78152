"""Inputs that once blocked the system, passed a limit or corrupted an archive, and no longer do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shared.clusters import scaling
from shared.clusters.model import Cluster
from shared.drops.model import DropState
from shared.jobs.readers.azureml import read_job
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Impossible
from shared.kernel.parsing import read_body
from shared.runs import data
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import RunState
from shared.runs.progress.hourly_reconcile import ARCHIVE_TRIES
from shared.runs.views import metrics
from tests.fakes.parts import changed
from tests.fakes.ports import FakeBlobs
from tests.fakes.world import ROUTE, TEMPLATE, World, trainers_folder

JOB: dict[str, Any] = {"command": "python x.py", "environment": "azureml:e:1", "compute": "azureml:cpu-cluster"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path))
    world.system = replace(world.system, limits=ROUTE.limits)
    return world


def post(world: World, body: dict[str, Any]) -> str:
    """Post a body to the API and return the run's name."""
    return create.create_run(world.system, read_body(json.dumps(body).encode(), RunRequest)).name


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"resources": {"instance_count": True}}, "instance_count is True; use a whole number from 1 to 4"),
        ({"resources": {"instance_count": 2**63}}, "more than 63 bits"),
        ({"resources": {"instance_count": 5}}, "instance_count is 5; use a whole number from 1 to 4"),
        ({"resources": {"instance_count": "5"}}, "instance_count is 5; use a whole number from 1 to 4"),
        ({"resources": {"docker_args": "--privileged"}}, "docker_args is not allowed here"),
        ({"limits": {"timeout": "999999999"}}, "timeout is 999999999; use whole seconds from 1 to 3600"),
        ({"limits": {"timeout": 1e9}}, "timeout is 1000000000; use whole seconds from 1 to 3600"),
        ({"distribution": {"type": "pytorch", "process_count_per_instance": 1_000_000}}, "from 1 to 64"),
        ({"compute": "azureml:gpu"}, "compute is 'gpu'; choose one of cpu-cluster"),
        ({"services": {"ssh": {"type": "ssh"}}}, "services is not allowed here"),
        ({"identity": {"type": "managed"}}, "identity is not allowed here"),
        ({"outputs": ["a"]}, "outputs must be a mapping, it is a list"),
        ({"outputs": {"..\\x": {}}}, "use letters, digits, dashes and underscores"),
        ({"tags": {"a": [1]}}, "tags.a must be text, it is a list"),
        ({"environment_variables": nested(500)}, "nested more than 30 deep"),
        ({"inputs": {"x": {"type": "uri_file", "path": "azureml://datastores/d/paths/a;id"}}}, "the command gets"),
        ({"code": "azureml:name@latest"}, "must be a registered asset, azureml:<name>:<version>"),
    ],
)
def test_a_job_over_http_obeys_the_limits_of_a_job_file(world: World, job: dict[str, Any], why: str) -> None:
    """What a drop's job file may not contain, a posted job may not contain either; nothing is recorded."""
    with pytest.raises(BadInput, match=why):
        post(world, {"job": {**JOB, **job}})
    assert world.runs.rows == {}


def test_a_request_obeys_its_routes_limits(world: World) -> None:
    """A request's nodes and timeout are compared with the route's limits, for every caller."""
    world.upload("mnist/a/1.bin")
    asked = {"template": "mnist", "data": "drops/mnist/a"}
    for over, why in (({"nodes": 5}, "from 1 to 4"), ({"timeout_seconds": 3601}, "from 1 to 3600")):
        with pytest.raises(Impossible, match=why):
            post(world, asked | over)
    assert post(world, asked | {"nodes": 4, "timeout_seconds": 3600})


def test_an_administrator_may_allow_more(world: World) -> None:
    """A route that lists further clusters and job keys accepts them."""
    wide = replace(ROUTE, clusters=frozenset({"gpu"}), allow=frozenset({"services"}))
    world.system = replace(world.system, limits=wide.limits)
    world.clusters.clusters["gpu"] = Cluster("gpu", 0, 4, 120)
    assert post(world, {"job": {**JOB, "compute": "gpu", "services": {"ssh": {"type": "ssh"}}}})


def test_text_that_is_a_number_is_sent_as_one(world: World) -> None:
    """The value that was compared is the value that is sent."""
    name = post(world, {"job": {**JOB, "resources": {"instance_count": "2"}, "limits": {"timeout": 60.0}}})
    run = world.runs.get(name).value
    assert (run.asked.nodes, run.asked.request.nodes, run.asked.request.timeout_seconds) == (2, 2, 60)


@pytest.mark.parametrize("name", ["x;id;.zip", "a b.zip", "$(id).tar", "-rf.zip", "a'b.zip"])
def test_a_name_never_becomes_a_command(world: World, name: str) -> None:
    """An archive whose name a shell would not read as a single word is rejected, with what to do."""
    world.upload(f"mnist/{name}")
    world.deliver_all()
    world.run_until_idle()
    drop = world.drops.rows[DropKey("mnist", name)].value
    assert (drop.state, drop.code) == (DropState.REJECTED, "bad_job")
    assert "Rename it" in drop.why
    assert world.jobs.jobs == {}


def test_a_loose_file_is_rejected_with_the_way_to_do_it_right(world: World) -> None:
    """Ten images directly in the route's folder are not ten jobs, and no message for them is retried."""
    for number in range(10):
        world.upload(f"mnist/img{number}.jpg")
    world.deliver_all()
    world.run_until_idle()
    drops = list(world.drops.listed())
    assert {(drop.state, drop.code) for drop in drops} == {(DropState.REJECTED, "loose_file")}
    assert "Upload it as drops/mnist/<name>/img0.jpg" in drops[0].why
    world.settle()
    assert (world.jobs.jobs, list(world.drops.open())) == ({}, [])


def test_a_route_may_take_some_loose_files(world: World) -> None:
    """With single_files a single file is a run, up to that number."""
    world.system = replace(world.system, routes={"mnist": replace(ROUTE, single_files=2)})
    for number in range(4):
        world.upload(f"mnist/data{number}.csv")
        world.deliver_all()
        world.clock.advance(61)
        world.run_until_idle()
    world.clock.advance(61)
    world.run_until_idle()
    codes = [drop.code for drop in world.drops.listed()]
    assert codes.count("too_many_files") == 2
    assert len(world.jobs.jobs) == 2


def outputs(world: World, **declared: Any) -> dict[str, Any]:
    """Return the manifest's outputs by name, of a run with these outputs, completed and archived."""
    name = post(world, {"job": {**JOB, "outputs": declared}})
    world.run_until_idle()
    world.jobs.set(name, "Completed")
    folder = f"trainyard/{name}"
    for output in ("model", "models", "x"):
        world.blobs.put("azureml-blobstore", f"{folder}/{output}/f.bin", output.encode())
    world.blobs.put("azureml-blobstore", f"{folder}/file", b"file")
    world.blobs.put("azureml", f"ExperimentRun/dcid.{name}/outputs/x/f.bin", b"own x")
    world.job_goes(name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    return world.manifest(world.runs.get(name).value) or {}


def test_outputs_never_meet_in_one_place(world: World) -> None:
    """With output model beside models, or x beside ./outputs/x, each file is in the archive with its own size."""
    manifest = outputs(world, model={}, models={}, x={})
    sizes = {file["name"]: file["size"] for file in manifest["files"]}
    assert sizes["models/f.bin"] == len("models")
    assert sizes["named-outputs/model/f.bin"] == len("model")
    assert sizes["named-outputs/x/f.bin"] == 1
    assert sizes["outputs/x/f.bin"] == len("own x")
    for name, size in sizes.items():
        run = next(iter(world.runs.rows.values())).value
        assert len(world.blobs.containers["output"][f"{run.asked.experiment}/{run.name}/{name}"].data) == size


def test_every_declared_output_has_its_fate_in_the_manifest(world: World) -> None:
    """Each output, also a file output, is archived, empty, left or missing; an unknown datastore stops no other
    output."""
    world.system.jobs.datastores["other"] = "other"  # type: ignore[attr-defined]  # the fake's
    template = {**TEMPLATE, "outputs": {"lost": {"path": "azureml://datastores/nowhere/paths/a/"}}}
    template["outputs"] |= {"asset": {"path": "azureml:registered"}, "checkpoints": {}, "models": {}, "none": {}}
    world.system = replace(world.system, routes={"mnist": replace(ROUTE, template=read_job(template))})
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run()
    world.job_goes(run.name, "Completed")
    world.deliver_all()
    world.run_until_idle()
    manifest = world.manifest(run) or {}
    fates = {output["name"]: output["state"] for output in manifest["outputs"]}
    assert fates == {"lost": "missing", "asset": "left", "checkpoints": "left", "models": "archived", "none": "empty"}
    assert all(output.get("why") for output in manifest["outputs"] if output["state"] != "archived")
    assert "logs/std_log_process_0.txt" in {file["name"] for file in manifest["files"]}


def test_odd_metrics_are_left_out(world: World) -> None:
    """With infinities, numbers of 400 digits and 700 names, the run is still archived and its answer is valid JSON."""
    rows = ['{"loss": Infinity}', f'{{"loss": {"9" * 400}}}', '{"loss": 0.5}', "[" * 5000, "\x00"]
    rows.append(json.dumps({f"m{number}": number for number in range(700)}))
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/_SUCCESS", b"")
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run()
    world.job_goes(run.name, "Completed")
    folder = f"trainyard/{run.name}/metrics/metrics.jsonl"
    world.blobs.put("azureml-blobstore", folder, "\n".join(rows).encode())
    world.deliver_all()
    world.run_until_idle()
    found = world.only_run()
    assert found.archive.at
    assert found.measured.best["loss"] == 0.5
    assert len(found.measured.last) == 200
    json.dumps(metrics.series(world.system, run.name), allow_nan=False)


class Refusing:
    """The blobs of an account whose output container can't be written."""

    def __init__(self, blobs: FakeBlobs) -> None:
        self._blobs = blobs

    def copy(self, *_: Any) -> Iterator[Any]:
        raise BadInput("the container can't be written")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)


def test_archiving_has_an_end(world: World) -> None:
    """A failing archive is tried twelve times, with doubling pauses; then the run gives the reason."""
    name = post(world, {"job": JOB})
    world.run_until_idle()
    world.blobs.put("azureml", f"ExperimentRun/dcid.{name}/user_logs/a.txt", b"x")
    world.system = replace(world.system, blobs=cast("Any", Refusing(world.blobs)))
    world.job_goes(name, "Failed")
    world.deliver_all()
    for _ in range(60):
        world.clock.advance(6 * 3600)
        while world.queues.visible("background"):
            world.handle("background")
        world.queues.messages.pop("background", None)  # the message failed five times
        world.reconcile()
    run = world.runs.get(name).value
    assert run.archiving.gave_up_at is not None
    assert run.archiving.tries == ARCHIVE_TRIES
    assert run.archiving.error == "the container can't be written"
    assert ("background" in world.queues.messages, world.runs.hours()) == (False, [])


@pytest.mark.parametrize("compared_at_once", [1000, 2], ids=["with the step", "by a message"])
def test_a_run_says_that_its_data_changed_before_it_started(
    world: World, monkeypatch: pytest.MonkeyPatch, compared_at_once: int
) -> None:
    """A queued run trains on its folder's content at the start of the job; if the content changed, the run names
    the files."""
    monkeypatch.setattr(data, "COMPARED_AT_ONCE", compared_at_once)
    for name in ("mnist/a/1.bin", "mnist/a/2.bin", "mnist/a/3.bin", "mnist/a/_SUCCESS"):
        world.upload(name, b"" if name.endswith("_SUCCESS") else b"x")
    world.deliver_all()
    world.run_until_idle()
    run = world.only_run()
    world.upload("mnist/a/2.bin", b"other")
    world.upload("mnist/a/4.bin", b"new")
    world.in_flight.clear()
    world.clock.advance(5)
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.handle("job-events")
    comparisons = [message for message in world.queues.messages["checks"] if "data_of" in message.body]
    assert len(comparisons) == (compared_at_once == 2)
    world.clock.advance(1)
    world.run_until_idle()
    why = (
        "Drop mnist/a had other data when the job started than when the run was created: mnist/a/2.bin, mnist/a/4.bin."
    )
    checked = world.only_run().data
    assert (checked.trained_on, checked.note) == ("other", why)
    world.settle()
    archived = world.manifest(run)["run"]
    assert (archived["trained_on"], archived["data_note"]) == ("other", why)


def test_an_old_marker_closes_nothing_again(world: World) -> None:
    """Uploads repair a rejected drop; the old marker does not close the drop in the middle of them."""
    world.upload("mnist/a/1.bin")
    world.upload("mnist/a/job.yaml", b"type: pipeline\n")
    world.deliver_all()
    world.clock.advance(4)
    world.run_until_idle()
    key = DropKey("mnist", "a")
    assert world.drops.rows[key].value.state is DropState.REJECTED
    world.clock.advance(60)
    world.blobs.delete("drops", "mnist/a/job.yaml")
    world.blobs.put("drops", "mnist/a/_SUCCESS", b"")
    world.blobs.containers["drops"]["mnist/a/_SUCCESS"].blob = replace(
        world.blobs.containers["drops"]["mnist/a/_SUCCESS"].blob, last_modified=world.drops.rows[key].value.newest
    )
    world.upload("mnist/a/2.bin")
    world.deliver_all()
    world.run_until_idle()
    world.clock.advance(5)
    world.run_until_idle()
    assert world.drops.rows[key].value.state is DropState.OPEN
    world.clock.advance(61)
    world.run_until_idle()
    assert world.drops.rows[key].value.state is DropState.SEALED


def test_one_broken_run_stops_neither_sweep_nor_looks(world: World) -> None:
    """A run that can't be read is skipped; the other runs are checked, and the clusters get their decisions."""
    names = [post(world, {"job": JOB}) for _ in range(2)]
    world.run_until_idle()
    broken = world.runs.rows[names[0]]
    world.runs.rows[names[0]] = replace(broken, value=changed(broken.value, state=RunState.BROKEN))
    world.jobs.set(names[1], "Completed")
    world.clock.advance(300)
    world.reconcile()
    world.run_until_idle()
    assert world.runs.get(names[1]).value.archive.at
    assert [decision.cluster for decision in scaling.scale_clusters(world.system)] == ["cpu-cluster"]
