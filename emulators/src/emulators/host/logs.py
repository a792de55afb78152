"""Logging to standard error, one line for each record, with the id of the writing invocation."""

from __future__ import annotations

import contextvars
import logging
import re
import sys
from collections.abc import Callable

# Set for each invocation on the app's loop; `-` is the host itself.
invocation_id: contextvars.ContextVar[str] = contextvars.ContextVar("invocation_id", default="-")
QUIET = ("azure", "aiohttp.access")  # loggers of the host's own requests


# Line ends and terminal escapes, which external names in a record may contain.
UNSHOWN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class _OneLine(logging.Formatter):
    def __init__(self, in_thread: Callable[[], str | None]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(invocation)s] %(message)s")
        self._in_thread = in_thread

    def format(self, record: logging.LogRecord) -> str:
        known = invocation_id.get()
        record.invocation = (self._in_thread() or known) if known == "-" else known
        return UNSHOWN.sub(lambda match: repr(match[0])[1:-1], super().format(record))


def configure(in_thread: Callable[[], str | None] = lambda: None) -> None:
    """Send the root logger's records from INFO on to standard error, as in Azure.

    `in_thread` knows the invocation where the context does not.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(in_thread))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
