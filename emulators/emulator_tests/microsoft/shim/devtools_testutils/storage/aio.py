"""The base class of Microsoft's asynchronous tests of blobs and queues."""

from __future__ import annotations

from devtools_testutils.storage import (
    GenericTestProxyParametrize1,
    GenericTestProxyParametrize2,
    LogCaptured,
    StorageRecordedTestCase,
)

__all__ = [
    "AsyncStorageRecordedTestCase",
    "GenericTestProxyParametrize1",
    "GenericTestProxyParametrize2",
    "LogCaptured",
]

AsyncStorageRecordedTestCase = StorageRecordedTestCase
