"""Run the services in this process, which starts at once. It is for tests that need no separate process to kill."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulators.storage.config import parse
from emulators.storage.serving import serving

SECONDS = 60.0


@dataclass(frozen=True)
class Inside:
    connection_string: str
    urls: dict[str, str]


@contextmanager
def start(home: Path, **config: Any) -> Iterator[Inside]:
    """Serve the data under `home` during the block. `config` is described in emulators/storage/config.py."""
    parsed = parse({"state": str(home / "state"), **config})
    urls, ready = dict[str, str](), threading.Event()
    ended = list[Callable[[], object]]()

    async def serve() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        ended.append(lambda: loop.call_soon_threadsafe(end.set))
        async with serving(parsed) as found:
            urls.update(found)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(SECONDS)
        ends = "".join(f"{name.capitalize()}Endpoint={urls[f'{name}_url']};" for name in ("blob", "queue", "table"))
        account = f"DefaultEndpointsProtocol=http;AccountName={parsed.account};AccountKey={parsed.key};"
        yield Inside(account + ends, urls)
    finally:
        ended[0]()
        thread.join(SECONDS)
