"""Export the app's own spans, metrics and log records to Application Insights (decision 79).

Importing and configuring Azure Monitor takes more processor time than the whole app: 0.5 s of a cold start with the
pinned requirements (`bench package`). So a message handler configures it with its first span, and for HTTP it is
configured in the background after the first answer. Records logged before that are held, and exported afterwards.

Each record is exported once: the host exports no records of the app (`logLevel` in host.json), and the worker exports
nothing, because PYTHON_ENABLE_OPENTELEMETRY is not set.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque

SETTING = "APPLICATIONINSIGHTS_CONNECTION_STRING"
HELD_RECORDS = 1000
LATER_SECONDS = 1.0  # by then the answer has been sent
OUR_LOGGERS = ("shared", "functions")
# Spans of every request to Azure: an idle hour would have some hundreds. A message's own span has its duration.
INSTRUMENTED = (
    "azure_sdk",
    "django",
    "fastapi",
    "flask",
    "httpx",
    "httpx2",
    "psycopg2",
    "requests",
    "urllib",
    "urllib3",
)

log = logging.getLogger(__name__)
_lock = threading.Lock()


def is_exported(record: logging.LogRecord) -> bool:
    """Return whether to export the record: the app's own records, and all warnings.

    The worker logs two records for each function at its start, and one for each call.
    """
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OUR_LOGGERS


class Held(logging.Handler):
    """Holds the newest records until the export."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: deque[logging.LogRecord] = deque(maxlen=HELD_RECORDS)
        self.addFilter(is_exported)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def pass_on(self) -> None:
        """Pass the held records to the exporting handlers, and stop holding records."""
        logging.getLogger().removeHandler(self)
        exporting = _exporting_handlers()
        for record in self.records:
            for handler in exporting:
                handler.handle(record)
        self.records.clear()


_held = Held()
_done = threading.Event()
_asked = threading.Event()


def wanted() -> bool:
    """Return whether telemetry goes to Application Insights."""
    return bool(os.environ.get(SETTING, "").strip())


def prepare() -> None:
    """Hold all records from now on. Called once, when the app is loaded.

    If the worker set up the export itself before it loaded the app, it has exported all records so far, and none is
    held.
    """
    if not wanted():
        return
    if exporting := _exporting_handlers():
        _limit(exporting)
        _done.set()
    else:
        logging.getLogger().addHandler(_held)


def start() -> None:
    """Configure Azure Monitor, unless that is done. A failure here never fails a handler."""
    with _lock:
        if _done.is_set():
            return
        try:
            _configure()
        except Exception as exc:  # noqa: BLE001
            log.warning("Nothing is sent to Azure Monitor: %s: %s", type(exc).__name__, exc)
        _held.pass_on()
        _done.set()


def start_soon() -> None:
    """Configure Azure Monitor in the background, shortly after the first answer."""
    if wanted() and not _asked.is_set():
        _asked.set()
        later = threading.Timer(LATER_SECONDS, start)
        later.daemon = True
        later.start()


def _configure() -> None:
    # The same resource as in Microsoft's runtime, so that roles and instances have their usual names.
    os.environ.setdefault("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "azure_functions")
    # The default limits the rate of spans, and drops most spans of the first tenth of a second: the message of a start.
    os.environ.setdefault("OTEL_TRACES_SAMPLER", "always_on")
    # otherwise one record per batch of spans
    os.environ.setdefault("APPLICATIONINSIGHTS_OPENTELEMETRY_RESOURCE_METRIC_DISABLED", "true")
    from azure.monitor.opentelemetry import configure_azure_monitor

    configure_azure_monitor(
        enable_live_metrics=False,
        enable_performance_counters=False,
        instrumentation_options={library: {"enabled": False} for library in INSTRUMENTED},
    )
    _limit(_exporting_handlers())


def _exporting_handlers() -> list[logging.Handler]:
    return [one for one in logging.getLogger().handlers if type(one).__module__.startswith("opentelemetry.")]


def _limit(handlers: list[logging.Handler]) -> None:
    for handler in handlers:
        handler.addFilter(is_exported)
