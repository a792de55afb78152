"""Batch AI's documents on this machine: reading them, adding the options of the command line, and printing the
report about their fields.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..errors import CliError, unreadable
from . import job_file

_SIGNATURE = re.compile(r"([?&](?:sig|signature|code|token|password|key)=)[^&\s\"'\\]+", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^/\s:@\"']*:)[^/\s@\"']+(?=@)")
LONGEST_SCRIPT = 65_536  # characters, as in the API
Json = dict[str, Any]


def read(file: Path) -> Json:
    """Read a document. A byte order mark and trailing commas, which are common in users' files, are accepted.
    Raises CliError for any other error.
    """
    try:
        text = file.read_text("utf-8-sig")
    except OSError as exc:
        raise unreadable(file, exc) from exc
    except UnicodeDecodeError as exc:
        raise CliError(f"{file} can't be read: it is not UTF-8 text.") from exc
    try:
        return job_file.parsed(text, file)
    except CliError as exc:
        try:
            return job_file.parsed(text, file.with_suffix(".yaml"))
        except CliError:
            raise exc from None


@dataclass
class Beside:
    """The options of the command line for a document."""

    cluster_file: Path | None = None
    project_file: Path | None = None
    mounts: dict[str, str] = field(default_factory=dict)
    account: str = ""
    environment: str = ""
    files: dict[str, str] = field(default_factory=dict)
    strict: bool = False

    def body(self) -> Json:
        """Return the fields of the API's request for these options."""
        parts = {
            "cluster": read(self.cluster_file) if self.cluster_file else None,
            "project": read(self.project_file) if self.project_file else None,
            "mounts": self.mounts,
            "storage_account": self.account or os.environ.get("AZURE_BATCHAI_STORAGE_ACCOUNT", ""),
            "environment": self.environment,
            "files": self.files,
            "strict": self.strict,
        }
        return {name: value for name, value in parts.items() if value}


def mounted(document: Json, shares: list[str], containers: list[str], account: str) -> Json:
    """Return the job with additional mounts, as `az batchai job create --afs-name --bfs-name` added them: NAME or
    NAME=PATH.
    """
    inner = document.get("properties")
    properties: Json = dict(inner) if isinstance(inner, dict) else {}
    volumes = dict(properties.get("mountVolumes") or {})
    name = account or "<AZURE_BATCHAI_STORAGE_ACCOUNT>"
    for text in shares:
        share, _, path = text.partition("=")
        url = f"https://{name}.file.core.windows.net/{share}"
        more = {"azureFileUrl": url, "relativeMountPath": path or "afs"}
        volumes["azureFileShares"] = [*(volumes.get("azureFileShares") or []), more]
    for text in containers:
        container, _, path = text.partition("=")
        more = {"accountName": name, "containerName": container, "relativeMountPath": path or "bfs"}
        volumes["azureBlobFileSystems"] = [*(volumes.get("azureBlobFileSystems") or []), more]
    return {**document, "properties": {**properties, "mountVolumes": volumes}} if volumes else document


def scripts_beside(names: list[str], folder: Path) -> dict[str, str]:
    """Return the text of each of the job's scripts that is in the job's folder. The text is sent with the run, as
    if the script had been uploaded.
    """
    return {name: _script(folder, name, "job.json") for name in names if (folder / name).is_file()}


def as_yaml(document: Json) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)


def hidden(answer: Json) -> Json:
    """Return the answer with the secrets in its URLs replaced: signatures, keys and passwords."""
    found: Json = json.loads(_PASSWORD.sub(r"\1...", _SIGNATURE.sub(r"\1...", json.dumps(answer, ensure_ascii=False))))
    return found


def as_text(report: list[Json]) -> str:
    """Return the report as text, with the fields without a full equivalent first."""
    lines = []
    for row in sorted(report, key=lambda row: not row["lossy"]):
        lines.append(f"{'! ' if row['lossy'] else '  '}{row['field']}")
        lines.append(f"      then   {row['meant']}")
        lines.append(f"      now    {row['instead']}")
        if row["decide"]:
            lines.append(f"      you    {row['decide']}")
    lossy = sum(row["lossy"] for row in report)
    lines.append(
        f"{lossy} fields without a full equivalent (!), {len(report) - lossy} replaced by something equivalent."
    )
    return "\n".join(lines)


@dataclass(frozen=True)
class Folder:
    """A project folder of the deep-learning job service: project.json, job.json and the script."""

    path: Path
    project: Json
    job: Json
    script: str

    @classmethod
    def read(cls, path: Path) -> Folder:
        """Read the folder. Raises CliError with the name of a missing file."""
        project, job = (_document(path, name) for name in ("project.json", "job.json"))
        name = str(project.get("sourceScript") or "")
        return cls(path, project, job, _script(path, name) if name else "")


def _document(path: Path, name: str) -> Json:
    if not (path / name).is_file():
        raise CliError(f"{path} has no {name}. `run` and `pause` need a folder with project.json and job.json.")
    return read(path / name)


def project_cluster(path: Path) -> str:
    """Return the name of the cluster in this folder's project.json. Raises CliError if the name was not filled in."""
    name = str(_document(path, "project.json").get("clusterName") or "")
    if not name or name.startswith("ENTER_"):
        raise CliError(f"project.json says clusterName {name!r}: fill it in, or name the cluster.")
    return name


def _script(path: Path, name: str, whose: str = "project.json") -> str:
    file = (path / name).resolve()
    if path.resolve() not in file.parents:
        raise CliError(f"{whose} names the script {name!r}, which is not in its folder.")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise CliError(f"{whose} names the script {name!r}, which can't be read as text: {exc}.") from exc
    if len(text) > LONGEST_SCRIPT:
        raise CliError(
            f"{name} has {len(text)} characters; a script that is sent with its run may have at most 65,536."
        )
    return text
