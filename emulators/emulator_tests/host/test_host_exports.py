"""What the host exports to Application Insights under different host.json settings, seen by a local ingestion
endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.host.conftest import StartHost, ours_alone
from emulators.host.exporting import Exporter, Logging
from emulators.insights import Ingestion, ingestion
from emulators.process import wait_for

INFORMATION, WARNING, ERROR = 2, 3, 4
POLLING = {"queues": {"maxPollingInterval": "00:00:00.200", "messageEncoding": "none"}}
QUIET: dict[str, Any] = {
    "logLevel": {"default": "Warning", "Host.Results": "Information"},
    "applicationInsights": {"enableDependencyTracking": False},
}


def exported(start_host: StartHost, app: Path, settings: dict[str, str] | None = None) -> Ingestion:
    """Return the exported items of one call of a queue function, and of some polls."""
    with ingestion() as taken:
        host = start_host(
            {"APPLICATIONINSIGHTS_CONNECTION_STRING": taken.connection_string, **(settings or {})}, app=str(app)
        )
        host.send(json.dumps({"say": "hello"}))
        wait_for(lambda: "work" in taken.names("RequestData", "name"), 60, "the request of the function")
        host.part.stop()  # which sends the rest
    return taken


@ours_alone
def test_the_default_exports_invocations_records_and_each_poll(
    start_host: StartHost, sample_copy: Callable[[dict[str, Any]], Path]
) -> None:
    """The default exports a request, the invocation's two traces, the app's own record, and a dependency for each
    poll."""
    taken = exported(start_host, sample_copy({"extensions": POLLING}))
    told = taken.names("MessageData", "message")
    assert taken.names("RequestData", "name") == ["work"]
    assert [text.split(" (")[0] for text in told if "'Functions.work'" in text] == [
        "Executing 'Functions.work'",
        "Executed 'Functions.work'",
    ]
    assert any("hello" in text for text in told)
    assert len(taken.names("RemoteDependencyData", "name")) > 5


@ours_alone
def test_levels_and_tracking_keep_all_but_the_requests_out(
    start_host: StartHost, sample_copy: Callable[[dict[str, Any]], Path]
) -> None:
    """With `default` set to Warning and without dependency tracking, a call exports one item."""
    taken = exported(start_host, sample_copy({"extensions": POLLING, "logging": QUIET}))
    assert taken.counts().keys() == {"spans", "bytes"}
    assert taken.counts()["spans"] == 1


@ours_alone
@pytest.mark.parametrize(("disabled", "spans"), [("true", 1), ("", 2)])
def test_open_telemetry_exports_a_span_or_two_of_each_poll(disabled: str, spans: int) -> None:
    """With the SDK's own spans switched off, the HTTP span remains. `logLevel` has no effect."""
    rules = Logging.read({"telemetryMode": "OpenTelemetry", "logging": QUIET})
    exporter = Exporter(
        rules, {"APPLICATIONINSIGHTS_CONNECTION_STRING": "InstrumentationKey=k", "AZURE_TRACING_DISABLED": disabled}
    )
    exporter.storage_request("GET q/messages")
    assert len(exporter._waiting) == spans


@pytest.mark.parametrize(
    ("category", "level", "passes"),
    [
        ("Host.Results", INFORMATION, True),
        ("Host.Startup", INFORMATION, False),
        ("Host.Startup", WARNING, True),
        ("Function.work", WARNING, False),
        ("Function.work.User", ERROR, True),
        ("Function.tick", WARNING, True),
        ("Functions", INFORMATION, False),
    ],
)
def test_the_longest_prefix_of_a_category_decides(category: str, level: int, passes: bool) -> None:
    """Prefixes are whole parts of a category, in any case."""
    levels = {"default": "Warning", "host.results": "Information", "Function": "Error", "Function.tick": "Warning"}
    assert Logging.read({"logging": {"logLevel": levels}}).lets_pass(category, level) == passes


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=r"logLevel\.default='Loud' is none of Trace, Debug"):
        Logging.read({"logging": {"logLevel": {"default": "Loud"}}})
