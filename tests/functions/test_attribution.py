"""Log records of handlers carry their invocation, whichever thread wrote them; and which records are not logged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emulators.testing.conformance import http, one, run
from shared.kernel.index_settings import ROOT
from tests.runtime import python313

__all__ = ["python313"]

APP = Path(__file__).parent / "apps" / "threads"
TABLE = [
    {"function": "plain", "inputs": http()},
    {"function": "many", "inputs": http()},
    {"function": "waiting", "inputs": http()},
    {"function": "work", "inputs": one("message", "string", "{}")},
    {"function": "plain", "inputs": http()},
]
LOGGED = [
    *(["plain", "invocation-0"], ["many", "invocation-1"], ["many", "invocation-1"], ["waiting", "invocation-2"]),
    *(["work", "invocation-3"], ["work", "invocation-3"], ["plain", "invocation-4"]),
]


def test_records_of_our_threads_carry_their_invocation(tmp_path: Path) -> None:
    """The invocation comes from the thread-local storage that Azure's worker documents; a record without an
    invocation is dropped."""
    assert run(sys.executable, APP, "direct", TABLE, tmp_path, [ROOT])["logged"] == LOGGED


def test_microsofts_runtime_knows_them_too(python313: str, tmp_path: Path) -> None:
    """The invocation comes from the variable of azure-functions-runtime, which the worker for Python 3.13 reads."""
    assert run(python313, APP, "runtime", TABLE, tmp_path, [ROOT])["logged"] == LOGGED


@pytest.mark.parametrize("name", ["azure.core.pipeline.policies.http_logging_policy", "azure.identity"])
def test_requests_of_sdks_are_not_logged(name: str) -> None:
    """The worker shows everything from INFO on, and two records per request would be most of the log."""
    probe = (
        "import logging, function_app; logging.getLogger().setLevel(logging.INFO)\n"
        f"print(logging.getLogger({name!r}).isEnabledFor(logging.INFO), logging.getLogger('shared').isEnabledFor(20))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_telemetry_that_cannot_start_is_told_once_and_fails_nothing() -> None:
    """Without the exporter's package a traced handler runs, and one warning names the missing package."""
    probe = (
        "import sys; sys.modules['opentelemetry.exporter.otlp.proto.http._log_exporter'] = None\n"
        "from functions import telemetry\n"
        "for name in ('a', 'b'):\n"
        "    with telemetry.span(name):\n"
        "        print('ran')\n"
    )
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout.split()) == (0, ["ran", "ran"])
    assert done.stderr.count("OTEL_EXPORTER_OTLP_ENDPOINT is set, and nothing is sent") == 1
