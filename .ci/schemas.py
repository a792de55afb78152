"""Makes schemas/cli.json: a JSON Schema for what each command prints with --json, from the types behind the answers.

.trainyard/venv/bin/python .ci/schemas.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from cli import results  # noqa: E402
from cli.api import replay  # noqa: E402
from cli.setup import doctor  # noqa: E402
from shared.api import records  # noqa: E402
from shared.api.registry import OPERATIONS  # noqa: E402
from shared.api.signature import signature  # noqa: E402
from shared.removals.api import Removal  # noqa: E402

FILE = ROOT / "schemas" / "cli.json"
LINES = ("logs", "evict")  # print an object a line, each of which is described
FOLLOWED = [("get", "runs/{run}")]  # what --follow ends with
# The requests of the API whose answer a command prints as it is.
OF_THE_API: dict[str, list[tuple[str, str]]] = {
    "submit": [("post", "runs"), *FOLLOWED],
    "drop": FOLLOWED,
    "compare": [("get", "compare")],
    "show": [("get", "runs/{run}"), ("get", "drops/{route}/{name}")],
    "metrics": [("get", "runs/{run}/metrics")],
    "cancel": [("post", "runs/{run}/cancel")],
    "retry": [("post", "runs/{run}/retry"), *FOLLOWED],
    "continue": [("post", "runs/{run}/continue"), *FOLLOWED],
    "note": [("post", "runs/{run}/notes")],
    "tag": [("post", "runs/{run}/tags")],
    "import": [("post", "imports"), ("post", "runs"), *FOLLOWED],
    "run": FOLLOWED,
    "clusters": [("get", "clusters")],
    "cost": [("get", "costs")],
    "lease": [("post", "clusters/{cluster}/leases")],
    "leases": [("get", "leases")],
    "extend": [("post", "leases/{lease}/extend")],
    "release": [("delete", "leases/{lease}")],
    "pause": [("post", "clusters/{cluster}/scale-to-zero")],
    "status": [("get", "status")],
    "du": [("get", "usage"), ("get", "removals"), ("get", "retention")],
    "data log": [("get", "drops/{route}/{name}/generations")],
    "data diff": [("get", "data/diff")],
    "data files": [("get", "data/files")],
    "schedule add": [("post", "schedules")],
    "schedule list": [("get", "schedules")],
    "schedule log": [("get", "schedules/{schedule}/firings")],
    "schedule pause": [("post", "schedules/{schedule}/pause")],
    "schedule resume": [("post", "schedules/{schedule}/resume")],
    "schedule remove": [("delete", "schedules/{schedule}")],
    "notify add": [("post", "notices")],
    "notify list": [("get", "notices")],
    "notify test": [("post", "notices/{subscription}/test")],
    "notify log": [("get", "notices/{subscription}/deliveries")],
    "notify remove": [("delete", "notices/{subscription}")],
    "promote": [("post", "models/{model}/versions"), ("post", "models/{model}/aliases/{alias}")],
    "models": [("get", "models"), ("get", "models/{model}"), ("post", "models/{model}/versions/{version}/let-go")],
    "why": [("get", "models/{model}/versions/{version}/why")],
    "reproduce": [
        ("get", "models/{model}/versions/{version}/reproductions/{run}"),
        ("post", "models/{model}/versions/{version}/reproduce"),
    ],
    "admin register": [("post", "register")],
}
OWN: dict[str, list[Any]] = {
    "runs": [list[records.Run]],
    "drop": [results.Dropped, results.DropPlan],
    "logs": [results.LogPiece],
    "metrics": [results.Picture],
    "fetch": [results.Fetched],
    "verify": [results.Verification],
    "predict": [list[results.Prediction]],
    "clusters": [results.ClusterSteps, list[records.Decision]],
    "evict": [results.EvictedNode],
    "rm": [list[Removal]],
    "doctor": [list[doctor.Finding]],
    "open": [results.Address],
    "completion": [results.Completion],
    "login": [results.LoggedIn],
    "logout": [results.LoggedOut],
    "admin smoke": [list[results.SmokeCheck]],
    "admin replay": [replay.Replayed],
}


def document() -> dict[str, Any]:
    """One schema for each command, under its name in $defs, beside the types that they share."""
    wanted = {name: _types(name) for name in sorted({*OF_THE_API, *OWN})}
    every = [each for types in wanted.values() for each in types]
    schemas, components = msgspec.json.schema_components(every, ref_template="#/$defs/{name}")
    found = iter(schemas)
    commands = {name.replace(" ", "-"): _any_of(name, [next(found) for _ in types]) for name, types in wanted.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What Trainyard's commands print with --json",
        "description": "That of a command is #/$defs/<command>, such as #/$defs/data-log. New fields may come.",
        "$defs": {**commands, **dict(sorted(components.items()))},
    }


def _types(command: str) -> list[Any]:
    types = [each for method, path in OF_THE_API.get(command, ()) for each in _answer(method, path)]
    return list({repr(each): each for each in [*types, *OWN.get(command, ())]}.values())


def _answer(method: str, path: str) -> list[Any]:
    """The types of the good answers of an operation of the API."""
    found = next(o for o in OPERATIONS if (o.method, o.path) == (method.upper(), path))
    return [model for model in signature(found).answers.values() if model is not None]


def _any_of(command: str, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    words = f"trainyard {command} --json" + (", each line" if command in LINES else "")
    return {"title": words, **(schemas[0] if len(schemas) == 1 else {"anyOf": schemas})}


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
