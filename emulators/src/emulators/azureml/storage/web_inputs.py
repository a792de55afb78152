"""Inputs from the web: each is one file, which is downloaded with bounded memory."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from emulators.azureml.kernel.errors import DataError
from emulators.azureml.storage.web_folder import WebFolder

CONNECT_SECONDS = 10
REACH_SECONDS = 6  # in total, because a caller waits
PIECE = 1 << 20
UNREACHABLE = (aiohttp.ClientError, TimeoutError, OSError, ValueError)  # ValueError for invalid host names


async def reach(uri: str, what: str, web: WebFolder) -> None:
    """Raise DataError if the address can't be reached from this machine, or has no file. Nothing is downloaded."""
    if _local(uri, what, web):
        return
    limits = aiohttp.ClientTimeout(total=REACH_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=limits, trust_env=True) as session, session.get(uri) as answer:
            if answer.status != 200:
                raise DataError(f"{what}: {_shown(uri)} answers {answer.status}, not with a file.")
    except UNREACHABLE as error:
        raise DataError(_unreachable(uri, what, error, web)) from error


async def reach_host(uri: str, web: WebFolder) -> None:
    """Raise DataError if no server answers at this address. Any answer is enough, because the address may be a
    folder of files to download."""
    if web.has(urlsplit(uri).hostname or ""):
        return
    limits = aiohttp.ClientTimeout(total=REACH_SECONDS)
    try:
        async with aiohttp.ClientSession(timeout=limits, trust_env=True) as session, session.head(uri):
            return
    except UNREACHABLE as error:
        raise DataError(f"The nodes can't reach it: {error or type(error).__name__}.") from error


async def reach_folder(uri: str, what: str, web: WebFolder) -> Path:
    """Return the folder for a URL in the web folder. Raises DataError if there is none, because folders elsewhere
    on the web can't be listed."""
    if found := web.tree(uri):
        return found
    words = "lies elsewhere; from there only a single file (uri_file) can be fetched."
    raise DataError(f"{what}: {_shown(uri)} {words}{_stand_in(uri, web)}")


async def copy_folder(uri: str, target: Path, what: str, web: WebFolder) -> None:
    found = await reach_folder(uri, what, web)
    await asyncio.to_thread(lambda: shutil.copytree(found, target, dirs_exist_ok=True))


async def download(uri: str, target: Path, what: str, web: WebFolder) -> None:
    """Download the file. Raises DataError if the address can't be reached from this machine, or has no such file."""
    if local := _local(uri, what, web):
        await asyncio.to_thread(shutil.copyfile, local, target)
        return
    limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=60)
    try:
        async with aiohttp.ClientSession(timeout=limits, trust_env=True) as session, session.get(uri) as answer:
            if answer.status != 200:
                raise DataError(f"{what}: {_shown(uri)} answers {answer.status}, not with a file.")
            with target.open("wb") as file:
                async for piece in answer.content.iter_chunked(PIECE):
                    file.write(piece)
    except UNREACHABLE as error:
        raise DataError(_unreachable(uri, what, error, web)) from error


def _local(uri: str, what: str, web: WebFolder) -> Path | None:
    try:
        return web.file(uri)
    except FileNotFoundError as error:
        raise DataError(f"{what}: {_shown(uri)}: {error}.") from error


def _unreachable(uri: str, what: str, error: Exception, web: WebFolder) -> str:
    tells_address = isinstance(error, aiohttp.InvalidURL | aiohttp.ClientResponseError)  # with its signature
    words = type(error).__name__ if tells_address else str(error) or type(error).__name__
    return f"{what}: {_shown(uri)} can't be reached from this machine: {words}.{_stand_in(uri, web)}"


def _stand_in(uri: str, web: WebFolder) -> str:
    place = web.place(uri)
    return f" A copy at {place} would stand for it." if place else ""


def _shown(uri: str) -> str:
    """Return a URL without the query, because the query may contain a signature."""
    return uri.partition("?")[0]
