"""Every route of the app reaches its own function under the rule of Azure's host: the first match by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from emulators.host import functions as definitions
from emulators.host.config import HostJson
from emulators.host.functions import HttpTrigger
from emulators.host.http.front import router_of
from emulators.host.worker.backend import Indexed
from tests.functions.indexed import functions

STORAGE = {"AzureWebJobsStorage": "UseDevelopmentStorage=true"}


def read() -> list[definitions.Function]:
    indexed = [Indexed(str(f.get_function_name()), tuple(f.get_raw_bindings())) for f in functions()]
    return definitions.read(indexed, HostJson(), STORAGE)


def paths(trigger: HttpTrigger) -> list[str]:
    """Paths meant for this route: one value for each parameter, and several for a catch-all."""
    path = re.sub(r"\{\w+\}", "a1", trigger.route.text)
    return [re.sub(r"\{\*\w+\}", rest, path) for rest in ("one", "one/two.txt")]


@pytest.mark.parametrize("function", [f for f in read() if isinstance(f.trigger, HttpTrigger)], ids=lambda f: f.name)
def test_no_route_is_hidden_by_one_of_an_earlier_name(function: Any) -> None:
    """Azure's host sorts functions by name and uses the first route that matches, however general it is."""
    router, trigger = router_of(read()), function.trigger
    reached = {
        router.find(method, f"/{path}") and router.find(method, f"/{path}")[0][0].name  # type: ignore[index]
        for method in trigger.methods
        for path in paths(trigger)
    }
    assert reached == {function.name}
