"""Building the job from a request over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.jobs.build import build
from shared.jobs.data import read_data
from shared.jobs.limits import Limits
from shared.jobs.location import Location
from shared.jobs.order import JobOrder
from shared.jobs.readers.azureml import read_job, read_layer
from shared.jobs.readers.place_text import place_text
from shared.jobs.spec import JobSpec, again
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Impossible
from shared.kernel.misfits import sentence
from shared.kernel.parsing import read_body, read_key
from shared.runs.intake.create import digest
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest
from shared.runs.names import asked_run_name
from tests.fakes.world import ROUTE, World, trainers_folder

JOB: dict[str, Any] = {
    "command": "python -c 'print(1)' --n ${{inputs.n}}",
    "environment": "azureml:other:1",
    "compute": "azureml:gpu",
    "inputs": {"n": 1},
    "outputs": {"models": {"type": "uri_folder"}},
    "resources": {"instance_count": 3, "shm_size": "2g"},
}


NAME = asked_run_name("key", "key")


def asked(**fields: Any) -> RunRequest:
    return read_body(json.dumps(fields).encode(), RunRequest)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path), [replace(ROUTE, clusters=frozenset({"big"}))])
    world.upload("mnist/a/1.bin")
    limits = Limits(frozenset({"gpu", "big"}), max_nodes=4)
    world.system = replace(world.system, limits=limits)
    return world


def job_of(world: World, **fields: Any) -> dict[str, Any]:
    """Return the job of a request that names the template mnist, or of a whole job."""
    job = dry_run(world.system, asked(**fields), "key")["job"]
    renamed: dict[str, Any] = json.loads(json.dumps(job).replace(NAME, "run-0"))
    return renamed


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"tags": {f"t{n}": "" for n in range(41)}}, "tags are 41; use at most 40: Azure ML takes 50"),
        ({"tags": {"t" * 101: ""}}, "is 101 characters long; use at most 100"),
        ({"properties": {"why": "v" * 1001}}, "properties.why has 1,001 characters; Azure ML takes at most 1,000"),
        ({"properties": {f"p{n}": "" for n in range(41)}}, "properties are 41; use at most 40"),
        ({"description": "d" * 5001}, "description has 5,001 characters; Azure ML takes at most 5,000"),
    ],
)
def test_what_azure_ml_does_not_store_is_refused(world: World, part: dict[str, Any], why: str) -> None:
    """Azure's limits on a run's texts are checked before the job is sent, with room for Trainyard's tags."""
    with pytest.raises(Impossible, match=why):
        dry_run(world.system, asked(job={**JOB, **part}))


def test_a_template_has_its_routes_defaults(world: World) -> None:
    """Nodes, cluster, experiment and timeout are the route's; data, parameters and outputs are the request's."""
    job = job_of(world, template="mnist", data="drops/mnist/a", parameters={"epochs": 5})
    assert (job["compute"], job["experiment_name"]) == ("azureml:cpu-cluster", "digits")
    assert (job["resources"], job["limits"]) == ({"instance_count": 2}, {"timeout": 3600})
    assert job["inputs"] == {
        "data": {"type": "uri_folder", "path": "azureml://datastores/drops/paths/mnist/a/"},
        "epochs": 5,
    }
    assert job["outputs"]["models"]["path"] == "azureml://datastores/workspaceblobstore/paths/trainyard/run-0/models/"
    tags = {key: value for key, value in job["tags"].items() if key != "trainyard.code"}
    assert tags == {"trainyard.route": "mnist", "trainyard.drop": "mnist/a"}


def test_the_request_wins(world: World) -> None:
    """The request's values override the route's defaults and a whole job's own values."""
    over = {"nodes": 4, "cluster": "big", "experiment": "mine", "timeout_seconds": 90}
    for job in (job_of(world, template="mnist", data="drops/mnist/a", **over), job_of(world, job=JOB, **over)):
        assert (job["compute"], job["experiment_name"], job["limits"]) == ("azureml:big", "mine", {"timeout": 90})
        assert job["resources"]["instance_count"] == 4


def test_a_whole_job_keeps_what_it_says(world: World) -> None:
    """A whole job is unchanged except for its name and the folders of its outputs."""
    job = job_of(world, job=JOB | {"name": "evil", "tags": {"mine": "1"}}, parameters={"n": 7})
    assert (job["name"], job["type"], job["compute"]) == ("run-0", "command", "azureml:gpu")
    assert job["resources"] == {"instance_count": 3, "shm_size": "2g"}
    assert (job["command"], job["inputs"], job["tags"]) == (JOB["command"], {"n": 7}, {"mine": "1"})
    assert job["outputs"]["models"]["path"].endswith("/trainyard/run-0/models/")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"template": "mnist"}, "data_missing"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"epoch": 1}}, "unknown_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"data": "x"}}, "unknown_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"epochs": "1; rm -rf /"}}, "bad_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"epochs": "$(id)"}}, "bad_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"epochs": "--data"}}, "bad_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "parameters": {"epochs": "1\n"}}, "bad_parameter"),
        ({"template": "mnist", "data": "drops/mnist/a", "cluster": "cpu\n"}, "bad_name"),
        ({"template": "mnist", "data": "drops/mnist/a", "experiment": "a\n"}, "bad_name"),
        ({"job": {k: v for k, v in JOB.items() if k != "compute"}}, "cluster_missing"),
        ({"job": JOB | {"type": "pipeline"}}, "bad_job"),
        ({"job": JOB | {"code": "."}}, "bad_job"),
        ({"job": JOB | {"compute": "azureml:x' or 1 eq 1"}}, "bad_name"),
        ({"job": JOB | {"experiment_name": "../a"}}, "bad_name"),
        ({"job": JOB | {"inputs": {"d": {"path": "../../etc"}}}}, "bad_job"),
        ({"job": JOB | {"inputs": {"d": {"path": "here/"}}}}, "bad_job"),
        ({"job": JOB | {"inputs": {"d": {"path": "file:///etc/passwd"}}}}, "bad_job"),
        ({"job": JOB | {"inputs": {"a b": 1}}}, "bad_job"),
        ({"job": JOB | {"outputs": {"models": {"path": "azureml://datastores/drops/paths/x/"}}}}, "bad_job"),
        ({"job": JOB | {"outputs": {"../x": {}}}}, "bad_job"),
    ],
)
def test_what_can_not_be_a_job_is_refused(world: World, fields: dict[str, Any], code: str) -> None:
    """Each impossible request raises Impossible with a stable code."""
    with pytest.raises(Impossible) as refused:
        job_of(world, **fields)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("text", "path", "drop"),
    [
        ("drops/mnist/a", "azureml://datastores/drops/paths/mnist/a", DropKey("mnist", "a")),
        ("drops/mnist/a/part/1.bin", "azureml://datastores/drops/paths/mnist/a/part/1.bin", DropKey("mnist", "a")),
        ("drops/größe 1/名前#%41", "azureml://datastores/drops/paths/größe 1/名前#%41", DropKey("größe 1", "名前#%41")),
        ("drops/mnist", "azureml://datastores/drops/paths/mnist", None),
        (
            "azureml://datastores/drops/paths/mnist/a/",
            "azureml://datastores/drops/paths/mnist/a/",
            DropKey("mnist", "a"),
        ),
        ("mystore/x/y", "azureml://datastores/mystore/paths/x/y", None),
    ],
)
def test_data_may_be_named_in_three_ways(text: str, path: str, drop: DropKey | None) -> None:
    """A drop, a datastore path and an azureml:// path give the same kind of path; drops are recognized in each."""
    data = read_data(text)
    assert (place_text(data.path), data.drop) == (path, drop)


@pytest.mark.parametrize(
    "text",
    [
        "drops", "drops/", "/etc/passwd", "../drops/a", "drops/mnist/../../x", "drops/a//b", "drops/a\x00/b", "https://x/y",
        "drops/mnist/" + "n" * 300, "azureml://datastores/drops/paths/", "azureml://datastores/a b/paths/x",
        "drops/${{inputs.x}}/a", "file:///etc", "drops/a\\b/c", "drops/a/\ud800",
    ],
)  # fmt: skip
def test_other_data_are_refused(text: str) -> None:
    """A path that leads outside, has an invalid name or is in no datastore is refused with the allowed forms."""
    with pytest.raises(Impossible, match=r"(?s)data is .*Use drops/"):
        read_data(text)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "The body is not valid JSON"),
        (b"[]", "^The body is a list; use a mapping"),
        (b"{}", "exactly one of trainer, template and job"),
        (b'{"trainer": "a", "job": {}}', "exactly one of"),
        (b'{"trainer": "a b"}', "^trainer is 'a b'; use letters, digits, dashes and underscores"),
        (b'{"trainer": "a", "nodes": "2"}', "^nodes is '2'; use a number or a mapping or null"),
        (b'{"trainer": "a", "nodes": 0}', "^nodes is 0; use a number of at least 1"),
        (b'{"trainer": "a", "nodes": 1.5}', "^nodes is 1.5; use a whole number"),
        (b'{"trainer": "a", "node": 1}', "^The body has the unknown field 'node'"),
        (b'{"trainer": "a", "parameters": {"a": [1]}}', "parameters"),
        (b'{"job": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, "has 600"),
        (b'{"job": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, "nested more than 30 deep"),
        (b'{"trainer": "\xff"}', "not valid JSON"),
    ],
)
def test_a_body_that_does_not_fit_says_where(body: bytes, why: str) -> None:
    """A body that does not fit the model raises BadInput, with the place and the expected type."""
    with pytest.raises(BadInput, match=why):
        read_body(body, RunRequest)


@pytest.mark.parametrize(
    ("message", "value", "told"),
    [
        (
            "Expected `float` >= 60.0 - at `$.timeout_seconds`",
            {"timeout_seconds": 5},
            "timeout_seconds is 5; use a number of at least 60.",
        ),
        ("Expected `str` of length >= 1 - at `$.text`", {"text": ""}, "text is ''; use text that is not empty."),
        (
            "Expected `str` of length <= 3 - at `$.a[0].b`",
            {"a": [{"b": "long"}]},
            "a[0].b is 'long'; use text of at most 3 characters.",
        ),
        (
            "Expected `array` of length <= 3 - at `$.a`",
            {"a": [1, 2, 3, 4]},
            "a is a list; use a list of at most 3 items.",
        ),
        (
            r"Expected `str` matching regex '^[A-Za-z0-9_.-]{1,9}$' - at `key` in `$.tags`",
            {"tags": {"a b": ""}},
            "A name in tags is not allowed; use letters, digits, dots, dashes and underscores.",
        ),
        ("Object missing required field `run` - at `$.a`", {"a": {}}, "a has no run, which is required."),
        ("give one of a and b", {}, "The body: give one of a and b."),
    ],
)
def test_a_misfit_is_a_sentence(message: str, value: object, told: str) -> None:
    """Each form of msgspec's messages becomes a sentence with the field, its value and what to use."""
    assert sentence(message, value, "The body") == told


def test_a_digest_is_of_the_meaning(world: World) -> None:
    """The order of keys and the spaces don't change a request's digest; a value does."""
    one = read_body(b'{"trainer": "a", "parameters": {"x": 1, "y": 2}}', RunRequest)
    same = read_body(b'{ "parameters": {"y": 2, "x": 1}, "trainer":"a"}', RunRequest)
    assert digest(one) == digest(same) != digest(asked(trainer="a", parameters={"x": 1, "y": 3}))


@pytest.mark.parametrize("key", ["", "ü", "a\n", "k" * 129])
def test_a_key_is_short_printable_ascii(key: str) -> None:
    """Other Idempotency-Keys are refused; no key is fine."""
    with pytest.raises(BadInput, match="Idempotency-Key"):
        read_key(key)
    assert (read_key(None), read_key("k" * 128)) == (None, "k" * 128)


def test_a_retry_writes_to_folders_of_its_own(world: World) -> None:
    """A retried job has the new run's name and outputs, and names the run that it repeats; the old job is
    unchanged."""
    old = read_job(job_of(world, template="mnist", data="drops/mnist/a"))
    new = again(old, "run-0", "run-1")
    assert new.outputs["metrics"].path == Location("workspaceblobstore", "trainyard/run-1/metrics/")
    assert (new.name, new.tags["trainyard.retry_of"]) == ("run-1", "run-0")
    assert replace(new, name=old.name, outputs=old.outputs, tags=old.tags) == old


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("run ${{inputs.n}} ${{ outputs.models }}", ""),
        ("run $[[--rate ${{inputs.rate}}]]", ""),
        ("run ${{inputs.rate}} ${{outputs.model}} ${{inputs.rate}}", "${{inputs.rate}}, ${{outputs.model}}"),
    ],
)
def test_a_command_may_use_what_the_job_has(command: str, lacking: str) -> None:
    """A missing value is reported before the run exists; in an optional section the value may be missing."""
    written = {**JOB, "experiment_name": "e", "command": command}
    order = JobOrder("r", "t", JobSpec(), Limits(max_nodes=4), written=read_layer(written))
    problems = [problem.message for problem in build(order).problems]
    assert problems == (
        [f"uses {lacking}, which the job does not have among its inputs and outputs."] if lacking else []
    )
