"""Remember the service's failures behind azure-ai-ml's own errors.

MLClient checks a pipeline's computes by requests, and catches every exception of these checks: it keeps the text and
raises a ValidationException without the exception behind it (azure-ai-ml 1.35, `JobOperations._validate`). So a
time-out looks like a wrong job. A policy below the SDK sees each answer, and whether there was one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy

from shared.adapters.translation import is_temporary

_seen: ContextVar[list[AzureError] | None] = ContextVar("failures of the service", default=None)


@contextmanager
def temporary_failures() -> Iterator[list[AzureError]]:
    """Yield the list of the temporary failures of this thread's requests in the block."""
    failures: list[AzureError] = []
    token = _seen.set(failures)
    try:
        yield failures
    finally:
        _seen.reset(token)


class SeesFailures(HTTPPolicy[Any, Any]):
    """Adds the last word on each request, after all retries, to the list of `temporary_failures`."""

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        try:
            answer = self.next.send(request)
        except AzureError as exc:
            _note(exc)
            raise
        if answer.http_response.status_code >= 400:
            _note(HttpResponseError(response=answer.http_response))
        return answer


def _note(exc: AzureError) -> None:
    if (failures := _seen.get()) is not None and is_temporary(exc):
        failures.append(exc)
