"""Download of a model's version with its proof: the files named by the signature, each checked by SHA-256."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ..files.signed_model import SIGNATURE, Signed, read
from . import fetch as fetching
from .api_outage import OutageMessages
from .client import Api, retry_unreachable
from .fetch import PATIENCE_SECONDS


@dataclass(frozen=True)
class ModelSource:
    """The API's files of one version, as a source of downloads."""

    api: Api
    version: dict[str, Any]

    @contextmanager
    def artifact(self, run: str, name: str, offset: int = 0) -> Iterator[httpx.Response]:
        where = ("models", self.version["model"], "versions", str(self.version["number"]), "files")
        with self.api.redirected(where, run, name, offset) as stream:
            yield stream


def bring(
    api: Api, version: dict[str, Any], folder: Path, only: list[str], progress: fetching.Progress
) -> tuple[list[fetching.File], int]:
    """Download the version's files and then the signature. Returns the files and the number of new files."""
    source = ModelSource(api, version)
    content = retry_unreachable(lambda: _signature(source, version["run"]), PATIENCE_SECONDS, OutageMessages())
    files = fetching.chosen(_files(read(content)), only)
    new = fetching.fetch(source, version["run"], files, folder, progress)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{SIGNATURE}.{os.getpid()}.part"
    unfinished.write_bytes(content)
    unfinished.replace(folder / SIGNATURE)
    return files, len(new)


def _signature(source: ModelSource, run: str) -> bytes:
    with source.artifact(run, SIGNATURE) as stream:
        return stream.read()


def _files(signed: Signed) -> list[fetching.File]:
    return [fetching.File(name, -1, "", "", digest) for name, digest in sorted(signed.files.items())]
