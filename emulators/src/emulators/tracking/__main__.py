"""`python -m emulators.tracking --config FILE.json`: serve MLflow's REST API until stopped.

The configuration has `database`, a file; `artifact_root` and `run_files`, addresses at which MLflow's clients find
files, the latter with `{run}`; and `secret`, which each request must have in X-Emulators-Secret.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import mlflow
from flask import Flask, Response, request
from mlflow.server import app, handlers
from werkzeug.serving import WSGIRequestHandler, make_server

from emulators.process import serve_until_stopped
from emulators.tracking.database import make_ready
from emulators.tracking.records import Runs, put_models

SECRET_HEADER = "HTTP_X_EMULATORS_SECRET"
Start = Callable[..., Any]


@dataclass(frozen=True)
class Config:
    database: Path
    artifact_root: str
    run_files: str
    secret: str


@dataclass(frozen=True)
class Locked:
    """An application that requires the secret, because every program of this machine can reach the port."""

    inner: Flask
    secret: str

    def __call__(self, environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        if not hmac.compare_digest(environ.get(SECRET_HEADER, ""), self.secret):
            return Response("This port is the control plane's own.", status=403)(environ, start_response)
        return self.inner(environ, start_response)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        """Log nothing, because the control plane records the requests."""


def build(config: Config) -> Flask:
    """Return MLflow's application on our database, with the routes by which the control plane reports jobs and
    models."""
    make_ready(config.database)
    uri = f"sqlite:///{config.database.resolve()}"
    os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"  # so that clients request files where they request runs
    runs = Runs(uri, config.artifact_root, config.run_files)
    # MLflow finds its stores by these. Both are created once, before the first request.
    mlflow.set_tracking_uri(uri)  # the registry uses MLflow's own client to find a model's run
    known: Any = handlers
    known._tracking_store = runs
    known._model_registry_store = handlers._model_registry_store_registry.get_store(uri)

    @app.post("/workspace/jobs")
    def put_jobs() -> Response:
        runs.put_jobs(request.get_json())
        return Response(status=204)

    @app.post("/workspace/models")
    def put_versions() -> Response:
        put_models(runs.engine, request.get_json())
        return Response(status=204)

    return app


async def serve(config: Config) -> None:
    locked = Locked(build(config), config.secret)
    server = make_server("127.0.0.1", 0, locked, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    await serve_until_stopped(url=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.tracking", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the part's configuration, a JSON file")
    values = json.loads(parser.parse_args().config.read_text())
    asyncio.run(serve(Config(**{**values, "database": Path(values["database"])})))


if __name__ == "__main__":
    main()
