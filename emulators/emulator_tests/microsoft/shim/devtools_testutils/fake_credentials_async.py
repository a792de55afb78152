from __future__ import annotations

from typing import Any


class AsyncFakeCredential:
    """A credential with a token that every account refuses."""

    async def get_token(self, *_: Any, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("YOU SHALL NOT PASS", 0)

    async def close(self) -> None:
        """Do nothing."""
