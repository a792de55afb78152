"""`python -m emulator_tests.microsoft.serve STATE`: run our services for Microsoft's tests, with a clock that the
tests move."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import replace
from pathlib import Path

from emulator_tests.microsoft.clock import Clock
from emulators.process import serve_until_stopped
from emulators.storage.common.identities import Identities
from emulators.storage.config import Config
from emulators.storage.keys import KEY
from emulators.storage.serving import serving

TOKEN_KEY, PRINCIPAL = "k" * 32, "00000000-0000-0000-0000-000000000001"
# The names of the accounts with versioning and with soft delete.
VERSIONED, SOFT_DELETE = "versionedaccount", "softdeleteaccount"
EVERYTHING = {"principal": PRINCIPAL, "actions": ["*"], "data_actions": ["*"]}


async def serve(state: Path) -> None:
    identities = Identities.of({"key": TOKEN_KEY, "grants": [EVERYTHING]})
    first = Config(state, key=KEY, identities=identities, public_access=True)
    versioned = replace(first, state=state / VERSIONED, account=VERSIONED, versioning=True)
    soft_delete = replace(first, state=state / SOFT_DELETE, account=SOFT_DELETE)
    async with contextlib.AsyncExitStack() as stack:
        urls, *others = [
            await stack.enter_async_context(serving(config, Clock(state))) for config in (first, versioned, soft_delete)
        ]
        more = zip((VERSIONED, SOFT_DELETE), others, strict=True)
        await serve_until_stopped(**urls, **{name: found["blob_url"] for name, found in more})


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
