"""A version is trained again from its recorded parts, and compared byte by byte, or by the scatter of repetitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.drops.retrain import train_again
from shared.jobs.readers.place_text import read_asset
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.models.decide import ChangeRequest
from shared.models.promote import promote_run
from shared.models.reproduce import compare, is_within, reproduce
from shared.runs.intake.retry_and_continue import continue_run
from shared.runs.model import Run
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.models.champions import KEY, RULE, dropped, ends, settle


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [replace(ROUTE, model=RULE)])


def test_a_reproduction_runs_the_recorded_parts_and_names_what_differs(world: World) -> None:
    """The reproduction uses the same code and environment ids on the same data; equal bytes are reported as equal,
    other bytes with the reason."""
    first = dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    remade = reproduce(world.system, version, Person("ann"))
    assert reproduce(world.system, version, Person("ann")).name == remade.name
    job = remade.asked.request
    assert job.code == world.jobs.code_id(first.jobs.code)
    assert job.environment == read_asset(first.jobs.environment)
    assert (remade.asked.drop, remade.asked.fingerprint) == (first.asked.drop, first.asked.fingerprint)
    with pytest.raises(Conflict, match="not archived yet"):
        compare(world.system, version, remade.name)
    ends(world, remade.name, 0.9)
    assert compare(world.system, version, remade.name).equal
    other = ends(world, train_again(world.system, KEY, "b").name, 0.8, b"W", "x86_64 B")
    compared = compare(world.system, version, other.name)
    assert not compared.equal
    assert compared.differs == ["The processor was x86_64 A, now it is x86_64 B.", "test_accuracy was 0.9, now 0.8."]


def test_a_metric_is_compared_with_the_scatter_of_its_repetitions(world: World) -> None:
    """Each repetition is a run of its own. From three repetitions on, the answer says whether the version is within
    their expected range."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    runs = [reproduce(world.system, version, Person("ann"), number) for number in (1, 2, 3)]
    assert len({run.name for run in runs}) == 3
    assert [reproduce(world.system, version, Person("ann"), number).name for number in (1, 2, 3)] == [
        run.name for run in runs
    ]
    values = (0.88, 0.91, 0.92)
    for each, value in zip(runs[:2], values, strict=False):
        ends(world, each.name, value, b"other")
    assert compare(world.system, version, runs[0].name).within is None
    ends(world, runs[2].name, values[2], b"other")
    compared = compare(world.system, version, runs[2].name)
    assert (compared.equal, compared.metric, compared.value, compared.within) == (False, "test_accuracy", 0.9, True)
    assert compared.repetitions == dict(zip([run.name for run in runs], values, strict=True))


def test_the_interval_is_that_of_the_textbook() -> None:
    """mean 10, s 1, n 4: 3.182 * sqrt(1.25) = 3.558. Equal repetitions predict exactly the same value."""
    spread = [10 - 1.5**0.5, 10.0, 10.0, 10 + 1.5**0.5]
    assert is_within(10 + 3.557, spread)
    assert not is_within(10 + 3.559, spread)
    assert (is_within(0.5, [0.5] * 3), is_within(0.51, [0.5] * 3), is_within(0.5, [0.5] * 2)) == (True, False, None)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Because there is no version of torch==2.13.0 and you require torch==2.13.0, we can conclude that your",
            r"package torch==2.13.0 of its environment is no longer available",
        ),
        ("ERROR: No matching distribution found for numpy==99.0", "package numpy==99.0 of its environment is"),
        ("Because line-kit was not found in the package registry and you", "package line-kit of its environment is"),
        ("exited with status code 1", r"is failed. .*exited with status code 1 Send the request again to retry\."),
    ],
)
def test_a_reproduction_that_fails_says_why_and_is_tried_again(world: World, said: str, told: str) -> None:
    """A package that no longer exists is named, as pip and uv name it; another request starts another run."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    remade = reproduce(world.system, version, Person("ann"))
    world.run_until_idle()
    world.job_goes(remade.name, "Failed", said)
    world.deliver_all()
    settle(world)
    with pytest.raises(Impossible, match=f"churn/1 was not trained again: .*{told}"):
        compare(world.system, version, remade.name)
    assert reproduce(world.system, version, Person("ann")).name != remade.name


def test_changed_data_are_named_before_anything_is_trained(world: World) -> None:
    """reproduce refuses, and names the changed and deleted files."""
    dropped(world, 0.9)
    version = world.models.version("churn", 1)
    assert version
    world.blobs.put("drops", "mnist/a/1.bin", b"changed")
    with pytest.raises(Conflict, match=r"other data than drop mnist/a has now: mnist/a/1.bin changed"):
        reproduce(world.system, version, Person("ann"))


def test_a_file_of_any_name_is_compared_and_a_continued_run_is_refused(world: World) -> None:
    """Equal files are equal whatever their ending; files that only describe the model count separately. A run that
    continued another run was not trained from the beginning, so it is refused."""
    run = train_again_named(world, "model.odd")
    version = promote_run(world.system, run.name, "odd", "", ChangeRequest(world.clock(), Person("ann")))
    remade = reproduce(world.system, version, Person("ann"))
    ends(world, remade.name, 0.9, name="model.odd", about=b'{"note": 2}')
    compared = compare(world.system, version, remade.name)
    assert (compared.equal, compared.weights) == (True, {"models/model.odd": True})
    assert compared.others == ["models/model.json"]
    following = continue_run(world.system, run.name, {"epochs": 3})
    ends(world, following.name, 0.9)
    version = promote_run(world.system, following.name, "odd", "", ChangeRequest(world.clock(), Person("ann")))
    with pytest.raises(Impossible, match=f"continued run {run.name} from its checkpoints"):
        reproduce(world.system, version, Person("ann"))


def train_again_named(world: World, name: str) -> Run:
    dropped(world, 0.5)
    return ends(world, train_again(world.system, KEY, "odd").name, 0.9, name=name, about=b'{"note": 1}')
