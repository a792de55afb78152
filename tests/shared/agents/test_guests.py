"""The tools with a grant's token: the same rules as for the API, and no access to others' runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared import bootstrap
from shared.grants.manage import Created
from shared.runs.intake import create
from tests.fakes.world import World
from tests.shared.grants.granting import DATA, ask, granted, world_with_grants
from tests.shared.money.spending import request

TRAIN = {"template": "mnist", "data": DATA}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A workspace whose nodes cost money."""
    made = world_with_grants(tmp_path)
    for name in ("system", "post", "schedules", "removals"):
        monkeypatch.setattr(bootstrap, name, lambda name=name: getattr(made, name))
    return made


@pytest.fixture
def made(world: World) -> Created:
    world.complete("1.bin")
    return granted(world)


def use(token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    status, found = ask("POST", "mcp", token, body)
    assert status == 200, found
    text = found["result"]["content"][0]["text"]
    return {"error": text} if found["result"]["isError"] else json.loads(text)


def test_a_grant_is_used_with_the_tools_alone(world: World, made: Created) -> None:
    """A caller with a grant finds, plans, submits, follows and cancels its own run; others' runs do not exist for
    it."""
    theirs = create.create_run(world.system, request(), owner="ann").name
    assert [each["route"] for each in use(made.token, "find", kind="routes")["routes"]] == ["mnist"]
    plan = use(made.token, "plan", train=TRAIN)
    assert plan["greatest_cost"] == pytest.approx(10.8)
    run = use(made.token, "submit", plan=plan["plan"])["run"]
    assert [each["run"] for each in use(made.token, "find")["runs"]] == [run]
    assert use(made.token, "wait", runs=[run])["all_ended"] is False
    assert use(made.token, "inspect", name=run)["greatest_cost"] == pytest.approx(10.8)
    for tool, arguments in (("inspect", {"name": theirs}), ("logs", {"run": theirs}), ("wait", {"runs": [theirs]})):
        assert use(made.token, tool, **arguments)["error"].startswith("not_found: ")
    assert "not_found" in use(made.token, "cancel", run=theirs)["error"]
    assert use(made.token, "inspect", name="mnist@latest")["error"].startswith("not_found: ")
    assert use(made.token, "cancel", run=run)["run"] == run


def test_a_plan_beyond_the_grant_starts_nothing(world: World, made: Created) -> None:
    """The grant's limits are checked at the plan and again at the submission; other callers' plans are unknown."""
    other = granted(world)
    plan = use(made.token, "plan", train=TRAIN)["plan"]
    assert use(other.token, "submit", plan=plan)["error"].startswith("not_found: ")
    started = [use(made.token, "submit", plan=use(made.token, "plan", train=TRAIN)["plan"]) for _ in range(6)]
    assert [("run" in each) for each in started] == [True] * 4 + [False] * 2  # 50 dollars, 10.80 each
