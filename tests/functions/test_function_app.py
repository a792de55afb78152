"""The app as Azure Functions sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from shared.kernel.index_settings import ROOT
from shared.messages.declared import QUEUES

PROBE = """
import json, sys
import function_app
functions = function_app.app.get_functions()
print(json.dumps({
    "functions": {f.get_function_name(): f.get_trigger().get_binding_name() for f in functions},
    "heavy": [m for m in sys.modules if m.startswith(tuple(sys.argv[1:]))],
}))
"""
HEAVY = ("azure.ai", "azure.storage", "azure.data", "torch", "aiohttp", "msgspec")


def probe() -> dict[str, Any]:
    argv = [sys.executable, "-c", PROBE, *HEAVY]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_every_trigger_is_there() -> None:
    """Queues, their Event Grid twins, the two timers and the HTTP endpoints are indexed."""
    functions = probe()["functions"]

    assert {name for name, kind in functions.items() if kind == "queueTrigger"} == {
        *(name.replace("-", "_") for name in QUEUES),
    }
    assert {name for name, kind in functions.items() if kind == "eventGridTrigger"} == {"drop_event", "job_event"}
    assert {name for name, kind in functions.items() if kind == "timerTrigger"} == {
        "reconcile_timer",
        "retention_timer",
        "scaling_timer",
    }
    assert "health" in functions


def test_indexing_imports_no_sdk() -> None:
    """Importing function_app pulls in no Azure SDK, no torch, and nothing that models of the API are made of."""
    assert probe()["heavy"] == []
