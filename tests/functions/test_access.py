"""Access rules: every route with every kind of caller."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from functions import access
from shared import bootstrap
from shared.clusters import scaling
from shared.clusters.model import Cluster
from shared.features import FEATURES
from shared.kernel.errors import BadSetting
from shared.kernel.index_settings import ROOT
from shared.kernel.operation import CODER, CONTRIBUTOR, READER
from shared.kernel.settings import Settings
from shared.runs.model import RunState
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder
from tests.functions import indexed
from tests.shared.kernel.test_config import ENV
from tests.shared.runs.test_comparing import run

# A GET needs a reader and any other method a contributor, with these exceptions.
EXCEPTIONS = {
    "GET health": "anyone",
    "GET page/{*path}": "anyone",
    "POST mcp": "reader",  # each tool needs the roles of its operations
    "GET settings": "coder",
    "POST uploads": "coder",
    "GET data/pictures": "contributor",
    "GET grants": "contributor",
    "GET grants/{grant}": "contributor",
    "POST model-keys/{sha256}/withdraw": "coder",
    "POST models/{model}/versions/{version}/sign": "coder",
}
OF_FEATURES = {
    "POST mcp": "shared.agents",
    "GET data/pictures": "shared.data_checks",
    "GET grants": "shared.grants",
    "GET grants/{grant}": "shared.grants",
}
ALLOWED = {  # needed role: the result for an anonymous caller, no role, reader, contributor, coder
    "anyone": (True, True, True, True, True),
    "reader": (401, 403, True, True, True),
    "contributor": (401, 403, 403, True, True),
    "coder": (401, 403, 403, 403, True),
}
ON = {"WEBSITE_AUTH_ENABLED": "True"}


@dataclass(frozen=True)
class Endpoint:
    call: Any
    auth_level: str


def endpoints() -> dict[tuple[str, str], Endpoint]:
    found = {}
    for function in indexed.functions():
        trigger = function.get_trigger()
        if trigger is not None and trigger.get_binding_name() == "httpTrigger":
            for method in trigger.methods:
                level = getattr(trigger.auth_level, "value", trigger.auth_level)
                name = getattr(method, "value", method)
                found[str(name), str(trigger.route)] = Endpoint(function.get_user_function(), str(level))
    return found


ENDPOINTS = endpoints()
GRANTED = "granted/{*path}"  # needs a token, not a role: tests/shared/grants/test_guests.py
ROWS = [
    (method, route, EXCEPTIONS.get(f"{method} {route}", "reader" if method == "GET" else "contributor"))
    for method, route in sorted(ENDPOINTS)
    if route != GRANTED
]


def principal(*roles: str, auth_typ: str = "aad") -> dict[str, str]:
    claims = [{"typ": "roles", "val": role} for role in roles] + [{"typ": "name", "val": CONTRIBUTOR}]
    text = json.dumps({"auth_typ": auth_typ, "claims": claims, "name_typ": "name", "role_typ": "roles"})
    return {"X-MS-CLIENT-PRINCIPAL": base64.b64encode(text.encode()).decode()}


CALLERS = [{}, principal(), principal(READER), principal(CONTRIBUTOR), principal(CODER)]


def call(method: str, route: str, headers: dict[str, str], body: bytes = b"{}", name: str = "x") -> func.HttpResponse:
    params = dict.fromkeys(re.findall(r"\{\*?(\w+)\}", route), name)
    request = func.HttpRequest(method, f"/api/{route}", headers=headers, params={}, route_params=params, body=body)
    answered: Any = ENDPOINTS[method, route].call(request)
    answer: func.HttpResponse = asyncio.run(answered) if inspect.iscoroutine(answered) else answered
    return answer


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(trainers_folder(tmp_path))
    for name in ("system", "post", "schedules", "removals"):
        monkeypatch.setattr(bootstrap, name, lambda name=name: getattr(made, name))
    return made


def test_the_exceptions_are_routes() -> None:
    """Each exception from the rule is a route of the app, unless its feature was deleted."""
    absent = {call for call, feature in OF_FEATURES.items() if feature not in FEATURES}
    assert {tuple(call.split(" ")) for call in EXCEPTIONS.keys() - absent} <= ENDPOINTS.keys()


@pytest.mark.parametrize(("method", "route", "who"), ROWS, ids=[f"{m} {r}" for m, r, _ in ROWS])
def test_every_caller_is_treated_by_the_rule(
    method: str, route: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Entra ID an anonymous caller gets 401, a caller without the role 403, and a caller with the role is
    admitted."""
    monkeypatch.setenv("TRAINYARD_AUTH", "entra")
    monkeypatch.setenv("WEBSITE_AUTH_ENABLED", "True")
    for headers, expected in zip(CALLERS, ALLOWED[who], strict=True):
        answered = call(method, route, headers)
        refused = answered.status_code if answered.status_code in (401, 403) else True
        assert refused == expected
        if refused is not True:
            problem = json.loads(answered.get_body())
            assert (problem["code"], answered.mimetype) == (
                {401: "unauthenticated", 403: "forbidden"}[answered.status_code],
                "application/problem+json",
            )


@pytest.mark.parametrize(("method", "route", "who"), ROWS, ids=[f"{m} {r}" for m, r, _ in ROWS])
def test_keys_are_asked_for_by_default(method: str, route: str, who: str) -> None:
    """Without Entra ID the host requires a function key on every route but health, and the app requires nothing
    more."""
    assert ENDPOINTS[method, route].auth_level.lower() == ("anonymous" if who == "anyone" else "function")
    assert call(method, route, {}).status_code not in (401, 403)


def test_a_whole_job_is_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor may submit a trainer, but only a coder a whole job, whose command is code."""
    monkeypatch.setenv("TRAINYARD_AUTH", "entra")
    monkeypatch.setenv("WEBSITE_AUTH_ENABLED", "True")
    for role, whole in ((CONTRIBUTOR, 403), (CODER, 422)):
        assert call("POST", "runs", principal(role), b'{"job": {"command": "x"}}').status_code == whole
        assert call("POST", "runs", principal(role), b'{"trainer": "nobody"}').status_code == 422


@pytest.mark.parametrize("job", ["{}", '{"compute": "cpu-cluster"}', '{"compute": "cpu-cluster", "command": "x"}'])
def test_a_job_without_a_required_field_makes_no_run(job: str, world: World) -> None:
    """A job without compute, command or environment gets 422 before a run is made."""
    assert call("POST", "runs", {}, f'{{"job": {job}}}'.encode()).status_code == 422
    assert world.runs.rows == {}


def test_a_key_that_can_not_be_honoured_is_refused() -> None:
    """A lease with an Idempotency-Key is refused, with the reason; one key makes one schedule."""
    lease, headers = b'{"seconds": 60, "why": "x"}', {"Idempotency-Key": "k"}
    refused = call("POST", "clusters/{cluster}/leases", headers, lease, "cpu-cluster")
    problem = json.loads(refused.get_body())
    assert (refused.status_code, problem["code"]) == (422, "no_idempotency_key")
    assert "each call makes a lease of its own" in problem["detail"]
    assert call("POST", "clusters/{cluster}/leases", {}, lease, "cpu-cluster").status_code == 201
    body = b'{"run": {"template": "mnist", "data": "drops/mnist/a"}, "cron": "0 6 * * 1"}'
    made = [json.loads(call("POST", "schedules", headers, body).get_body())["id"] for _ in range(10)]
    assert len(set(made)) == 1


def test_code_comes_by_no_other_way(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """A schedule of a whole job, a drop's job file and, on routes whose drops bring code, each file of a drop count
    as code too."""
    monkeypatch.setenv("TRAINYARD_AUTH", "entra")
    monkeypatch.setenv("WEBSITE_AUTH_ENABLED", "True")
    contributor, coder = principal(CONTRIBUTOR), principal(CODER)
    job = b'{"run": {"job": {"command": "x"}}, "cron": "0 6 * * 1"}'
    assert [call("POST", "schedules", who, job).status_code for who in (contributor, coder)] == [403, 422]

    def upload(name: str, who: dict[str, str]) -> int:
        body = json.dumps({"files": [{"name": name, "size": 1, "modified": 0}]}).encode()
        route = {"route": "mnist", "name": "a"}
        request = func.HttpRequest("POST", "/api", headers=who, params={}, route_params=route, body=body)
        answered: func.HttpResponse = asyncio.run(ENDPOINTS["POST", "drops/{route}/{name}/uploads"].call(request))
        return int(answered.status_code)

    assert [upload(name, contributor) for name in ("1.bin", "job.yaml", "job.json", "data/job.yaml")] == [
        200, 403, 403, 200,
    ]  # fmt: skip
    assert upload("job.yaml", coder) == 200
    allowed = replace(world.system.routes["mnist"], allow=frozenset({"code"}))
    world.system = replace(world.system, routes={"mnist": allowed})
    assert [upload("src/train.py", who) for who in (contributor, coder)] == [403, 200]


@pytest.mark.parametrize(
    ("site", "expected"), [("", None), ("same-origin", None), ("none", None), ("cross-site", 403), ("same-site", 403)]
)
def test_a_page_of_another_site_changes_nothing(site: str, expected: int | None) -> None:
    """A signed-in browser also sends its cookie for a foreign page, so a foreign page's request is refused unless
    it only reads, because the page can't see the answer."""
    headers = principal(CONTRIBUTOR) | ({"Sec-Fetch-Site": site} if site else {})
    access.check(READER, "GET", headers, ON)
    if expected is None:
        access.check(CONTRIBUTOR, "POST", headers, ON)
        return
    for method in ("POST", "DELETE", "PUT"):
        with pytest.raises(access.Denied) as refused:
            access.check(CONTRIBUTOR, method, headers, ON)
        assert refused.value.status == expected


def test_with_entra_the_host_asks_for_no_key() -> None:
    """App Service has authenticated the caller, so the host passes every request to the app, which checks roles."""
    probe = "import functions.access as a; print(a.level().value)"
    for auth, level in (("entra", "anonymous"), ("keys", "function"), ("Entra", "function"), ("", "function")):
        argv, env = [sys.executable, "-c", probe], {"TRAINYARD_AUTH": auth, "PATH": ""}
        done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip().lower() == level


@pytest.mark.parametrize(
    "header",
    [
        "", "x", "bnVsbA==", "e30=", base64.b64encode(b'{"claims": 1}').decode(), base64.b64encode(b"\xff").decode(),
        base64.b64encode(b'{"auth_typ": "aad", "claims": [{"typ": "roles"}]}').decode(),
        principal(CONTRIBUTOR, auth_typ="facebook")["X-MS-CLIENT-PRINCIPAL"],
    ],
)  # fmt: skip
def test_a_header_that_names_no_caller_is_nobody(header: str) -> None:
    """A missing, broken or foreign principal gets 401, never an error of the app."""
    with pytest.raises(access.Denied) as refused:
        access.check(READER, "GET", {"x-ms-client-principal": header}, ON)
    assert refused.value.status == 401


@pytest.mark.parametrize("kind", ["oid", "http://schemas.microsoft.com/identity/claims/objectidentifier"])
def test_a_run_has_its_owners_name_and_object_id(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """With Entra ID a record has the person's name and the permanent object id; with keys it has no id."""
    claims = [{"typ": kind, "val": "0a1b"}, {"typ": "preferred_username", "val": "ann@example.org"}]
    header = base64.b64encode(json.dumps({"auth_typ": "aad", "claims": claims}).encode()).decode()
    request = func.HttpRequest("GET", "/", headers={"x-ms-client-principal": header, access.CALLER: "eve"}, body=b"")
    monkeypatch.setenv("TRAINYARD_AUTH", "entra")
    assert access.who(request) == ("ann@example.org", "0a1b")
    monkeypatch.setenv("TRAINYARD_AUTH", "keys")
    assert access.who(request) == ("eve", "")


def test_all_that_people_do_carries_their_object_id(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    """A lease, its release, a note, tags, a cancellation, a removal, a subscription, a schedule, its pause and a
    cluster scaled to zero all have name and object id."""
    monkeypatch.setenv("TRAINYARD_AUTH", "entra")
    monkeypatch.setenv("WEBSITE_AUTH_ENABLED", "True")
    claims = [("roles", CODER), ("oid", "0a1b"), ("preferred_username", "ann@example.org")]
    text = json.dumps({"auth_typ": "aad", "claims": [{"typ": kind, "val": value} for kind, value in claims]})
    world.runs.insert(run("mnist-1", state=RunState.RUNNING))
    world.runs.insert(run("mnist-2", archived_at=world.clock()))

    def asked(method: str, route: str, name: str, body: Any = None) -> dict[str, Any]:
        headers = {"x-ms-client-principal": base64.b64encode(text.encode()).decode()}
        answered = call(method, route, headers, json.dumps(body or {}).encode(), name)
        assert answered.status_code < 300, answered.get_body()
        told: dict[str, Any] = json.loads(answered.get_body())
        return told

    held = asked("POST", "clusters/{cluster}/leases", "cpu-cluster", {"seconds": 60, "nodes": 1, "why": "x"})
    freed = asked("DELETE", "leases/{lease}", held["lease"])
    note = asked("POST", "runs/{run}/notes", "mnist-1", {"text": "seen"})["notes"][0]
    asked("POST", "runs/{run}/cancel", "mnist-1")
    ended, gone = world.runs.get("mnist-1").value, asked("POST", "runs/{run}/remove", "mnist-2")
    asked("POST", "notices", "", {"on": ["failed"], "to": "ann@example.org"})
    (told,) = world.post.notices.all()
    when = asked("POST", "schedules", "", {"run": {"template": "mnist", "data": "drops/mnist/a"}, "cron": "0 6 * * 1"})
    paused = asked("POST", "schedules/{schedule}/pause", when["id"])
    (tagged,) = asked("POST", "runs/{run}/tags", "mnist-2", {"set": {"stage": "final"}})["audit"]
    world.runs.update(old := world.runs.get("mnist-1"), changed(old.value, state=RunState.CANCELED))
    world.clusters.clusters["cpu-cluster"] = Cluster("cpu-cluster", 1, 4, 120, nodes=1)
    scaling.scale_clusters(world.system)
    world.clock.advance(121)
    asked("POST", "clusters/{cluster}/scale-to-zero", "cpu-cluster")
    low = world.decisions.latest("cpu-cluster")
    assert low is not None
    assert {
        (paused["paused_by"], paused["paused_by_id"]), (tagged["by"], tagged["by_id"]), (low.asked_by, low.asked_by_id),
        (held["owner"], held["owner_id"]), (freed["released_by"], freed["released_by_id"]),
        (note["by"], note["by_id"]), (ended.cancel.by, ended.cancel.by_id), (gone["by"], gone["by_id"]),
        (told.owner, told.owner_id), (when["owner"], when["owner_id"]),
    } == {("ann@example.org", "0a1b")}  # fmt: skip


def test_a_claim_that_is_no_role_gives_none() -> None:
    """Only claims of the role type count, in both spellings of the type; a name that looks like a role does not."""
    with pytest.raises(access.Denied) as refused:
        access.check(READER, "GET", principal(), ON)
    assert refused.value.status == 403
    long_type = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
    text = json.dumps({"auth_typ": "aad", "claims": [{"typ": long_type, "val": READER}]})
    access.check(READER, "GET", {"x-ms-client-principal": base64.b64encode(text.encode()).decode()}, ON)


@pytest.mark.parametrize("env", [{}, {"WEBSITE_AUTH_ENABLED": "False"}])
def test_a_forged_header_is_not_believed(env: dict[str, str]) -> None:
    """While App Service authentication is off, anyone can write the header, so every caller is refused."""
    with pytest.raises(BadSetting, match="Turn it on"):
        access.check(READER, "GET", principal(CONTRIBUTOR), env)


def test_another_kind_of_authentication_is_a_bad_setting() -> None:
    """TRAINYARD_AUTH accepts keys and entra; any other value is refused by name."""
    for auth in ("keys", "entra", ""):
        Settings.from_env({**ENV, "TRAINYARD_AUTH": auth})
    with pytest.raises(BadSetting, match=r"'Entra'.*Choose keys or entra"):
        Settings.from_env({**ENV, "TRAINYARD_AUTH": "Entra"})
