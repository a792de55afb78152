"""Azure Monitor is set up when there is something to send, and what was logged before is not lost."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOAD = """
import sys, function_app
print([name for name in sys.modules if name.startswith(("azure.monitor", "opentelemetry."))])
"""
SEND = """
import logging, os, sys
import function_app
from functions import monitor, telemetry
logging.getLogger("shared").warning("said before")
{begin}
with telemetry.span("submit run", run="run-1"):
    logging.getLogger("shared").warning("said within")
from opentelemetry import trace, _logs
trace.get_tracer_provider().force_flush()
_logs.get_logger_provider().force_flush()
print(monitor._held.records)
sys.stdout.flush()
os._exit(0)
"""


class Ingestion:
    """What Application Insights was sent."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.address = ""

    def names(self, kind: str, part: str) -> list[str]:
        return [item["data"]["baseData"][part] for item in self.items if item["data"]["baseType"] == kind]


@contextmanager
def ingestion() -> Iterator[Ingestion]:
    taken = Ingestion()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/track"):
                plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                taken.items += json.loads(plain)
            count = len(taken.items)
            answer = json.dumps({"itemsReceived": count, "itemsAccepted": count, "errors": []}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    taken.address = f"http://127.0.0.1:{server.server_port}/"
    yield taken
    server.shutdown()
    server.server_close()


def app(code: str, address: str = "http://127.0.0.1:9/") -> str:
    key = "00000000-0000-0000-0000-000000000001"
    endpoints = f"IngestionEndpoint={address};LiveEndpoint={address}"
    env = {
        "PATH": "",
        "PYTHONPATH": str(ROOT),
        "PYTHON_ENABLE_OPENTELEMETRY": "true",
        "APPLICATIONINSIGHTS_CONNECTION_STRING": f"InstrumentationKey={key};{endpoints}",
        "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_loading_the_app_sets_nothing_up() -> None:
    """With telemetry on, the app is loaded without Azure Monitor and OpenTelemetry: no start waits for them."""
    assert app(LOAD) == "[]"


def test_the_first_span_sets_it_up() -> None:
    """A message's span and what was logged, before and within, arrive at Application Insights."""
    with ingestion() as taken:
        assert app(SEND.format(begin=""), taken.address) == "deque([], maxlen=1000)"
    assert "submit run" in taken.names("RequestData", "name")
    assert {"said before", "said within"} <= set(taken.names("MessageData", "message"))


def test_after_an_answer_it_is_set_up_beside() -> None:
    """A call's answer doesn't wait: the set-up begins once, a moment later, and what was logged then is sent."""
    begin = "monitor.LATER_SECONDS = 0; monitor.start_soon(); monitor.start_soon(); assert monitor._done.wait(60)"
    with ingestion() as taken:
        assert app(SEND.format(begin=begin), taken.address) == "deque([], maxlen=1000)"
    assert taken.names("MessageData", "message").count("said before") == 1


def test_what_cannot_be_set_up_fails_nothing() -> None:
    """A connection string that is none costs a warning, and handlers go on."""
    code = (
        "import function_app\nfrom functions import telemetry\nwith telemetry.span('x', run='r'):\n    print('went on')"
    )
    assert (
        app(
            code.replace(
                "import function_app",
                "import os; os.environ['APPLICATIONINSIGHTS_CONNECTION_STRING'] = 'no'; import function_app",
            )
        )
        == "went on"
    )
