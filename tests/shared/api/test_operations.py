"""The declarations of operations compared with the functions that answer them, and with the app."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from functions.api import GIVEN
from shared.api.openapi import HEADERS
from shared.api.registry import OPERATIONS
from shared.api.signature import signature
from shared.kernel.operation import ANYONE, ROLES, Operation
from tests.functions.test_access import ENDPOINTS, GRANTED

READ = {"query", "body", "key", "call"}  # what the trigger reads by the parameter's type, or makes of the request
EVERY = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)


def test_every_operation_is_one_function_of_the_app() -> None:
    """The app has a function for each declared operation, and no other route except the page's files."""
    declared = {(each.method, each.path) for each in OPERATIONS}
    assert declared == {each for each in ENDPOINTS if each[1] not in ("page/{*path}", GRANTED)}
    assert len(declared) == len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@EVERY
def test_every_parameter_can_be_given(operation: Operation) -> None:
    """The function exists; it takes each part of its path, and otherwise only parameters that the trigger passes."""
    declared = signature(operation)
    assert set(declared.path) <= set(declared.takes)
    assert set(declared.takes) - set(declared.path) <= set(GIVEN) | READ
    assert set(inspect.signature(declared.function).parameters) == set(declared.takes)
    assert set(HEADERS) <= set(GIVEN) | READ


@EVERY
def test_every_question_and_answer_has_a_type(operation: Operation) -> None:
    """Query and body are models, a GET has no body, and each success status has an answer type."""
    declared = signature(operation)
    for model in (declared.query, declared.body):
        assert model is None or issubclass(model, msgspec.Struct)
    assert declared.body is None or operation.method == "POST"
    assert declared.answers
    assert all(200 <= status < 400 or status == 503 for status in declared.answers)


@EVERY
def test_what_needs_a_further_role_is_declared(operation: Operation) -> None:
    """Exactly the operations that require the role coder for some requests declare for which requests."""
    assert ("admit_code" in signature(operation).takes) == bool(operation.code)
    assert operation.role in (*ROLES, ANYONE)


@EVERY
def test_a_key_is_honoured_or_refused(operation: Operation) -> None:
    """No operation both accepts and refuses an Idempotency-Key; only an operation that changes something refuses."""
    assert not ("key" in signature(operation).takes and operation.no_key)
    assert operation.method == "POST" or not operation.no_key


def test_a_function_without_an_answer_is_refused() -> None:
    """A missing return type raises an error that says which type is expected."""
    with pytest.raises(TypeError, match=r"get_unknown must return Annotated\[Json"):
        signature(Operation("get_unknown", "GET", "x", "tests.shared.api.test_operations", "x"))


def get_unknown() -> dict[str, Any]:
    return {}
