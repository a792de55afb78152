"""Matches a function's Python parameters with its bindings, by the rules of Microsoft's Python worker."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import azure.functions as func
from azure.functions.decorators.core import Binding, BindingDirection
from azure.functions.decorators.function_app import Function
from azure.functions.meta import Datum

UserFunction = Callable[..., Any]


class GenericConverter:
    """Passes text and bytes through, for `str` and `bytes` parameters and for bindings without a converter."""

    @staticmethod
    def has_trigger_support() -> bool:
        return False

    @staticmethod
    def check_input_type_annotation(pytype: type) -> bool:
        return issubclass(pytype, str | bytes)

    @staticmethod
    def check_output_type_annotation(pytype: type) -> bool:
        return issubclass(pytype, str | bytes | bytearray)

    @staticmethod
    def decode(data: Datum, *, trigger_metadata: object) -> Any:  # noqa: ARG004 - the converters' common signature
        if data.type not in ("string", "bytes", "json"):
            # Two arguments, as in the worker, so that the error's text is the same in both backends.
            raise ValueError('unexpected type of data received for the "generic" binding ', repr(data.type))
        return data.value

    @staticmethod
    def encode(obj: Any, *, expected_type: object) -> Datum:  # noqa: ARG004
        if isinstance(obj, bytes | bytearray):
            return Datum(bytes(obj), "bytes")
        for python_type, kind in ((str, "string"), (dict, "dict"), (list, "list"), (int, "int"), (float, "double")):
            if isinstance(obj, python_type):
                return Datum(obj, kind)
        raise NotImplementedError


@dataclass(frozen=True)
class Parameter:
    """A bound parameter: the binding type of its converter, the converter, and the annotated type."""

    binding: str
    converter: Any
    annotation: Any


@dataclass(frozen=True)
class Signature:
    """The signature of a loaded function. `returns` is None for a function that must return None."""

    call: UserFunction
    inputs: dict[str, Parameter]
    outputs: dict[str, Parameter]
    returns: Parameter | None
    wants_context: bool

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.call)


def read(function: Function) -> Signature:
    """Match parameters and bindings. Raises ValueError with those that do not match."""
    call = function.get_user_function()
    hints = typing.get_type_hints(call)
    bindings = {binding.name: binding for binding in function.get_bindings()}
    returned = bindings.pop("$return", None)
    parameters = set(inspect.signature(call).parameters)
    wants_context = "context" in parameters - set(bindings)
    parameters -= {"context"} if wants_context else set()
    if parameters != set(bindings):
        raise ValueError(
            f"parameters without a binding: {sorted(parameters - set(bindings))}; "
            f"bindings without a parameter: {sorted(set(bindings) - parameters)}"
        )
    outgoing = {name: binding for name, binding in bindings.items() if _is_out(binding)}
    return Signature(
        call,
        inputs={name: _input(binding, hints) for name, binding in bindings.items() if name not in outgoing},
        outputs={name: _output(binding, hints) for name, binding in outgoing.items()},
        returns=_returned(returned, hints) if returned else None,
        wants_context=wants_context,
    )


def _is_out(binding: Binding) -> bool:
    return binding.direction == BindingDirection.OUT.value


def _input(binding: Binding, hints: dict[str, Any]) -> Parameter:
    parameter = _parameter(binding, hints.get(binding.name))
    if binding.name in hints and not _fits(parameter.annotation, parameter.converter.check_input_type_annotation):
        raise ValueError(f"the annotation {parameter.annotation!r} of {binding.name} does not fit {binding.type}")
    return parameter


def _output(binding: Binding, hints: dict[str, Any]) -> Parameter:
    annotation = hints.get(binding.name)
    if binding.name in hints and typing.get_origin(annotation) is not func.Out:
        raise ValueError(f"the annotation {annotation!r} of {binding.name} must be func.Out[...]: it is an output")
    inner = next(iter(typing.get_args(annotation)), None)
    parameter = _parameter(binding, inner)
    if inner is not None and not _fits(inner, parameter.converter.check_output_type_annotation):
        raise ValueError(f"the annotation {annotation!r} of {binding.name} does not fit {binding.type}")
    return parameter


def _returned(binding: Binding, hints: dict[str, Any]) -> Parameter:
    kind = str(binding.type)
    parameter = Parameter(kind, _converter(kind), hints.get("return"))
    if "return" in hints and not _fits(parameter.annotation, parameter.converter.check_output_type_annotation):
        raise ValueError(f"the return annotation {parameter.annotation!r} does not fit {binding.type}")
    return parameter


def _parameter(binding: Binding, annotation: Any) -> Parameter:
    kind = "generic" if annotation in (str, bytes) else str(binding.type)
    return Parameter(kind, _converter(kind), annotation)


def _fits(annotation: Any, check: Callable[[Any], bool]) -> bool:
    try:
        return check(annotation)
    except TypeError:  # issubclass() of a value that is not a class, for instance `None` or `str | bytes`
        return False


def _converter(kind: str) -> Any:
    return func.get_binding_registry().get(kind) or GenericConverter
