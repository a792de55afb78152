"""Attribute log records and spans to the writing invocation, in any thread.

Azure's host silently drops a record whose invocation it does not know. The worker knows only the threads that it
started itself: other threads need `context.thread_local_storage`, or on Python 3.13 a variable of its runtime. So each
handler keeps its context in a variable that is copied into our threads. When one of these threads makes a log record,
it first sets the worker's variable.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import azure.functions as func

H = TypeVar("H", bound=Callable[..., Any])
RUNTIME = "azure_functions_runtime"  # the runtime on Python 3.13; already imported if it runs this app
# Every SDK logs two records per request to Azure, many times more than the app's own records.
TOO_TALKATIVE = ("azure", "msal")

_invocation: ContextVar[func.Context | None] = ContextVar("invocation", default=None)


def attributed(handler: H) -> H:
    """Attribute a handler's records to its invocation in our own threads, too."""

    @functools.wraps(handler)
    def wrapper(*args: Any, context: func.Context | None = None, **kwargs: Any) -> Any:
        with invocation(context):
            return handler(*args, **kwargs)

    return cast("H", with_context(wrapper, handler))


@contextmanager
def invocation(context: func.Context | None) -> Iterator[None]:
    token = _invocation.set(context)
    try:
        yield
    finally:
        _invocation.reset(token)


def with_context(wrapper: Any, handler: Callable[..., Any]) -> Any:
    """Return the wrapper with a signature for the worker: the handler's parameters, and the context."""
    own = inspect.signature(handler)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=func.Context)
    wrapper.__signature__ = own.replace(parameters=[*own.parameters.values(), context])
    wrapper.__annotations__ = {**handler.__annotations__, "context": func.Context}
    return wrapper


def prepare_logging() -> None:
    """Set up logging once, when the app is loaded. The worker shows all records from INFO on, so the app sets the
    levels.
    """
    make = logging.getLogRecordFactory()

    def attributed_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        if context := _invocation.get():
            _set_invocation(context)
        return make(*args, **kwargs)

    logging.setLogRecordFactory(attributed_record)
    for name in TOO_TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def _set_invocation(context: func.Context) -> None:
    storage: Any = context.thread_local_storage
    storage.invocation_id = context.invocation_id
    if runtime := sys.modules.get(RUNTIME):
        runtime.invocation_id_cv.set(context.invocation_id)
