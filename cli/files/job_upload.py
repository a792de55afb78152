"""Upload of the local folders and files that a job names. The uploaded job refers to their places in the cloud.

The place of an upload depends on its content, so a folder that was uploaded before costs one request, however large it
is.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import yaml

from ..api.client import Api
from ..errors import CliError, NotFound, Unreachable, unreadable
from ..parallel import in_parallel
from . import git
from .job_form import has_reference, is_remote
from .snapshot import Sent, snapshot

WORKERS = 8
TIMEOUT_SECONDS = 300.0
Say = Callable[[str], None]
Job = dict[str, Any]


def with_everything_sent(api: Api, job: Job, base: Path, say: Say) -> Job:
    """Return the job with code, local inputs and build context uploaded, and local YAML files read in.

    Paths are relative to `base`. Raises CliError for a path that does not exist, or for a folder that is too large.
    """
    sender = Sender(api, say)
    sent = {**job, **_environment(job.get("environment"), base, sender)}
    if (code := job.get("code")) and isinstance(code, dict) and code.keys() == {"local_path"}:
        code = code["local_path"]  # the form of job files from 2021
    if isinstance(code, str) and code.startswith(("git+", "https://")):
        raise CliError(f"code: {code} is not on this machine. Clone it, and name the folder.")
    if isinstance(code, str) and not is_remote(code):
        source = local(base, code)
        folder = source.parent if source.is_file() else source
        sent["code"] = sender.send(source, "code").rpartition("/")[0] + "/"  # a single file is a folder with this file
        sent["properties"] = {**git.properties(folder), **_mapping(job.get("properties"))}
    inputs = {name: _input(name, value, base, sender) for name, value in _mapping(job.get("inputs")).items()}
    return {**sent, "inputs": inputs} if inputs else sent


def local(base: Path, path: str) -> Path:
    return base / Path(path.removeprefix("file://").removeprefix("file:")).expanduser()


def sent_data(api: Api, data: str, user_path: Callable[[Path], Path], say: Say) -> str:
    """Return the place of the data: unchanged for remote data, or the place to which a local folder or file was
    uploaded.

    A path that begins with ./, / or ~ is local. Any other path is local if it exists on this machine, unless it begins
    with drops/. Raises NotFound for a local path that does not exist.
    """
    meant = data.startswith((".", "/", "~"))
    if not data or is_remote(data) or (data.startswith("drops/") and not meant):
        return data
    here = user_path(Path(data))
    if here.exists():
        return Sender(api, say).send(here, "data")
    if meant:
        raise NotFound(f"--data {data}: there is no such folder or file on this machine.")
    return data


# Azure's answer to a create-only signature when another upload of the same file was faster.
# https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
THERE = "UnauthorizedBlobOverwrite"


class Sender:
    """Announces files to the API, and uploads the missing ones to the addresses in its answer."""

    def __init__(self, api: Api, say: Say) -> None:
        self._api = api
        self._say = say

    def send(self, source: Path, what: str) -> str:
        """Upload a folder or file, and return its path in the cloud. A folder's path ends with a slash."""
        files = snapshot(source)
        sums = {file.name: file.md5() for file in files}
        announced = [{"name": file.name, "size": file.size, "md5": sums[file.name].hex()} for file in files]
        answer = self._api.post("uploads", body={"files": announced}, repeats=True)
        if answer["files"]:
            missing = {file["name"]: file["url"] for file in answer["files"]}
            size = sum(file.size for file in files if file.name in missing)
            self._say(f"{what}: sending {len(missing):,} of {len(files):,} files, {size:,} bytes")
            self._put_all([file for file in files if file.name in missing], missing, sums)
            answer = self._api.post("uploads", body={"files": announced}, repeats=True)
            if answer["files"]:
                raise CliError(f"{what}: {answer['files'][0]['name']} was changed during the upload; submit again.")
        path = str(answer["path"])
        return path + files[0].name if source.is_file() else path

    def _put_all(self, files: list[Sent], addresses: dict[str, str], sums: dict[str, bytes]) -> None:
        # A separate client, because the storage account must never see the API's key.
        with httpx.Client(timeout=TIMEOUT_SECONDS) as storage:
            in_parallel(lambda file: _put(storage, addresses[file.name], file, sums[file.name]), files, WORKERS)


def _put(storage: httpx.Client, address: str, file: Sent, md5: bytes) -> None:
    headers = {
        "x-ms-blob-type": "BlockBlob",
        "Content-MD5": base64.b64encode(md5).decode(),
        "Content-Length": str(file.size),
    }
    try:
        with file.path.open("rb") as content:
            answer = storage.put(address, content=content if file.size else b"", headers=headers)
    except httpx.HTTPError as exc:
        raise Unreachable(f"{file.name}: the storage account does not answer ({exc or type(exc).__name__}).") from exc
    if answer.status_code not in (201, 409) and answer.headers.get("x-ms-error-code") != THERE:
        raise CliError(f"{file.name}: the storage account refused it ({answer.status_code}).")


def _input(name: str, value: Any, base: Path, sender: Sender) -> Any:
    """Return the input, with the local folder or file uploaded."""
    path = value.get("path") if isinstance(value, dict) else None
    if not isinstance(path, str) or is_remote(path) or has_reference(path):
        return value
    return {**value, "path": sender.send(local(base, path), f"input {name}")}


def _environment(described: Any, base: Path, sender: Sender) -> Job:
    """Return the environment with its local files: the environment file and the conda file read in, the build
    context uploaded."""
    if isinstance(described, str) and described.startswith(("file:", "./", "../")):
        file = local(base, described)
        described, base = read_yaml(file, "environment"), file.parent
    elif not isinstance(described, dict):
        return {}
    made = dict(described)
    made.pop("$schema", None)
    if isinstance(conda := described.get("conda_file"), str):
        made["conda_file"] = read_yaml(local(base, conda), "environment.conda_file")
    build = _mapping(described.get("build"))
    if build.keys() & {"local_path", "path"} == {"local_path"}:
        build["path"] = build.pop("local_path")  # the form of job files from 2021
    if isinstance(path := build.get("path"), str) and not is_remote(path):
        made["build"] = {**build, "path": sender.send(local(base, path), "build context")}
    return {"environment": made}


def read_yaml(file: Path, what: str) -> Job:
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except OSError as exc:
        raise unreadable(f"{what}: {file}", exc) from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise CliError(f"{what}: {file} is not valid YAML: {exc}") from exc
    if not isinstance(content, dict):
        raise CliError(f"{what}: {file} does not contain a mapping.")
    return content


def _mapping(value: Any) -> Job:
    return dict(value) if isinstance(value, dict) else {}
