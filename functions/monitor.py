"""Set up Azure Monitor when there is telemetry to send, not while the worker starts.

Importing and configuring Azure Monitor takes more processor time than the whole app: 0.5 s of a cold start with the
pinned requirements (`bench package`). The worker can configure it before it loads the app, but then every caller waits.
With PYTHON_ENABLE_OPENTELEMETRY alone, Microsoft's runtime passes traces on and leaves the configuration to the app. So
a message handler configures it with its first span, and for HTTP it is configured in the background after the first
answer. Records logged before that are held, and sent afterwards.

A worker before 4.35 treats the same setting as an order to configure Azure Monitor itself; it is then ready already.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque

SETTING = "PYTHON_ENABLE_OPENTELEMETRY"
HELD_RECORDS = 1000
LATER_SECONDS = 1.0  # by then the answer has been sent

log = logging.getLogger(__name__)
_lock = threading.Lock()


class Held(logging.Handler):
    """Holds the newest records until they can be sent."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: deque[logging.LogRecord] = deque(maxlen=HELD_RECORDS)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def pass_on(self) -> None:
        """Pass the held records to the handlers that exist now, and stop holding records."""
        root = logging.getLogger()
        root.removeHandler(self)
        others = [handler for handler in root.handlers if type(handler).__module__.startswith("opentelemetry.")]
        for record in self.records:
            for handler in others:
                handler.handle(record)
        self.records.clear()


_held = Held()
_done = threading.Event()
_asked = threading.Event()


def wanted() -> bool:
    """Return whether telemetry goes to Azure Monitor."""
    return os.environ.get(SETTING, "").lower() == "true"


def prepare() -> None:
    """Hold all records from now on. Called once, when the app is loaded."""
    if wanted():
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
    from opentelemetry import trace

    if type(trace.get_tracer_provider()).__module__.startswith("opentelemetry.sdk."):
        return  # an older worker has already configured it
    # The same resource as in Microsoft's runtime, so that roles and instances have their usual names.
    os.environ.setdefault("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "azure_functions")
    from azure.monitor.opentelemetry import configure_azure_monitor

    configure_azure_monitor()
