"""Plain classes in the shape of the FunctionRpc protobuf messages.

azure-functions-runtime imports no protobuf. Its host passes the message classes, and the runtime only creates messages,
reads their attributes and calls `WhichOneof`. So these classes stand in for grpc and its generated code. They have the
fields that azure-functions-runtime 1.3 uses. A field that is not set reads as None.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar


class Message:
    """A message with the listed fields of its class."""

    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **values: Any) -> None:
        if unknown := sorted(set(values) - set(self.fields)):
            raise TypeError(f"{type(self).__name__} has no fields {unknown}")
        for name in self.fields:
            setattr(self, name, values.get(name))

    def WhichOneof(self, _group: str) -> str | None:
        """Return the first field that is set. The runtime calls this only on TypedData, which is one group, and on
        ParameterBinding."""
        return next((name for name in self.fields if getattr(self, name) is not None), None)


def _message(name: str, fields: str, **constants: Any) -> type[Message]:
    return type(name, (Message,), {"fields": tuple(fields.split()), **constants})


class ParameterBinding(Message):
    fields = ("name", "data")

    def WhichOneof(self, _group: str) -> str | None:
        return "data"  # the other member of the group, shared memory, is never used here


TypedData = _message(
    "TypedData",
    "string json bytes stream http int double collection_bytes collection_string collection_double "
    "collection_sint64 model_binding_data collection_model_binding_data",
)
RpcHttp = _message("RpcHttp", "method url headers body params query status_code enable_content_negotiation cookies")

# `None` is a keyword in Python, so the enum of cookies cannot be an ordinary class body.
SAME_SITE = SimpleNamespace(**{"None": 0, "Lax": 1, "Strict": 2, "ExplicitNone": 3})

PROTOS = SimpleNamespace(
    TypedData=TypedData,
    ParameterBinding=ParameterBinding,
    RpcHttp=RpcHttp,
    RpcHttpCookie=_message(
        "RpcHttpCookie", "name value domain path expires secure http_only same_site max_age", SameSite=SAME_SITE
    ),
    NullableString=_message("NullableString", "value"),
    NullableBool=_message("NullableBool", "value"),
    NullableDouble=_message("NullableDouble", "value"),
    NullableTimestamp=_message("NullableTimestamp", "value"),
    Timestamp=_message("Timestamp", "seconds nanos"),
    BindingInfo=_message("BindingInfo", "type data_type direction", **{"in": 0, "out": 1, "inout": 2, "undefined": 0}),
    RpcFunctionMetadata=_message(
        "RpcFunctionMetadata",
        "name function_id managed_dependency_enabled directory script_file entry_point is_proxy language bindings "
        "raw_bindings retry_options properties",
    ),
    RpcRetryOptions=_message(
        "RpcRetryOptions", "max_retry_count retry_strategy delay_interval minimum_interval maximum_interval"
    ),
    StatusResult=_message("StatusResult", "status result exception logs", Failure=0, Success=1, Cancelled=2),
    RpcException=_message("RpcException", "message stack_trace source is_user_exception type"),
    WorkerMetadata=_message(
        "WorkerMetadata", "runtime_name runtime_version worker_version worker_bitness custom_properties"
    ),
    WorkerInitResponse=_message("WorkerInitResponse", "capabilities worker_metadata result"),
    FunctionMetadataResponse=_message(
        "FunctionMetadataResponse", "use_default_metadata_indexing function_metadata_results result"
    ),
    FunctionLoadResponse=_message("FunctionLoadResponse", "function_id result"),
    InvocationResponse=_message("InvocationResponse", "invocation_id return_value result output_data"),
)
