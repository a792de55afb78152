"""Log records and spans belong to the invocation that wrote them, in whatever thread.

Azure's host drops a record whose invocation it doesn't know, without a word. Its worker knows only the threads that it
started itself: for others it has `context.thread_local_storage`, and on Python 3.13 a variable of its runtime. So each
handler keeps its context in a variable that goes along into our threads, and whoever makes a log record in one of them
tells the worker first whose it is.
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
RUNTIME = "azure_functions_runtime"  # what runs apps on Python 3.13; there already if it is the one
# Two records for each request to Azure, of every SDK: more than all of ours, many times.
TOO_TALKATIVE = ("azure", "msal")

_invocation: ContextVar[func.Context | None] = ContextVar("invocation", default=None)


def attributed(handler: H) -> H:
    """Let a handler's records be known as its own in threads of ours, too."""

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
    """The wrapper, as a function that the worker gives its context to, besides what the handler takes."""
    own = inspect.signature(handler)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=func.Context)
    wrapper.__signature__ = own.replace(parameters=[*own.parameters.values(), context])
    wrapper.__annotations__ = {**handler.__annotations__, "context": func.Context}
    return wrapper


def prepare_logging() -> None:
    """Once, when the app is loaded. The worker shows everything from INFO on; what is worth that is ours to say."""
    make = logging.getLogRecordFactory()

    def attributed_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        if context := _invocation.get():
            _tell_worker(context)
        return make(*args, **kwargs)

    logging.setLogRecordFactory(attributed_record)
    for name in TOO_TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def _tell_worker(context: func.Context) -> None:
    storage: Any = context.thread_local_storage
    storage.invocation_id = context.invocation_id
    if runtime := sys.modules.get(RUNTIME):
        runtime.invocation_id_cv.set(context.invocation_id)
