"""Inputs that lie anywhere on the web: one file, fetched with bounded memory."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from emulators.azureml.errors import DataError

CONNECT_SECONDS = 10
PIECE = 1 << 20


async def download(uri: str, target: Path, what: str) -> None:
    """Fetch the file. Raises DataError if the address can't be reached from this machine, or has no such file."""
    limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=60)
    try:
        async with aiohttp.ClientSession(timeout=limits, trust_env=True) as session, session.get(uri) as answer:
            if answer.status != 200:
                raise DataError(f"{what}: {uri} answers {answer.status}, not with a file.")
            with target.open("wb") as file:
                async for piece in answer.content.iter_chunked(PIECE):
                    file.write(piece)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise DataError(
            f"{what}: {uri} can't be reached from this machine: {error or type(error).__name__}."
        ) from error
