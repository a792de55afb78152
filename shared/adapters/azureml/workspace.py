"""The process's single connection to the Azure ML workspace, made when it is first needed.

Importing azure.ai.ml takes two seconds and 136 MiB, so only functions that submit and follow jobs import it. The SDK
also expects one client per process, because it keeps the cloud's URLs in global variables.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import AzureError

from shared.adapters.azureml.circuit import Circuit
from shared.adapters.translation import error_of, reason_of, without_secrets
from shared.kernel.errors import BadInput, TrainyardError
from shared.kernel.settings import Workspace

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

    from shared.adapters.azureml.arm import Arm

_connections: dict[str, Connection] = {}
_lock = threading.Lock()
_PATIENCE: dict[str, Any] = {
    "polling_interval": 0.5,
    "retry_total": 3,
    "retry_read": 0,
    "retry_backoff_factor": 0.5,
    "connection_timeout": 5,
    "read_timeout": 30,  # seconds
}


class Connection:
    """The clients of one workspace. Safe to share between threads."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.RLock()
        self.circuit = Circuit("Azure ML")
        self.vm_sizes: dict[str, str] = {}  # VM size by cluster, from the last listing

    @property
    def ml(self) -> Any:
        """Return the MLClient. The annotation is Any, because naming the type would import the SDK."""
        with self._lock:
            return self._ml

    @property
    def arm(self) -> Arm:
        with self._lock:
            return self._arm

    @cached_property
    def _ml(self) -> Any:
        from shared.adapters.azureml.hidden_failures import SeesFailures

        place = self.workspace
        kwargs = {**_PATIENCE, **place.client_kwargs, "per_call_policies": [SeesFailures()]}
        return sdk().MLClient(self._credential, place.subscription_id, place.resource_group, place.name, **kwargs)

    @cached_property
    def _arm(self) -> Arm:
        from shared.adapters.azureml.arm import Arm

        return Arm(self.workspace, self._credential, self.circuit)

    @cached_property
    def _credential(self) -> TokenCredential:
        from azure.identity import DefaultAzureCredential

        return DefaultAzureCredential()


def sdk() -> Any:
    """Return the package azure.ai.ml, imported on the first call."""
    import azure.ai.ml

    # The package logs to stderr on import, and warns about "experimental" classes with the first job.
    logging.getLogger("azure.ai.ml").setLevel(logging.ERROR)
    return azure.ai.ml


def connect(workspace: Workspace) -> Connection:
    """Return the process's connection to this workspace. Imports nothing and sends no request yet."""
    key = json.dumps(asdict(workspace), sort_keys=True)
    with _lock:
        return _connections.setdefault(key, Connection(workspace))


@contextmanager
def sdk_errors(what: str) -> Iterator[None]:
    """Translate MLClient's errors to Trainyard's. An error that MLClient finds without the service becomes BadInput.

    If a request of the block failed temporarily, any error of MLClient becomes Unavailable: MLClient may hide the
    failure behind an error of its own.
    """
    from shared.adapters.azureml.hidden_failures import temporary_failures

    with temporary_failures() as failures:
        try:
            yield
        except TrainyardError:
            raise
        except Exception as exc:
            if not failures and not isinstance(exc, _any_error()):
                raise
            raise _translated(what, exc, failures) from exc


def _translated(what: str, exc: Exception, failures: list[AzureError]) -> TrainyardError:
    chain, own = list(causes(exc)), own_errors()
    service = next((e for e in chain if isinstance(e, AzureError) and not isinstance(e, own)), None)
    if cause := service or next(reversed(failures), None):
        return error_of(cause)(f"{what}: {reason_of(cause)}")
    # The SDK wraps its plain sentence in colored advice; the first error has the plain sentence.
    return BadInput(f"{what}: {without_secrets(str(chain[-1]).strip())}")


def own_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the SDK raises without asking the service. MlException is an AzureError, too."""
    from azure.ai.ml.exceptions import MlException
    from marshmallow import ValidationError

    return MlException, ValidationError


def _any_error() -> tuple[type[Exception], ...]:
    return AzureError, *own_errors()


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception, then its cause or context, and the causes of the cause."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__
