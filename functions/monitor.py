"""Azure Monitor, set up when there is something to send, and not while the worker starts.

Its import and its set-up take more processor time than all of the app's: 0.5 s of a cold start with the pinned
requirements (`bench package`). The worker can do it before it loads the app; then each caller waits for it. Asked for
PYTHON_ENABLE_OPENTELEMETRY alone, Microsoft's runtime passes traces on and leaves the rest to us. So a message's
handler sets it up with its first span, and after a call's answer it is set up beside. What is logged until then is
held, and sent.

A worker before 4.35 takes the same setting for its order to set it up itself: then it is there already.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque

SETTING = "PYTHON_ENABLE_OPENTELEMETRY"
HELD_RECORDS = 1000
LATER_SECONDS = 1.0  # the answer is on its way by then

log = logging.getLogger(__name__)
_lock = threading.Lock()


class Held(logging.Handler):
    """The newest records, until they can be sent."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: deque[logging.LogRecord] = deque(maxlen=HELD_RECORDS)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def pass_on(self) -> None:
        """Give what was held to the handlers that are there now, and hold no more."""
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
    """Whether Azure Monitor is where telemetry goes."""
    return os.environ.get(SETTING, "").lower() == "true"


def prepare() -> None:
    """Once, when the app is loaded: hold what is logged from now on."""
    if wanted():
        logging.getLogger().addHandler(_held)


def start() -> None:
    """Set it up, unless that is done. Whatever goes wrong, no handler fails by it."""
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
    """Set it up beside, a moment after the first answer."""
    if wanted() and not _asked.is_set():
        _asked.set()
        later = threading.Timer(LATER_SECONDS, start)
        later.daemon = True
        later.start()


def _configure() -> None:
    from opentelemetry import trace

    if type(trace.get_tracer_provider()).__module__.startswith("opentelemetry.sdk."):
        return  # an older worker has done it
    # The same resource that Microsoft's runtime gives, so that roles and instances have their names.
    os.environ.setdefault("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "azure_functions")
    from azure.monitor.opentelemetry import configure_azure_monitor

    configure_azure_monitor()
