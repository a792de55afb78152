"""Azure ML's job schema, parsed into our own types and written again."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.azureml.document import document
from shared.jobs.build import build
from shared.jobs.command import Command, OptionalPart, Reference, ReferenceGroup, joined
from shared.jobs.layers import over
from shared.jobs.limits import Limits
from shared.jobs.location import Asset, Location, Pattern, Placeholder
from shared.jobs.order import JobOrder, Values
from shared.jobs.readers.azureml import path_of, read_job, read_layer
from shared.jobs.spec import DataInput, Environment, JobOutput, JobSpec, Layer

WHOLE: dict[str, Any] = {
    "$schema": "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json",
    "type": "command",
    "name": "n",
    "display_name": "d",
    "description": "x",
    "experiment_name": "e",
    "command": "python ${{inputs.data}}",
    "code": "azureml:c:1",
    "compute": "azureml:gpu",
    "environment": {
        "image": "i",
        "conda_file": {"dependencies": ["pip"]},
        "build": {"path": "p", "dockerfile_path": "D"},
    },
    "inputs": {"lr": 0.1, "on": True, "data": {"type": "uri_folder", "path": "azureml://x", "mode": "direct"}},
    "outputs": {"m": {"type": "mlflow_model", "name": "model", "version": "3"}, "f": {"type": "uri_file", "path": "p"}},
    "environment_variables": {"A": "1"},
    "tags": {"t": "1"},
    "properties": {"p": 1},
    "resources": {"instance_count": 2, "shm_size": "2g", "docker_args": "--x", "properties": {"deep": [1]}},
    "limits": {"timeout": 60},
    "distribution": {"type": "ray", "process_count_per_instance": 2, "port": 6379},
    "services": {"ssh": {"type": "ssh"}},
    "identity": {"type": "managed"},
    "queue_settings": {"job_tier": "spot"},
    "parent_job_name": "above",
    "later": {"nobody": "knows"},
}


def test_a_whole_job_is_read_and_written_as_it_was() -> None:
    """Keys with and without a field of ours are written as they were read."""
    assert document(read_job(WHOLE)) == WHOLE


def test_a_job_has_words_of_its_own() -> None:
    """Nodes, processes, time, data and uninterpreted keys each have their own field."""
    job = read_job(WHOLE)
    assert (job.cluster, job.nodes, job.processes, job.timeout_seconds) == ("gpu", 2, 2, 60)
    assert job.data == {"data": DataInput(Asset("//x"), "folder", "direct")}
    assert job.values == {"lr": 0.1, "on": True}
    assert job.outputs["m"] == JobOutput(kind="mlflow_model", asset="model", asset_version="3")
    assert job.environment == Environment("i", {"dependencies": ["pip"]}, "p", {"build.dockerfile_path": "D"})
    assert sorted(job.restricted) == ["docker_args", "identity", "queue_settings", "services"]
    assert (job.launcher, sorted(job.rest)) == ({"port": 6379}, ["later", "parent_job_name", "resources.properties"])


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
NAMES = st.from_regex(r"[a-z_]{1,6}", fullmatch=True)
VALUES = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
PARTS = st.dictionaries(NAMES.map("x_".__add__), VALUES | st.lists(VALUES, max_size=2), max_size=2)
NUMBERS = st.integers(0, 9)
REFERENCES = st.builds(Reference, st.sampled_from(ReferenceGroup), NAMES)
OPTIONAL = st.builds(OptionalPart, st.lists(REFERENCES, min_size=1, max_size=2).map(tuple))
LOCATIONS = st.builds(Location, NAMES, NAMES | NAMES.map("{}/".format))
ASSETS = st.builds(Asset, NAMES.map("{}:1".format))
WHERE = TEXTS | LOCATIONS | ASSETS
PATTERNS = st.lists(NAMES | st.sampled_from(Placeholder), min_size=1, max_size=3).map(
    lambda parts: Pattern(joined_text(("d/", Placeholder.RUN, *parts)))
)
COMMANDS = st.lists(TEXTS | REFERENCES | OPTIONAL, max_size=4).map(lambda parts: Command(joined(tuple(parts))))


def joined_text(parts: tuple[str | Placeholder, ...]) -> tuple[str | Placeholder, ...]:
    """Return the parts as the reader gives them: neighboring texts joined."""
    groups = groupby(parts, key=lambda part: isinstance(part, str))
    return tuple(part for is_text, some in groups for part in (["".join(map(str, some))] if is_text else some))


JOBS = st.builds(
    JobSpec,
    command=COMMANDS,
    code=WHERE,
    **dict.fromkeys(("name", "title", "description", "experiment", "cluster", "machine"), TEXTS),
    **dict.fromkeys(("distribution", "shared_memory"), TEXTS),
    **dict.fromkeys(("nodes", "processes", "workers", "parameter_servers", "timeout_seconds"), NUMBERS),
    environment=TEXTS
    | ASSETS
    | st.builds(Environment, TEXTS, TEXTS | st.just({"dependencies": ["pip"]}), st.just("") | WHERE, PARTS),
    inputs=st.dictionaries(NAMES, VALUES | st.builds(DataInput, WHERE, TEXTS, TEXTS, PARTS), max_size=3),
    outputs=st.dictionaries(
        NAMES, st.builds(JobOutput, WHERE | PATTERNS, TEXTS, TEXTS, TEXTS, TEXTS, PARTS), max_size=3
    ),
    variables=st.dictionaries(NAMES, TEXTS, max_size=2),
    tags=st.dictionaries(NAMES, TEXTS, max_size=2),
    properties=PARTS,
    restricted=st.sampled_from([{}, {"services": {"a": 1}}, {"docker_args": "--x", "identity": {"type": "managed"}}]),
    launcher=PARTS,
    rest=PARTS,
)


@given(JOBS)
def test_a_row_gives_back_the_job(job: JobSpec) -> None:
    """The JSON that a row keeps of any job is parsed as the same job."""
    assert read_job(json.loads(json.dumps(document(job)))) == job


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"inputs": [1]}, "inputs must be a mapping, it is a list."),
        ({"resources": "big"}, "resources must be a mapping, it is a str."),
        ({"tags": {"a": [1]}}, "tags.a must be text, it is a list."),
        ({"command": ["python"]}, "command must be text, it is a list."),
        ({"compute": True}, "compute must be text, it is a bool."),
        ({"environment": [1]}, "environment must be text, it is a list."),
        ({"inputs": {"a": None}}, "inputs.a must be a value, or a mapping with type and path."),
        ({"inputs": {"a": {"path": [1]}}}, "inputs.a.path must be text, it is a list."),
        ({"outputs": {"a": "x"}}, "outputs.a must be a mapping, it is a str."),
    ],
)
def test_what_can_not_be_read_is_told_by_its_key(written: dict[str, Any], problem: str) -> None:
    """Nothing is guessed: the error has the place in the document and the value there."""
    assert [f"{p.path} {p.message}" for p in read_layer(written).problems] == [problem]


@pytest.mark.parametrize("value", ["two", 0, -1, 2.5, True, [2], {"a": 1}])
def test_what_is_no_number_is_never_sent(value: Any) -> None:
    """A value that is not a number is refused with the limit, unless the request replaces it with a number."""
    order = JobOrder("r", "t", JobSpec(), Limits(max_nodes=4), Values("e", "cpu"))
    order = replace(order, written=read_layer({"command": "x", "resources": {"instance_count": value}}))
    problems = build(order).problems
    assert [f"{p.path} {p.message}" for p in problems] == [f"nodes is {value!r}; use a whole number from 1 to 4."]
    assert path_of("nodes") == "resources.instance_count"
    instead = build(replace(order, asked=Values(nodes=3)))
    assert (instead.problems, instead.job and instead.job.nodes) == ((), 3)


@pytest.mark.parametrize("none", [None, ""])
def test_null_switches_off_what_lies_below(none: Any) -> None:
    """`null` removes a key, a group or a whole mapping; the keys beside it stay."""
    below = Layer(read_job(WHOLE))

    def left(**written: Any) -> dict[str, Any]:
        return document(over(below, read_layer(written)).job)

    assert {"distribution", "limits"} & set(left(distribution=None, limits=None)) == set()
    assert left(resources={"shm_size": none})["resources"].keys() == {"instance_count", "docker_args", "properties"}
    assert "inputs" not in left(inputs=None)
    assert left(environment=none).get("environment") is None
    assert left(inputs={"lr": 1})["inputs"] == {**WHOLE["inputs"], "lr": 1}
