"""What a program with a token may call and see, tested through the app's own function for guests."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from shared import bootstrap
from shared.api.registry import OPERATIONS
from shared.features import FEATURES
from shared.grants import manage
from shared.grants.guest import RULES
from shared.grants.manage import Created
from shared.grants.model import May
from shared.grants.token import digest_of
from shared.runs.intake import create
from tests.fakes.world import World
from tests.shared.grants.granting import ANN, DATA, ask, granted, now, submit, world_with_grants
from tests.shared.money.spending import goes, request, wait

RUN = {"template": "mnist", "data": DATA}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = world_with_grants(tmp_path)
    for name in ("system", "post", "schedules", "removals"):
        monkeypatch.setattr(bootstrap, name, lambda name=name: getattr(made, name))
    made.complete("1.bin")
    return made


@pytest.fixture
def made(world: World) -> Created:
    return granted(world)


def test_every_rule_is_an_operation() -> None:
    """The table of allowed calls names only operations of the API, and none that changes grants."""
    names = {operation.name for operation in OPERATIONS}
    of_others = {"serve_mcp"} if "shared.agents" not in FEATURES else set()
    assert set(RULES) - of_others <= names
    assert not {name for name in RULES if "grant" in name} - {"get_own_grant"}


def test_a_program_submits_reads_and_cancels(world: World, made: Created) -> None:
    """The token alone is enough for a dry run, a run, the run's record, the list of own runs, a cancel, and the
    balance."""
    status, plan = ask("POST", "runs", made.token, RUN, {"dry_run": "true"})
    assert (status, plan["reasons"], plan["cost"]["greatest"]) == (200, [], pytest.approx(10.8))
    status, run = ask("POST", "runs", made.token, RUN)
    assert status == 202
    status, record = ask("GET", f"runs/{run['run']}", made.token)
    assert (status, record["owner"]) == (200, f"nightly search (grant {made.grant.id})")
    assert [each["run"] for each in ask("GET", "runs", made.token)[1]["runs"]] == [run["run"]]
    assert ask("GET", "grant", made.token)[1]["left"] == pytest.approx(50 - 10.8)
    assert ask("POST", f"runs/{run['run']}/cancel", made.token)[0] == 202
    assert ask("GET", "me", made.token)[1]["auth"] == "grant"
    assert [each["route"] for each in ask("GET", "routes", made.token)[1]] == ["mnist"]
    assert ask("GET", "routes", granted(world, routes=()).token)[1] == []


def test_tokens_that_do_not_count(world: World, made: Created) -> None:
    """A forged, truncated, foreign or revoked token, and one a day after the grant's end, get no information."""
    other = granted(world)
    forged = made.token[:-1] + ("A" if made.token[-1] != "A" else "B")
    for token in (forged, made.token[:-1], "", "tg_", f"tg_{other.grant.id}_{made.token[16:]}", "x" * 100_000, "tg_é"):
        assert ask("GET", "grant", token)[0] == 401
    manage.revoke(world.system, other.grant.id, ANN)
    assert ask("GET", "grant", other.token)[0] == 401
    world.clock.advance(17 * 3600)
    status, refused = ask("POST", "runs", made.token, RUN)
    assert (status, refused["code"]) == (409, "grant_over")
    assert ask("GET", "grant", made.token)[0] == 200
    world.clock.advance(24 * 3600)
    assert ask("GET", "grant", made.token)[0] == 401


def test_things_of_others_do_not_exist(world: World, made: Created) -> None:
    """Others' runs, drops and models are "not found", worded like things that do not exist, and lists omit them."""
    theirs = create.create_run(world.system, request(), owner="ann")
    foreign = submit(world, granted(world))
    world.run_until_idle()
    for name in (theirs.name, foreign.name):
        for path in ("", "/live", "/logs", "/metrics", "/artifacts", "/artifacts/x", "/trials", "/usage"):
            status, answer = ask("GET", f"runs/{name}{path}", made.token)
            assert status == 404
            assert answer["detail"] == f"There is no run '{name}'."
        for what in ("cancel", "retry", "continue", "notes", "tags"):
            body = {"text": "x"} if what == "notes" else {}
            assert ask("POST", f"runs/{name}/{what}", made.token, body)[0] == 404
        assert ask("GET", "compare", made.token, params={"runs": f"{name},{theirs.name}"})[0] == 404
        assert ask("GET", "curves", made.token, params={"runs": name})[0] == 404
        assert ask("POST", "runs", made.token, {**RUN, "from_run": name})[0] == 404
    assert ask("GET", "runs", made.token)[1]["runs"] == []
    assert ask("GET", "runs", made.token, params={"owner": "ann"})[0] == 422
    assert ask("GET", "drops/mnist/b", made.token)[0] == 404
    assert ask("GET", "drops/mnist/a", made.token)[0] == 200
    assert ask("GET", "models/churn", made.token)[0] == 404
    assert ask("POST", "runs", made.token, {**RUN, "data": "drops/mnist/b"})[0] == 404
    for other in ("rows", "status", "today", "costs", "clusters", "leases", "nodes", "drops", "find", "schedules"):
        assert ask("GET", other, made.token, params={"name": "x"})[0] == 403
    for other in ("grants", f"grants/{made.grant.id}", "grants/../grants"):
        assert ask("GET", other, made.token)[0] in (403, 404)


def test_what_is_shared_is_only_read(world: World) -> None:
    """A shared run is readable, unlike its owner's other things; the run can't be canceled or retried."""
    theirs = create.create_run(world.system, request(), owner="ann")
    made = granted(world, shares=(f"runs/{theirs.name}",))
    assert ask("GET", f"runs/{theirs.name}", made.token)[0] == 200
    for what in ("cancel", "retry"):
        assert ask("POST", f"runs/{theirs.name}/{what}", made.token, {})[0] == 403


def test_a_narrowed_token_has_its_new_limits_at_once(world: World, made: Created) -> None:
    """A right that is removed from a grant is gone with the next request."""
    manage.narrow(world.system, made.grant.id, {"may": (May.READ,)}, ANN)
    status, answer = ask("POST", "runs", made.token, RUN)
    assert (status, answer["code"]) == (403, "forbidden")
    assert "may not submit" in answer["detail"]


def test_what_a_request_may_ask_for(world: World, made: Created) -> None:
    """A request may name only the grant's routes and trainers, no date, no project, and code only if the grant
    allows code."""
    assert ask("POST", "runs", made.token, {"trainer": "trees"})[0] == 403
    assert ask("POST", "runs", made.token, {**RUN, "within_seconds": 3600})[0] == 403
    assert ask("POST", "runs", made.token, {**RUN, "tags": {"project": "vision"}})[0] == 403
    job = {"command": "x", "environment": "azureml:e:1", "compute": "azureml:cpu-cluster"}
    without_code = granted(world, may=tuple(each for each in May if each is not May.RUN_CODE))
    assert ask("POST", "runs", without_code.token, {"job": job})[0] == 403
    assert ask("POST", "runs", made.token, {"job": {**job, "limits": {"timeout": 600}}})[0] == 202
    for path in ("azureml://datastores/drops/paths/mnist/b/", "azureml:data:1", "wasbs://x@y/z"):
        inputs = {"data": {"type": "uri_folder", "path": path}}
        assert ask("POST", "runs", made.token, {"job": {**job, "inputs": inputs}})[0] in (404, 422)


def test_a_key_of_a_program_is_its_own(world: World, made: Created) -> None:
    """An Idempotency-Key that someone else used neither returns nor names their run."""
    theirs = create.create_run(world.system, request(), "k", owner="ann")
    status, run = ask("POST", "runs", made.token, RUN, key="k")
    assert status == 202
    assert run["run"] != theirs.name
    assert ask("POST", "runs", made.token, RUN, key="k")[1]["run"] == run["run"]


def test_uploads_go_to_drops_of_its_own(world: World, made: Created) -> None:
    """Upload addresses exist only for names that begin with the grant's id, so the drop's run is the grant's."""
    body = {"files": [{"name": "1.bin", "size": 1, "modified": 0}]}
    assert ask("POST", "drops/mnist/a/uploads", made.token, body)[0] == 403
    assert ask("POST", f"drops/mnist/grant-{'0' * 12}-a/uploads", made.token, body)[0] == 403
    name = f"{now(world, made).id}-x"
    assert ask("POST", f"drops/mnist/grant-{name}/uploads", made.token, body)[0] == 200
    world.upload(f"mnist/grant-{name}/1.bin")
    world.upload(f"mnist/grant-{name}/_SUCCESS", b"")
    world.deliver_all()
    world.clock.advance(10)
    world.run_until_idle()
    (run,) = now(world, made).reserved
    assert world.runs.get(run).value.people.owner_id == made.grant.person.id
    assert ask("GET", f"drops/mnist/grant-{name}", made.token)[1]["run"] == run


def test_the_secret_is_stored_and_logged_nowhere(
    world: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record has the secret's digest; no log line, error or later answer contains the secret itself."""
    with caplog.at_level(logging.DEBUG):
        made = granted(world)
        answers: list[Any] = [ask("GET", path, made.token) for path in ("grant", "runs", "me", "runs/x", "rows")]
        answers.append(ask("GET", "grant", made.token + "x"))
        answers.append(ask("POST", "runs", made.token, {**RUN, "data": made.token}))
        wait(world, 5)
    secret = made.token.rpartition("_")[2] if made.token.count("_") == 2 else made.token[16:]
    record = now(world, made)
    assert record.secret == digest_of(made.token[16:])
    told = "".join([repr(record), caplog.text, *capsys.readouterr(), *map(str, answers[:-1])])
    assert secret not in told


def test_runs_ahead_are_not_named(world: World, made: Created) -> None:
    """The reason why a run waits does not name others' runs."""
    theirs = create.create_run(world.system, request(), owner="ann")
    second = create.create_run(world.system, request(), owner="ann")
    run = submit(world, made)
    world.run_until_idle()
    for each in (theirs, second):
        goes(world, each, "Running")
    text = str(ask("GET", f"runs/{run.name}", made.token)[1])
    assert theirs.name not in text
    assert second.name not in text
