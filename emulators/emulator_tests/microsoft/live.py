"""A pytest plugin for Microsoft's tests: the tests run against our services, and sleeps take no time.

The tests use the account's addresses in Azure, and the plugin redirects these requests to our services.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import pytest
import requests
from azure.core.pipeline.transport import AsyncHttpTransport, HttpTransport
from azure.storage.blob import BlobServiceClient, RetentionPolicy, _download
from yarl import URL

from emulator_tests.microsoft.clock import Clock
from emulator_tests.microsoft.serve import PRINCIPAL, SOFT_DELETE, TOKEN_KEY, VERSIONED
from emulators import process, tokens
from emulators.storage.common.identities import AUDIENCE
from emulators.storage.keys import ACCOUNT, KEY

STATE = Path(os.environ["EMULATED_STATE"])
clock = Clock(STATE)


class Time:
    """The module `time` or `asyncio` as a test sees it, or as the client sees it between two tries."""

    def __init__(self, sleep: Callable[[float], Any], module: types.ModuleType = time) -> None:
        self.sleep, self._module = sleep, module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


async def _slept(seconds: float, _result: Any = None) -> None:
    clock.sleep(seconds)


async def _not_slept(*_: Any) -> None:
    """Take no time between two tries of an asynchronous client."""


def pytest_configure(config: pytest.Config) -> None:
    for name in ("live_test_only", "playback_test_only"):
        config.addinivalue_line("markers", f"{name}: Microsoft's")
    os.environ |= {"EMULATED_ACCOUNT_NAME": ACCOUNT, "EMULATED_ACCOUNT_KEY": KEY}
    os.environ |= {"EMULATED_VERSIONED_ACCOUNT_NAME": VERSIONED, "EMULATED_SOFT_DELETE_ACCOUNT_NAME": SOFT_DELETE}
    os.environ["EMULATED_TOKEN"] = tokens.issue(TOKEN_KEY, PRINCIPAL, AUDIENCE)
    argv = [sys.executable, "-m", "emulator_tests.microsoft.serve", str(STATE)]
    part = process.start("storage", argv, log=STATE / "storage.log")
    config.add_cleanup(partial(_stop, part))
    _without_azure()
    ports = {f"{ACCOUNT}.{name}": urlsplit(part.info[f"{name}_url"]).port or 0 for name in ("blob", "queue", "table")}
    ports |= {f"{name}.blob": urlsplit(part.info[name]).port or 0 for name in (VERSIONED, SOFT_DELETE)}
    _send_here(ports)
    with BlobServiceClient(f"https://{SOFT_DELETE}.blob.core.windows.net", KEY) as blobs:
        blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=5))
    # Between two tries of a client.
    HttpTransport.sleep = lambda _self, _seconds: None  # type: ignore[assignment, method-assign]
    AsyncHttpTransport.sleep = _not_slept  # type: ignore[assignment, method-assign]
    _download.time = Time(lambda _seconds: None)  # type: ignore[assignment, attr-defined]


def _without_azure() -> None:
    """Stand in for Azure's Resource Manager, with which some tests set up their account."""
    for name in ("azure.mgmt.storage", "azure.mgmt.storage.aio"):
        module = sys.modules[name] = types.ModuleType(name)
        module.StorageManagementClient = partial(pytest.skip, "needs Azure's Resource Manager")  # type: ignore[attr-defined]


def pytest_runtest_setup() -> None:
    clock.reset()  # otherwise the dates of requests would be too old


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    import devtools_testutils  # type: ignore[import-not-found]

    devtools_testutils.AzureRecordedTestCase.sleep = lambda _self, seconds: clock.sleep(seconds)
    if tables := sys.modules.get("_shared.testcase"):
        tables.TableTestCase.get_token_credential = lambda *_: devtools_testutils.get_credential()
    for item in items:
        module = getattr(item, "module", None)
        if module is not None and getattr(module, "time", None) is time:
            module.time = Time(clock.sleep)
        if module is not None and getattr(module, "asyncio", None) is asyncio:
            module.asyncio = Time(_slept, asyncio)
        if module is not None and getattr(module, "sleep", None) is time.sleep:
            module.sleep = clock.sleep


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Call the test, and run the coroutine of an asynchronous test."""
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    found = pyfuncitem.obj(**given)
    if inspect.isawaitable(found):
        asyncio.run(_awaited(found))
    return True


async def _awaited(found: Any) -> None:
    await found


def _stop(part: process.Part) -> None:
    part.stop()


def _send_here(ports: dict[str, int]) -> None:
    """Send requests for the account in Azure to the local service."""
    send, ask = requests.Session.request, aiohttp.ClientSession._request

    def here(url: str, headers: Any) -> tuple[str, dict[str, str]] | None:
        parts = urlsplit(url)
        place = parts.netloc.removesuffix(".core.windows.net")
        port = ports.get(place.replace("-secondary.", ".", 1))
        if port is None:
            return None
        target = urlunsplit(("http", f"127.0.0.1:{port}", *parts[2:]))
        return target, {**(headers or {}), "Host": f"{place}.localhost"}

    def sent(session: requests.Session, method: str, url: str, *given: Any, **more: Any) -> requests.Response:
        if found := here(url, more.get("headers")):
            url, more["headers"] = found
            session.trust_env = False  # otherwise each request would look for proxies and passwords
        return send(session, method, url, *given, **more)

    async def asked(session: aiohttp.ClientSession, method: str, url: Any, **more: Any) -> aiohttp.ClientResponse:
        if found := here(str(url), more.get("headers")):
            # A string is quoted again, which the SDK expects when it signs.
            url, more["headers"] = URL(found[0], encoded=True) if isinstance(url, URL) else found[0], found[1]
        return await ask(session, method, url, **more)

    requests.Session.request = sent  # type: ignore[method-assign, assignment]
    aiohttp.ClientSession._request = asked  # type: ignore[method-assign, assignment]


@pytest.fixture(scope="session")
def test_proxy() -> None:
    """Stand in for the recorder."""
