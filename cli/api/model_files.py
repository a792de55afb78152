"""Download of a model's version with its proof: the files named by the signature, each checked by SHA-256."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from ..errors import CliError
from ..files.model_signature import SIGNATURE, Signed, read, why_not_signed
from . import fetch as fetching
from .api_outage import OutageMessages
from .client import Api, retry_unreachable
from .fetch import PATIENCE_SECONDS

ATTESTATION = re.compile(r"attestations/[a-z][a-z0-9-]{0,30}-\w{1,40}\.json")


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
    api: Api,
    version: dict[str, Any],
    folder: Path,
    only: list[str],
    keys: Mapping[str, bytes],
    progress: fetching.Progress,
) -> tuple[list[fetching.File], int]:
    """Download the version's files and, after them, its signature. Returns the files and the number of new ones.

    Downloads nothing, and raises CliError, unless one of these keys (PEM by SHA-256) signed the version.
    """
    source = ModelSource(api, version)
    content = retry_unreachable(lambda: _signature(source, version["run"]), PATIENCE_SECONDS, OutageMessages())
    signed = read(content)
    if why := why_not_signed(signed, keys):
        raise CliError(
            f"Nothing was downloaded: {SIGNATURE} of {version['model']}/{version['number']} {why}. `keys` "
            "shows the keys of the deployment, and how to trust a new one.",
            "bad_data",
        )
    files = fetching.chosen(_files(signed), only)
    new = fetching.fetch(source, version["run"], files, folder, progress)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{SIGNATURE}.{os.getpid()}.part"
    unfinished.write_bytes(content)
    unfinished.replace(folder / SIGNATURE)
    return files, len(new)


def bring_attestations(api: Api, version: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Download the version's attestations into FOLDER.attestations, and return their statements.

    This folder is beside the model's folder, because an unsigned file inside would fail `verify`.
    """
    source = ModelSource(api, version)
    rows: list[dict[str, Any]] = api.get("models", version["model"], "versions", str(version["number"]), "attestations")
    place = folder.with_name(f"{folder.name}.attestations")
    for row in rows:
        if not ATTESTATION.fullmatch(row["file"]):
            raise CliError(f"The API lists {row['file'][:200]!r}, which is not the name of an attestation.")
        with source.artifact(version["run"], row["file"]) as stream:
            content = stream.read()
        place.mkdir(parents=True, exist_ok=True)
        (place / row["file"].rpartition("/")[2]).write_bytes(content)
    return rows


def _signature(source: ModelSource, run: str) -> bytes:
    with source.artifact(run, SIGNATURE) as stream:
        return stream.read()


def _files(signed: Signed) -> list[fetching.File]:
    return [fetching.File(name, -1, "", "", digest) for name, digest in sorted(signed.files.items())]
