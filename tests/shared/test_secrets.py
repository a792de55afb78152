"""No output of the system has the value of a job's environment variable, because people keep tokens there."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shared.api.catalogue import check
from shared.api.registry import OPERATIONS
from shared.api.requests import RouteCheck
from shared.api.signature import signature
from shared.jobs.readers.azureml import read_job
from shared.kernel import parsing
from shared.kernel.errors import TrainyardError
from shared.kernel.operation import CODER, Operation
from shared.kernel.person import PROGRAM, Person
from shared.kernel.reply import Caller, Reply
from shared.models.decide import ChangeRequest
from shared.models.promote import promote_run
from shared.notices.subscribe import SubscriptionSpec, subscribe
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest
from shared.schedules import plan
from shared.schedules.api import ScheduleRequest, add_schedule, schedule_fields
from tests.fakes.world import ELASTIC, ROUTE, TEMPLATE, World, trainers_folder

SECRET = "s3cr3t-hf_AbCdEf"
VARIABLES = {"environment_variables": {"HF_TOKEN": SECRET, "TZ": "UTC"}}
ANN = Person("ann", "id-ann")
JOB: dict[str, Any] = {
    "command": "python x.py", "environment": "azureml:e:1", "compute": "azureml:cpu-cluster",
    "outputs": {"models": {"type": "uri_folder"}}, **VARIABLES,
}  # fmt: skip
PIPELINE = {"type": "pipeline", "settings": {"default_compute": "azureml:cpu-cluster"}, "jobs": {"train": JOB}}
BATCH_AI: dict[str, Any] = {
    "properties": {
        "nodeCount": 1,
        "customToolkitSettings": {"commandLine": "python x.py"},
        "environmentVariables": [{"name": "HF_TOKEN", "value": SECRET}, {"name": "TZ", "value": "UTC"}],
        "secrets": [{"name": "KEY", "value": SECRET}],
        "stdOutErrPathPrefix": "x",
    }
}
SPACE: dict[str, bool | int | float | str] = {"epochs": "2,3"}
NEEDS_MORE = {  # operations whose answers have another source, or are files that are scanned below
    *("get_openapi", "read_artifact", "read_model_file", "compare_reproduction", "get_logs"),
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A system whose routes' own jobs have a secret too."""
    elastic = replace(ROUTE, name="team", template=read_job({**ELASTIC, **VARIABLES}), min_nodes=1, resubmissions=1)
    world = World(trainers_folder(tmp_path), [replace(ROUTE, template=read_job({**TEMPLATE, **VARIABLES})), elastic])
    world.system = replace(world.system, limits=ROUTE.limits)
    return world


def everything_happens(world: World) -> dict[str, list[str]]:
    """Create a run of every kind, one of them failed, a model, a schedule and notices. Return names for the API's
    paths."""
    subscribe(
        world.system, world.post, SubscriptionSpec(["completed", "failed", "model"], "https://example.com/x"), ANN
    )
    world.complete("1.bin", job_file=yaml.safe_dump(VARIABLES))
    requests = [
        RunRequest(job=JOB), RunRequest(job=PIPELINE), RunRequest(template="team", data="drops/mnist/a"),
        RunRequest(job={**JOB, "display_name": "fails"}),
        msgspec.convert({"template": "mnist", "data": "drops/mnist/a", "parameters": SPACE,
                         "sweep": {"metric": "test_accuracy", "trials": 2, "at_once": 2}}, RunRequest),
    ]  # fmt: skip
    runs = [
        world.only_run().name,
        *(create.create_run(world.system, each, str(i)).name for i, each in enumerate(requests)),
    ]
    world.run_until_idle()
    for name in [name for name in world.jobs.jobs if name.startswith(runs[4])]:
        world.job_goes(name, "Failed", "exit 1")
    world.settle()
    world.settle()
    models = promoted(world)
    schedule = add_schedule(
        world.system, world.schedules, msgspec.convert({}, signature_of("add_schedule").query),
        msgspec.convert({"run": {"job": JOB}, "cron": "0 3 * * *"}, ScheduleRequest), None, ANN, lambda: None,
    ).value["id"]  # fmt: skip
    return {
        "run": [run.name for run in world.runs.newest(50)], "model": models, "version": ["1"], "route": ["mnist"],
        "name": ["a"], "schedule": [schedule], "subscription": [each.id for each in world.notices.all()],
        "grant": granted(world),
    }  # fmt: skip


def granted(world: World) -> list[str]:
    """A grant whose program submits a run; the secret of its token is replaced by SECRET, so no answer may contain
    it."""
    if not any(each.name == "create_grant" for each in OPERATIONS):
        return []
    create_grant = signature_of("create_grant")
    caller = Caller("keys", ANN, True, CODER)
    body = {"purpose": "x", "budget": 5, "until": "23:59", "may": ["read", "submit"], "routes": ["mnist"]}
    body |= {"clusters": ["cpu-cluster"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secrets.token_urlsafe", lambda _: SECRET)
        made = create_grant.function(world.system, parsing.convert(body, create_grant.body), caller)
    assert SECRET in made["token"]
    return [made["id"]]


def promoted(world: World) -> list[str]:
    """Promote the models of all completed runs that have one."""
    names = []
    for run in world.runs.newest(50):
        try:
            name = f"m-{run.name}"[:40]
            promote_run(world.system, run.name, name, "production", ChangeRequest(world.clock(), ANN), allow_code=True)
            names.append(name)
        except TrainyardError:
            continue
    return names


def signature_of(name: str) -> Any:
    return signature(next(each for each in OPERATIONS if each.name == name))


def answers(world: World, operation: Operation, names: dict[str, list[str]]) -> Iterator[str]:
    """Return every answer of a reading operation, for all existing names, including refusals."""
    declared = signature(operation)
    given = {
        "ports": world.system, "post": world.post, "schedules": world.schedules, "removals": world.removals,
        "by": ANN, "caller": Caller("keys", ANN, True), "range_header": None,
    }  # fmt: skip
    if operation.name == "get_own_grant":
        given["caller"] = Caller("grant", Person("x", f"{PROGRAM}{names['grant'][0]}"), False)
    for values in itertools.product(*(names.get(part, []) for part in declared.path)):
        path = dict(zip(declared.path, values, strict=True))
        try:
            query = {"query": parsing.read_query(asked(operation, names), declared.query)} if declared.query else {}
            arguments = {name: ({**given, **path, **query})[name] for name in declared.takes}
            answer = declared.function(**arguments)
            yield text_of(answer.value if isinstance(answer, Reply) else answer)
        except TrainyardError as exc:
            yield f"refused: {exc}"


def asked(operation: Operation, names: dict[str, list[str]]) -> dict[str, str]:
    """Return the query of an operation that requires one."""
    return {
        "compare": {"runs": ",".join(names["run"][:4])}, "find": {"name": "mnist@latest"},
        "get_curves": {"runs": ",".join(names["run"][:4])}, "list_files": {"of": "mnist/a"},
        "diff_data": {"a": "mnist/a", "b": "mnist/a"}, "get_card": {"of": "mnist/a"},
        "diff_cards": {"a": "mnist/a", "b": "mnist/a"}, "list_pictures": {"of": "mnist/a"},
    }.get(operation.name, {})  # fmt: skip


def text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else json.dumps(value, default=str)


def test_no_secret_leaves_the_system(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """For runs of every kind, the value is in none of the reading operations' answers, the archives with manifests
    and proofs, the notices, the events and the log; a job of Azure ML has it."""
    caplog.set_level(logging.DEBUG)
    names = everything_happens(world)
    assert SECRET in str([job.spec for job in world.jobs.jobs.values()]), "the job itself must have the value"
    assert len(names["model"]) >= 4, "single, pipeline, elastic run and sweep"
    reading = [each for each in OPERATIONS if each.method == "GET" and each.name not in NEEDS_MORE]
    told = {each.name: list(answers(world, each, names)) for each in reading}
    silent = {name for name, texts in told.items() if not any(not text.startswith("refused") for text in texts)}
    assert not silent, "an operation that gives no answer here is not scanned"
    told["log"] = [record.getMessage() for record in caplog.records]
    told["notices"] = [text_of(post) for post in world.sender.posts]
    told["events"] = [text_of(event.data) for event in world.events.published]
    told["records"] = [repr(vars(each)) for each in world.journals.values()]
    told["output"] = [text_of(each.data) for each in world.blobs.containers["output"].values()]
    assert any("provenance" in name for name in world.blobs.containers["output"])
    assert all(told[where] for where in ("log", "notices", "events", "output"))
    assert [where for where, texts in told.items() if any(SECRET in text for text in texts)] == []


@pytest.mark.parametrize(
    "request_",
    [
        {"job": JOB},
        {"job": PIPELINE},
        {"template": "team", "data": "drops/mnist/a"},
        {"job": BATCH_AI, "cluster": "cpu-cluster"},
    ],
)
def test_a_rehearsal_shows_names_alone(world: World, request_: dict[str, Any]) -> None:
    """A dry run, a schedule's preview and its answer have the names of all variables, but only harmless values."""
    world.complete("1.bin")
    request = msgspec.convert(request_, RunRequest)
    schedule = msgspec.convert({"run": request_, "cron": "0 3 * * *"}, ScheduleRequest)
    made = schedule_fields(plan.add(world.system, world.schedules, schedule.spec(ANN), None))
    for shown in (dry_run(world.system, request), plan.preview(world.system, schedule.spec(ANN)), made):
        text = text_of(shown)
        assert SECRET not in text
        assert ("HF_TOKEN" in text and "UTC" in text) or shown is made


def test_the_check_of_a_route_shows_names_alone(world: World) -> None:
    """The job that a drop would become has no values of the route's variables."""
    shown = text_of(check(world.system, "mnist", RouteCheck({})))
    assert "HF_TOKEN" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("variables", [SECRET, [SECRET], {"A": [SECRET]}, {SECRET + " x": 1}, {"A": {"b": SECRET}}])
def test_a_refusal_shows_no_value(world: World, variables: Any) -> None:
    """Invalid variables are refused without their content."""
    said = ""
    try:
        create.create_run(world.system, RunRequest(job={**JOB, "environment_variables": variables}), "k")
    except TrainyardError as exc:
        said = str(exc).replace(f"{SECRET} x", "")  # a name, not a value
    assert SECRET not in said
