"""The records that Microsoft's worker (4.34) logs and exports about itself, while the app's telemetry goes to
Application Insights.

Without a connection string there are no such records, so a local log has only the app's lines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping

from emulators.host import logs
from emulators.host.exporting import CONNECTION_STRING
from emulators.host.worker.backend import Invocation

log = logging.getLogger("azure_functions_worker")
LEVELS = {logging.DEBUG: 1, logging.INFO: 2, logging.WARNING: 3, logging.ERROR: 4, logging.CRITICAL: 5}

Record = tuple[str, int, str]  # the function's name, the level as .NET numbers it, and the text


def is_on() -> bool:
    return bool(os.environ.get(CONNECTION_STRING))


class ForHost(logging.Handler):
    """Sends each record of a running invocation to the host. Any other record is silently dropped."""

    def __init__(self, running: Mapping[str, str], send: Callable[[Record], None]) -> None:
        super().__init__(logging.INFO)
        self._running, self._send = running, send

    def emit(self, record: logging.LogRecord) -> None:
        if function := self._running.get(logs.invocation_id.get()):
            self._send((function, LEVELS.get(record.levelno, 2), record.getMessage()))


def before_load() -> None:
    """Set up Azure Monitor as Microsoft's worker does if PYTHON_ENABLE_OPENTELEMETRY is true."""
    if is_on() and os.environ.get("PYTHON_ENABLE_OPENTELEMETRY", "").lower() == "true":
        from azure.monitor.opentelemetry import configure_azure_monitor  # the app's requirement; none of the emulators'

        configure_azure_monitor()


def loaded(functions: Iterable[str]) -> None:
    """Log the two records of each function."""
    for name in functions if is_on() else ():
        log.info("Received WorkerLoadRequest, request ID %s, function_id: %s,function_name: %s, "
                 "programming_model: V2", "0" * 36, "0" * 36, name)  # fmt: skip
        log.info("Successfully processed FunctionLoadRequest, request ID: %s, function ID: %s,function Name: %s,"
                 "programming model: V2", "0" * 36, "0" * 36, name)  # fmt: skip


def called(call: Invocation) -> None:
    """Log the record of a call."""
    if is_on():
        log.info("Received FunctionInvocationRequest, request ID: %s, function ID: %s, function name: %s, "
                 "invocation ID: %s, function type: async", "0" * 36, "0" * 36, call.function, call.id)  # fmt: skip
