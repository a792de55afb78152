"""`python -m emulator_tests.microsoft.serve STATE`: our services for Microsoft's tests, whose clock the tests move."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from emulator_tests.microsoft.clock import Clock
from emulators.process import serve_until_stopped
from emulators.storage.common.identities import Identities
from emulators.storage.config import Config
from emulators.storage.keys import KEY
from emulators.storage.serving import serving

TOKEN_KEY, PRINCIPAL = "k" * 32, "00000000-0000-0000-0000-000000000001"
EVERYTHING = {"principal": PRINCIPAL, "actions": ["*"], "data_actions": ["*"]}


async def serve(state: Path) -> None:
    identities = Identities.of({"key": TOKEN_KEY, "grants": [EVERYTHING]})
    async with serving(Config(state, key=KEY, identities=identities, public_access=True), Clock(state)) as urls:
        await serve_until_stopped(**urls)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
