"""Run a table of invocations through one backend and print the outcomes as JSON.

    python conformance_run.py APP direct|runtime TABLE.json

A program of its own because a process can load one app, once. The table is a list of rows
`{"function", "inputs": {name: {"kind", "content"}}, "metadata": {...}, "retry": [count, max]}`; bytes are written as
`{"base64": text}`. An empty table compares the index alone.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
from base64 import b64decode, b64encode
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emulators.host.worker import direct
from emulators.host.worker.__main__ import make_backend
from emulators.host.worker.backend import HttpRequestData, Invocation, Outcome, Value


def value(entry: dict[str, Any]) -> Value:
    content = entry["content"]
    if entry["kind"] == "http":
        return Value("http", HttpRequestData(**{**content, "body": content.get("body", "").encode()}))
    return Value(entry["kind"], b64decode(content["base64"]) if isinstance(content, dict) else content)


def plain(thing: object) -> Any:
    if isinstance(thing, bytes):
        return {"base64": b64encode(thing).decode()}
    raise TypeError(f"{thing!r} has no JSON")


def result(outcome: Outcome) -> dict[str, Any]:
    """Return everything except the traceback, which differs between backends."""
    return {name: part for name, part in asdict(outcome).items() if name != "trace"}


class Attributed(logging.Handler):
    """Stores the app's records with the invocation that the worker assigns to each."""

    def __init__(self, backend_name: str) -> None:
        super().__init__()
        self.records: list[tuple[str, str | None]] = []
        self._runtime = backend_name == "runtime"

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "threads":
            self.records.append((record.getMessage(), self._invocation()))

    def _invocation(self) -> str | None:
        if self._runtime:  # as Microsoft's worker for Python 3.13 does in a thread without a loop
            runtime: Any = importlib.import_module("azure_functions_runtime")
            known: str | None = runtime.invocation_id_cv.get()
            return known
        return getattr(direct._thread_storage, "invocation_id", None)


async def run(app: Path, backend_name: str, table: list[dict[str, Any]]) -> dict[str, Any]:
    backend = make_backend(backend_name, app)
    attributed = Attributed(backend_name)
    logging.getLogger().addHandler(attributed)
    indexed = await backend.start()
    outcomes = []
    for number, row in enumerate(table):
        count, limit = row.get("retry", (0, 0))
        inputs, metadata = (
            {name: value(entry) for name, entry in row.get(part, {}).items()} for part in ("inputs", "metadata")
        )
        call = Invocation(f"invocation-{number}", row["function"], inputs, metadata, count, limit)
        outcomes.append(result(await backend.invoke(call)))
    backend.close()
    functions = sorted((asdict(entry) for entry in indexed), key=lambda e: e["name"])
    return {"indexed": functions, "outcomes": outcomes, "logged": attributed.records}


def main() -> None:
    app, backend_name, table = Path(sys.argv[1]).resolve(), sys.argv[2], json.loads(Path(sys.argv[3]).read_text())
    os.chdir(app)
    logging.getLogger("azure.functions").setLevel(logging.WARNING)
    output = json.dumps(asyncio.run(run(app, backend_name, table)), default=plain, indent=1)
    sys.stdout.write(output + "\n")
    sys.stdout.flush()
    os._exit(0)  # because the runtime's threads do not end


if __name__ == "__main__":
    main()
