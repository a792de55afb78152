"""Azure Monitor is set up when there is something to send, and earlier log records are not lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emulators.insights import Ingestion, ingestion

ROOT = Path(__file__).resolve().parents[2]
LOAD = """
import sys, function_app
print([name for name in sys.modules if name.startswith(("azure.monitor", "opentelemetry."))])
"""
SEND = """
import logging, os, sys
import function_app
from functions import monitor, telemetry
worker = logging.getLogger("azure_functions_worker")
logging.getLogger().setLevel(logging.INFO)
logging.getLogger("shared").warning("said before")
worker.info("Received WorkerLoadRequest")
{begin}
with telemetry.span("submit run", run="run-1"):
    logging.getLogger("shared.runs").info("said within")
    worker.info("Received FunctionInvocationRequest")
    worker.warning("The worker warns")
from opentelemetry import trace, _logs
trace.get_tracer_provider().force_flush()
_logs.get_logger_provider().force_flush()
print(monitor._held.records)
sys.stdout.flush()
os._exit(0)
"""


def app(code: str, address: str = "http://127.0.0.1:9/") -> str:
    connection = Ingestion()
    connection.address = address
    env = {
        "PATH": "",
        "PYTHONPATH": str(ROOT),
        "APPLICATIONINSIGHTS_CONNECTION_STRING": connection.connection_string,
        "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_loading_the_app_sets_nothing_up() -> None:
    """With telemetry on, the app loads without Azure Monitor and OpenTelemetry, so no start waits for them."""
    assert app(LOAD) == "[]"


def test_the_first_span_sets_it_up() -> None:
    """A message's span and the log records before and within the span arrive at Application Insights."""
    with ingestion() as taken:
        assert app(SEND.format(begin=""), taken.address) == "deque([], maxlen=1000)"
    assert "submit run" in taken.names("RequestData", "name")
    assert {"said before", "said within"} <= set(taken.names("MessageData", "message"))


def test_after_an_answer_it_is_set_up_beside() -> None:
    """An API answer doesn't wait: the set-up starts once, a moment later, and earlier log records are sent."""
    begin = "monitor.LATER_SECONDS = 0; monitor.start_soon(); monitor.start_soon(); assert monitor._done.wait(60)"
    with ingestion() as taken:
        assert app(SEND.format(begin=begin), taken.address) == "deque([], maxlen=1000)"
    assert taken.names("MessageData", "message").count("said before") == 1


def test_what_cannot_be_set_up_fails_nothing() -> None:
    """An invalid connection string costs a warning, and handlers still run."""
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


WORKER = """
from azure.monitor.opentelemetry import configure_azure_monitor
configure_azure_monitor()
"""


@pytest.mark.parametrize("worker", ["", WORKER], ids=["by the app", "by an older worker"])
def test_each_record_is_exported_once_and_none_of_the_worker(worker: str) -> None:
    """The worker's own records are not exported, except warnings; no record is exported twice."""
    with ingestion() as taken:
        app(worker + SEND.format(begin=""), taken.address)
    told = taken.names("MessageData", "message")
    # Before the app is loaded, the older worker may export anything.
    assert sorted(told) == ["The worker warns", "said before", "said within"]


def test_the_app_exports_no_span_of_a_request_and_no_counter() -> None:
    """Only messages and timers have spans: requests to Azure have none, and process counters are not exported."""
    with ingestion() as taken:
        request = f"import urllib.request as u; u.urlopen('{taken.address}ask', b'x').read()"
        flush = "from opentelemetry import metrics; metrics.get_meter_provider().force_flush()"
        app(SEND.format(begin=f"telemetry.on(); {request}; {flush}"), taken.address)
    assert taken.names("RemoteDependencyData", "name") == []
    assert taken.names("RequestData", "name") == ["submit run"]
    assert taken.counts()["metrics"] == 0
