from __future__ import annotations

from typing import Any


class AsyncFakeCredential:
    """Has a token refused by every account."""

    async def get_token(self, *_: Any, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("YOU SHALL NOT PASS", 0)

    async def close(self) -> None:
        """Nothing to close."""
