"""The tools of Microsoft's repository for the asynchronous tests."""

from __future__ import annotations

import functools
from typing import Any

from devtools_testutils import Test, _taken


def recorded_by_proxy_async(test: Test) -> Test:
    @functools.wraps(test)
    async def recorded(*arguments: Any, **more: Any) -> None:
        await test(*arguments, **_taken(test, {"variables": {}, **more}))  # the result is for a recording

    return recorded
