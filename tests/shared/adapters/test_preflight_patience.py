"""Messages for an Azure ML or a local workspace that does not answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseTimeoutError
from azure.identity import DefaultAzureCredential

from shared.adapters.azureml.arm import Arm
from shared.adapters.azureml.circuit import Circuit
from shared.kernel.errors import NoAnswer
from shared.kernel.settings import Workspace


@pytest.mark.parametrize(
    ("error", "asked", "said"),
    [
        (ServiceResponseTimeoutError("read timed out"), "preflight", "The local workspace did not say within 15 s"),
        (ServiceRequestError("connection refused"), "preflight", "Azure ML did not answer POST http://local/preflight"),
        (ServiceResponseTimeoutError("read timed out"), "get", "Azure ML did not answer GET the workspace: read timed"),
    ],
)
def test_no_answer_is_no_refusal(error: AzureError, asked: str, said: str) -> None:
    """A time-out of the local workspace's check is reported as "nothing was submitted", never as a refusal."""

    class Silent:
        def send_request(self, *_: Any, **__: Any) -> Any:
            raise error

    arm = Arm(Workspace("sub", "group", "name"), DefaultAzureCredential(), Circuit("test"))
    arm._client = arm._data_client = Silent()  # type: ignore[assignment]
    arm._discovered = {"preflight": "http://local"}
    call: Callable[[], Any] = {"preflight": lambda: arm.preflight({}), "get": arm.get}[asked]
    with pytest.raises(NoAnswer) as caught:
        call()
    assert str(caught.value).startswith(said)
