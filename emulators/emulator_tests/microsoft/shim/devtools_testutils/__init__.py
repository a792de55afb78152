"""A stand-in for the unpublished tools of Microsoft's repository that Microsoft's tests use. Here each test runs live.

Nothing is recorded, so nothing needs to be hidden: sanitizers and matchers do nothing.
"""

from __future__ import annotations

import functools
import inspect
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., Any]
ACCOUNT_NAME, ACCOUNT_KEY = "EMULATED_ACCOUNT_NAME", "EMULATED_ACCOUNT_KEY"
OTHERS = ("versioned_", "soft_delete_")  # prefixes of the names of accounts with a feature


def is_live() -> bool:
    return True


class Secret(str):
    """A secret of the environment. Tests of blobs and queues read its `secret`, and tests of tables use it as a
    string."""

    @property
    def secret(self) -> str:
        return str(self)


def preparer(_name: str, **given: Any) -> Callable[[Test], Test]:
    """Pass the account and the key to a test, under the test's own parameter names."""
    given.pop("options", None)
    values = {
        name: Secret(os.environ[_variable(name)]) for name in given if name.endswith(("_account_key", "_account_name"))
    }

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def prepared(*arguments: Any, **more: Any) -> Any:
            return test(*arguments, **_taken(test, {**given, **values, **more}))

        return _without_parameters(prepared, given)

    return decorated


def _variable(name: str) -> str:
    """Return the variable for a test's parameter. All accounts have the same key."""
    if name.endswith("_key"):
        return ACCOUNT_KEY
    other = next((other for other in OTHERS if name.startswith(other)), "")
    return f"EMULATED_{other.upper()}ACCOUNT_NAME"


PowerShellPreparer = EnvironmentVariableLoader = preparer


def EnvironmentVariableOptions(**_: Any) -> None:
    """Accept the options for hiding secrets in a recording, and ignore them."""


def recorded_by_proxy(test: Test) -> Test:
    @functools.wraps(test)
    def recorded(*arguments: Any, **more: Any) -> None:
        test(*arguments, **_taken(test, {"variables": {}, **more}))  # the result is for a recording

    return recorded


def _taken(test: Test, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values for which the test has a parameter."""
    parameters = inspect.signature(test, follow_wrapped=True).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return values
    return {name: value for name, value in values.items() if name in parameters}


def _without_parameters(test: Test, given: Iterable[str]) -> Test:
    """Hide these parameters from pytest, which would look for fixtures with their names."""
    own = [
        one
        for one in inspect.signature(test).parameters.values()
        if one.name not in {*given, "variables"} and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    test.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return test


class AzureRecordedTestCase:
    is_live = True
    is_playback = False
    in_recording = False

    def setup_method(self) -> None:
        if prepare := getattr(self, "setUp", None):
            prepare()

    @property
    def _test(self) -> str:
        return os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]

    def get_resource_name(self, prefix: str) -> str:
        """Return a name that is unique for the test and the prefix."""
        import hashlib

        return f"{prefix}{hashlib.sha1(self._test.encode(), usedforsecurity=False).hexdigest()[:8]}"

    create_random_name = get_resource_name

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def get_settings_value(self, key: str) -> str:
        pytest.skip(f"needs Azure's Resource Manager ({key})")

    def get_credential(self, _client: Any = None, **how: Any) -> Identity | AsyncIdentity:
        return get_credential(**how)

    def get_datetime_variable(self, variables: dict[str, str], name: str, value: Any) -> Any:
        variables.setdefault(name, value.isoformat())
        return value

    def set_datetime_variable(self, variables: dict[str, str], name: str, value: Any) -> Any:
        return self.get_datetime_variable(variables, name, value)

    def generate_sas(self, make: Callable[..., str], *arguments: Any, **more: Any) -> str:
        return make(*arguments, **more)


class Identity:
    """A credential with a token of the account's known identity."""

    def get_token(self, *scopes: str, **_: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken(os.environ["EMULATED_TOKEN"], int(time.time()) + 3600)


class AsyncIdentity:
    """The known identity, for asynchronous clients."""

    async def get_token(self, *scopes: str, **_: Any) -> Any:
        return Identity().get_token(*scopes)

    async def close(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> AsyncIdentity:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""


def get_credential(is_async: bool = False, **_: Any) -> Identity | AsyncIdentity:
    return AsyncIdentity() if is_async else Identity()


class FakeTokenCredential:
    """A credential with a token that every account refuses."""

    token = ("YOU SHALL NOT PASS", 0)
    get_token_count = 0

    def get_token(self, *_: Any, **__: Any) -> Any:
        self.get_token_count += 1
        from azure.core.credentials import AccessToken

        return AccessToken(*self.token)


class ResponseCallback:
    """Replaces `status` with `new_status` in the first answer that has it, or in every such answer."""

    def __init__(self, status: int | None = None, new_status: int | None = None) -> None:
        self.status, self.new_status = status, new_status
        self.first, self.count = True, 0

    def override_first_status(self, response: Any) -> None:
        if self.first and response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
            self.first = False
        self.count += 1

    def override_status(self, response: Any) -> None:
        if response.http_response.status_code == self.status:
            response.http_response.status_code = self.new_status
        self.count += 1


class RetryCounter:
    def __init__(self) -> None:
        self.count = 0

    def simple_count(self, _: Any) -> None:
        self.count += 1


@pytest.fixture(scope="session")
def test_proxy() -> None:
    """Stand in for the recorder."""


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, in place of a sanitizer or a matcher of recordings."""


def __getattr__(name: str) -> Callable[..., None]:
    if name.startswith(("add_", "set_custom_", "remove_")):
        return _nothing
    raise AttributeError(name)
