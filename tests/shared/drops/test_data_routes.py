"""A route that trains nothing: its drops are versioned data for jobs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from shared.api import catalogue
from shared.api.requests import RouteCheck
from shared.clusters import needs
from shared.drops import retrain, versions
from shared.drops.find_name import FoundName, find
from shared.drops.model import Drop, DropState
from shared.jobs.register import register
from shared.jobs.route import Route
from shared.jobs.routes_file import load
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadSetting, Conflict, Impossible, NotFound
from shared.removals.model import RemovalKind
from shared.removals.remove import RemovalRequest, remove_drop
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from tests.fakes.world import ROUTE, World, trainers_folder

KEY = DropKey("data", "points")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def data_route(tmp_path: Path) -> Route:
    (tmp_path / "trainers").mkdir()
    file = tmp_path / "routes.yaml"
    file.write_text(yaml.safe_dump({"routes": {"data": {"trainer": "none", "quiet_seconds": 30}}}))
    return load(file, tmp_path / "trainers").routes["data"]


@pytest.fixture
def world(tmp_path: Path, data_route: Route) -> World:
    return World(trainers_folder(tmp_path), [ROUTE, data_route])


def close(world: World, **contents: str) -> Drop:
    for name, text in contents.items():
        world.upload(f"data/points/{name}", text.encode())
    world.clock.advance(10)
    world.upload("data/points/_SUCCESS", b"")
    world.deliver_all()
    for _ in range(2):
        world.run_until_idle()
        world.clock.advance(10)
    stored = world.drops.get(KEY)
    assert stored is not None
    return stored.value


def test_a_drop_of_a_data_route_makes_generations_and_no_run(world: World) -> None:
    """The drop closes like any drop, and each new content is a generation with its files. Nothing is trained, also
    when messages are repeated."""
    assert close(world, one="1", two="2").generation == 1
    drop = close(world, two="22")
    assert (drop.state, drop.generation, drop.run) == (DropState.SEALED, 2, "")
    close(world)  # the marker again: the same content
    assert world.runs.newest() == []
    assert [(g.number, g.blobs) for g in versions.generations(world.system.drops, world.system.routes, KEY)] == [
        (2, 3),
        (1, 3),
    ]
    assert [f.path for f in versions.diff(world.system, "data/points@1", "data/points@2").changed] == ["two"]
    with pytest.raises(Conflict, match=r"does not train.*--data drops/data/points"):
        retrain.train_again(world.system, KEY)


def test_a_run_names_the_generation_of_its_data(world: World) -> None:
    """A run on such data records the generation of its content."""
    drop = close(world, one="1")
    run = create_run(world.system, RunRequest(template="mnist", data="drops/data/points"))
    assert (run.asked.drop, run.asked.generation, run.asked.fingerprint) == ("data/points", 1, drop.fingerprint)


def test_data_are_named_by_their_newest_drop_and_their_generation(world: World) -> None:
    """data@latest is the drop that closed last; a generation can be named only while the storage still holds its
    content."""
    close(world, one="1")
    assert find(world.system, "data@latest") == find(world.system, "data/points@1") == FoundName("", "data/points")
    close(world, one="2")
    assert find(world.system, "drops/data/points@2").drop == "data/points"
    with pytest.raises(Conflict, match="generation 1 has been overwritten"):
        find(world.system, "data/points@1")


def test_a_data_drop_that_dies_half_closed_is_closed_by_the_next_look(world: World) -> None:
    """Wherever the handler dies, the drop gets one generation and no run."""
    for dies_at in range(1, 12):
        other = World(world.system.trainers, world.system.routes.values())
        other.upload("data/points/one", b"1")
        other.upload("data/points/_SUCCESS", b"")
        other.deliver_all()
        for queue in ("drop-events",):
            while other.handle(queue, crashes=itertools.chain(["ok"] * dies_at, ["before"], itertools.repeat("ok"))):
                pass
        other.settle()
        stored = other.drops.get(KEY)
        assert stored is not None
        assert (stored.value.state, stored.value.generation, other.runs.newest()) == (DropState.SEALED, 1, [])


def test_a_data_drop_is_removed_like_others(world: World) -> None:
    """Removal deletes the drop's files, generations and lists."""
    drop = close(world, one="1")
    remove_drop(world.system, world.removals, KEY, RemovalRequest())
    world.run_until_idle()
    assert world.drops.get(KEY) is None
    assert not [name for name in world.blobs.containers["drops"] if name.startswith("data/points/")]
    assert not world.blobs.containers["output"], drop.fingerprint
    assert world.removals.newest()[0].what is RemovalKind.DROP


def test_a_job_file_in_a_data_drop_is_refused(world: World) -> None:
    """A job file would have no effect. Both the check before the upload and the drop itself say so."""
    with pytest.raises(Impossible, match=r"^Route 'data' does not train, so its drops can't have job files"):
        catalogue.check(world.system, "data", RouteCheck(job={"inputs": {"epochs": 1}}))
    with pytest.raises(NotFound, match=r"Routes: .*data \(trains nothing\)"):
        catalogue.check(world.system, "points", RouteCheck())
    answer = catalogue.check(world.system, "data", RouteCheck(job=None))
    assert {**answer, "data": {}} == {"route": "data", "trains": False, "job": {}, "data": {}}
    world.upload("data/points/one", b"1")
    world.upload("data/points/job.yaml", b"inputs: {epochs: 1}")
    world.deliver_all()
    for _ in range(2):
        world.run_until_idle()
        world.clock.advance(4)
    stored = world.drops.get(KEY)
    assert stored is not None
    assert (stored.value.state, stored.value.code) == (DropState.REJECTED, "bad_job_file")
    assert "have job files" in stored.value.why


def test_a_data_route_is_no_training(world: World) -> None:
    """A data route can't be submitted, keeps no cluster up, widens no limit, and isn't checked against the
    clusters."""
    with pytest.raises(Impossible, match="mnist"):
        create_run(world.system, RunRequest(template="data", data="drops/data/points"))
    world.upload("data/points/one", b"1")
    world.deliver_all()
    world.run_until_idle()
    assert needs._expected(world.system.drops, world.system.routes) == {}
    reports = register(world.system.jobs, world.system.trainers, world.system.routes, []).routes
    assert [report.route for report in reports] == ["mnist"]


@pytest.mark.parametrize(
    ("key", "value"), [("cluster", "cpu-cluster"), ("nodes", 2), ("project", "x"), ("job_file", "allowed")]
)
def test_a_data_route_has_nothing_of_a_training(tmp_path: Path, key: str, value: object) -> None:
    """A key that only a training has is an error, whose message lists the allowed keys."""
    (file := tmp_path / "routes.yaml").write_text(yaml.safe_dump({"routes": {"data": {"trainer": "none", key: value}}}))
    with pytest.raises(BadSetting, match=f"does not train, so it can't have {key}; choose from .*quiet_seconds"):
        load(file, ROOT / "trainers")


def test_the_routes_that_come_with_it_have_one_for_data() -> None:
    """`drop ./points data/points-2026` works without an administrator."""
    assert not load(ROOT / "routes.yaml", ROOT / "trainers").routes["data"].trains
