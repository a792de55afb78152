"""A local cloud with the smallest possible app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local import cloud

APP = """
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.route("ping")
def ping(req: func.HttpRequest) -> str:
    return "pong"
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an app with one HTTP function, ping."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "function_app.py").write_text(APP)
    (folder / "host.json").write_text('{"version": "2.0"}')
    return folder


@pytest.fixture(scope="module")
def running(app: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[cloud.Cloud]:
    with cloud.Cloud.start(tmp_path_factory.mktemp("home") / ".trainyard" / "cloud", cloud.Options(app=app)) as running:
        yield running
