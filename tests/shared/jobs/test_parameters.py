"""Parameters: what their schemas allow, and the messages for wrong ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from shared.api import catalogue
from shared.api.requests import RouteCheck
from shared.jobs.parameters import converted, describe, fault_of, parameters
from shared.jobs.readers.trainer import trainer_names, trainer_template
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadSetting, Impossible, NotFound
from shared.kernel.index_settings import ROOT
from shared.runs.intake import create
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.runs.test_intake import request

TRAINERS = ROOT / "trainers"
SCHEMAS = [schema for name in trainer_names(TRAINERS) for schema in trainer_template(TRAINERS, name)[1].values()]
TREES = {"type": "integer", "minimum": 1, "maximum": 500, "description": "how many trees"}
values = st.one_of(st.integers(-10, 2000), st.floats(-2, 2), st.booleans(), st.text(max_size=8), st.just("auto"))


@settings(max_examples=150)
@given(st.sampled_from(SCHEMAS), values)
def test_a_value_fits_exactly_if_json_schema_says_so(schema: dict[str, Any], value: Any) -> None:
    """Every trainer's parameters accept what a JSON Schema validator accepts, once text is parsed as numbers."""
    value = converted(schema, value)
    assert (fault_of(schema, value) == "") == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "becomes"), [("7", 7), (7.0, 7), ("1e2", 100), (0.5, 0.5), ("abc", "abc"), (True, True), ("nan", "nan")]
)
def test_text_is_read_as_a_number(value: Any, becomes: Any) -> None:
    """YAML reads 1e2 as text, and a form sends text; a whole number in any spelling becomes one, other text stays."""
    assert converted(TREES, value) == becomes
    assert type(converted(TREES, value)) is type(becomes)


@pytest.fixture
def world(tmp_path: Path) -> World:
    folder = trainers_folder(tmp_path)
    template = replace(ROUTE.template, inputs={**ROUTE.template.inputs, "trees": 10})
    described = parameters(template, {"trees": TREES}, "forest")
    world = World(folder, [replace(ROUTE, template=template, parameters=described)])
    world.blobs.put("drops", "mnist/a/1.bin")
    return world


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tree": 7}, "tree is not a parameter. Did you mean 'trees'? There are: epochs, trees."),
        ({"trees": "abc"}, "trees is 'abc'; use a whole number from 1 to 500."),
        ({"trees": -5}, "trees is -5; use a whole number from 1 to 500."),
        ({"trees": 2.5}, "trees is 2.5; use a whole number from 1 to 500."),
        ({"epochs": "many"}, "epochs is 'many'; use a number."),
    ],
)
def test_a_wrong_parameter_is_refused_everywhere(world: World, given: dict[str, Any], why: str) -> None:
    """A request, a check before an upload and a job file in a drop give the same error for a wrong name or value."""
    with pytest.raises(Impossible) as refused:
        create.create_run(world.system, request(template="mnist", data="drops/mnist/a", parameters=given))
    assert f"parameters.{why}" in str(refused.value)
    with pytest.raises(Impossible) as checked:
        catalogue.check(world.system, "mnist", RouteCheck({"inputs": given}))
    world.upload("mnist/b/1.bin")
    world.upload("mnist/b/job.json", json.dumps({"inputs": given}).encode())
    world.deliver_all()
    world.clock.advance(60)
    world.run_until_idle()
    rejected = next(drop for drop in world.drops.listed() if drop.key.name == "b")
    name, _, rest = why.partition(" ")
    assert f"inputs.{name}: {rest}" in str(checked.value)
    assert f"inputs.{name}: {rest}" in rejected.why


def test_a_run_keeps_the_defaults_that_it_ran_with(world: World) -> None:
    """A run records every parameter's value as a number, also the defaults; a dry run creates nothing."""
    run = create.create_run(
        world.system, request(template="mnist", data="drops/mnist/a", parameters={"trees": "40"}), "key"
    )
    assert (run.asked.parameters, run.asked.request.inputs["trees"]) == ({"epochs": 2, "trees": 40}, 40)
    assert world.runs.get(run.name).value.asked.parameters == run.asked.parameters
    assert catalogue.check(world.system, "mnist", RouteCheck())["job"]["inputs"]["trees"] == 10
    assert len(world.runs.newest()) == 1


def test_a_job_with_a_command_of_its_own_may_have_any_inputs(world: World) -> None:
    """The route's parameters apply to the route's command only."""
    job = {"command": "python x.py --depth ${{inputs.depth}}", "inputs": {"depth": 3}}
    assert catalogue.check(world.system, "mnist", RouteCheck(job))["job"]["inputs"]["depth"] == 3


def test_an_unknown_route_names_the_nearest(world: World) -> None:
    """The error for a mistyped route suggests the nearest route, before anything is uploaded."""
    with pytest.raises(NotFound, match="Did you mean 'mnist'"):
        catalogue.check(world.system, "minst", RouteCheck())


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "integer"}, "must have a description"),
        ({"type": "whole", "description": "x"}, "must have a type"),
        ({**TREES, "maximum": 5}, "the default of trees is 10; use a whole number from 1 to 5"),
    ],
)
def test_a_schema_that_cannot_be_kept_stops_the_start(schema: dict[str, Any], why: str) -> None:
    """An invalid parameters.json, or one that contradicts its job, is an error when the routes are read."""
    with pytest.raises(BadSetting, match=why):
        parameters(JobSpec(inputs={"trees": 10}), {"trees": schema}, "forest/parameters.json")


def test_every_schema_can_be_described() -> None:
    """The allowed values of each trainer's parameters can be described in words."""
    assert {describe(schema) for schema in SCHEMAS} >= {"a whole number from 1", "true or false"}
    assert not [schema for schema in SCHEMAS if not describe(schema)]
