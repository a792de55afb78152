"""A workspace whose nodes cost money, with a grant, and a program that holds the grant's token."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import azure.functions as func

from shared.grants import manage
from shared.grants.manage import Created
from shared.grants.model import Grant, GrantTerms, May
from shared.grants.ports import GRANTS
from shared.kernel.operation import CODER
from shared.kernel.person import Person
from shared.kernel.reply import Caller
from shared.money.charge_costs import keep_books
from shared.runs.intake import create
from shared.runs.model import Run
from tests.fakes.world import World
from tests.shared.money.spending import paying_world, request

ANN = Caller("keys", Person("ann"), True, CODER)
DATA = "drops/mnist/a"
ALL = tuple(May)


def world_with_grants(folder: Path) -> World:
    """Return a world whose cluster costs $3.60 per node hour; a run of route mnist has two nodes and a time limit
    of an hour."""
    made = paying_world(folder)
    made.system = replace(made.system, money=replace(made.system.money, budgets={}))
    return made


def terms(world: World, **changes: Any) -> GrantTerms:
    until = manage.read_until("23:59", world.clock())
    made = GrantTerms(50.0, until, ALL, routes=("mnist",), clusters=("cpu-cluster",), shares=(DATA,))
    return replace(made, **changes)


def granted(world: World, **changes: Any) -> Created:
    return manage.create(world.system, "nightly search", terms(world, **changes), ANN)


def now(world: World, made: Created) -> Grant:
    stored = world.system.store(GRANTS).get(made.grant.id)
    assert stored is not None
    return stored.value


def submit(world: World, made: Created, key: str | None = None, **more: Any) -> Run:
    return create.create_run(world.system, request(**more), key, *made.grant.person)


def books(world: World) -> None:
    keep_books(world.system)
    world.run_until_idle()


def ask(
    method: str, path: str, token: str, body: Any = None, params: dict[str, str] | None = None, key: str = ""
) -> tuple[int, Any]:
    """Send the program's request through the app's function for guests. Return status and answer."""
    from tests.functions import indexed

    function = next(each for each in indexed.functions() if each.get_function_name() == "granted")
    headers = {"authorization": f"Bearer {token}", **({"idempotency-key": key} if key else {})}
    sent = func.HttpRequest(
        method, f"/api/granted/{path}", headers=headers, params=params or {}, route_params={"path": path},
        body=b"" if body is None else json.dumps(body).encode(),
    )  # fmt: skip
    answered: Any = function.get_user_function()(sent)
    answer = asyncio.run(answered) if inspect.iscoroutine(answered) else answered
    text = answer.get_body()
    return answer.status_code, json.loads(text) if text and "json" in (answer.mimetype or "") else text
