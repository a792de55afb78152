"""The three ways to send a job file: submitted as the command line does, dropped, and sent by Microsoft's own
client."""

from __future__ import annotations

import json
import os
import re
import ssl
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient

from cli.api.client import Api
from cli.errors import CliError
from cli.files.component_upload import with_job_sent
from cli.files.job_file import load
from emulators.azureml.kernel.identity import token
from emulators.process import wait_for
from local.cloud import Cloud
from tests.e2e.lab import LOOK_SECONDS, Lab

PATIENCE = 240.0
CLUSTER = "cpu-cluster"


@dataclass(frozen=True)
class Ended:
    """The outcome of a job. `words` give the reason for a refusal, a wait or a failure; `files` are its results
    with their sizes."""

    state: str  # refused, queued forever, failed or completed
    job: str = ""
    words: str = ""
    log: str = ""
    files: Mapping[str, int] = field(default_factory=dict)


class Way(Protocol):
    """A way to send the job files of a folder. Jobs may be awaited in any order."""

    def send(self, file: Path) -> None: ...

    def ended(self, name: str) -> Ended:
        """Wait until the file's job has ended and its results are stored."""

    def metric(self, job: str, name: str) -> float:
        """The last value of a metric that a job logged."""


class _Runs:
    """The common part of both ways that make a run: its archive, with a manifest whose entries are checked."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def archived(self, run: str) -> Ended:
        def look() -> Any:
            found = self.lab.get(f"runs/{run}")
            return found if found["archived_at"] else None

        found = wait_for(look, PATIENCE, f"run {run} to be archived", LOOK_SECONDS)
        if not found["job"]:
            return Ended("refused", run, found["reason"])
        with urllib.request.urlopen(f"{self.lab.cloud.api}/runs/{run}/logs", timeout=30) as response:
            log = response.read().decode()
        return Ended(found["state"], run, found["reason"], log, self._files(found))

    def _files(self, run: dict[str, Any]) -> dict[str, int]:
        files = self.lab.output(run)
        container, _, folder = run["output"].partition("/")
        with ContainerClient.from_connection_string(self.lab.cloud.connection_string, container) as output:
            manifest = json.loads(output.download_blob(f"{folder}/manifest.json").readall())
        told = {file["name"]: file["size"] for file in manifest["files"]}
        assert {**told, "manifest.json": files["manifest.json"]} == files, "the manifest is not what lies there"
        assert any(name.startswith("logs/") for name in files)
        return files

    def metric(self, job: str, name: str) -> float:
        return float(self.lab.get(f"runs/{job}/metrics")["series"][name][-1][1])


class Submitted(_Runs):
    """Sent over HTTP, as the command line does, with only a cluster added."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._runs: dict[str, str] = {}
        self._refusals: dict[str, str] = {}

    def send(self, file: Path) -> None:
        with Api(self.lab.cloud.api) as api:
            try:
                job = with_job_sent(api, load(file), file.parent, lambda _: None)
                self._runs[file.stem] = api.post("runs", body={"job": job, "cluster": CLUSTER})["run"]
            except CliError as exc:
                self._refusals[file.stem] = str(exc)

    def ended(self, name: str) -> Ended:
        refused = name in self._refusals
        return Ended("refused", words=self._refusals[name]) if refused else self.archived(self._runs[name])


class Dropped(_Runs):
    """Sent as a drop: a data file, the files that the job file names, and the job file last."""

    def send(self, file: Path) -> None:
        named = {path.relative_to(file.parent).as_posix(): path.read_bytes() for path in _named_files(file)}
        self.lab.upload(f"own/{file.stem}", {"data.txt": b"x", **named, "job.yaml": file.read_bytes()})

    def ended(self, name: str) -> Ended:
        def look() -> Any:
            try:
                drop = self.lab.get(f"drops/own/{name}")
            except urllib.error.HTTPError as exc:
                if exc.code == HTTPStatus.NOT_FOUND:  # no event of the drop has arrived
                    return None
                raise
            return drop if drop["state"] in ("sealed", "rejected") else None

        drop = wait_for(look, PATIENCE, f"drop {name} to be closed", LOOK_SECONDS)
        return Ended("refused", words=drop["why"]) if drop["state"] == "rejected" else self.archived(drop["run"])


def _named_files(file: Path) -> Iterator[Path]:
    """The files beside a job file that the job file names: code, inputs, conda file, environment file or build
    context."""
    for path in re.findall(
        r"(?:code|path|conda_file|environment): (?:file:)?(?:\./)?([\w./-]+)[\s,}]", file.read_text()
    ):
        beside = file.parent / path
        if path == ".":
            yield from (*_below(file.parent / "src"), *_below(file.parent / "data"))
        elif beside.is_file():
            yield beside
            yield from _named_files(beside) if beside.suffix == ".yml" else ()
        else:
            yield from _below(beside)


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


class ByMLClient:
    """Sent by the unmodified MLClient, which uploads and registers by itself; only the compute is changed."""

    def __init__(self, ml: Any, lab: Lab) -> None:
        self._ml, self._lab = ml, lab
        self._jobs: dict[str, str] = {}
        self._refusals: dict[str, str] = {}

    def send(self, file: Path) -> None:
        from azure.ai.ml import load_job
        from azure.ai.ml.exceptions import MlException
        from marshmallow import ValidationError

        override = [{"compute": CLUSTER}, {"experiment_name": "sdk"}]
        try:
            job = load_job(file, params_override=override)
            self._jobs[file.stem] = self._ml.jobs.create_or_update(job).name
        except (HttpResponseError, MlException, ValidationError) as exc:
            self._refusals[file.stem] = str(exc)

    def ended(self, name: str) -> Ended:
        if name in self._refusals:
            return Ended("refused", words=self._refusals[name])
        job = self._jobs[name]
        found = wait_for(lambda: self._settled(job), PATIENCE, f"job {job} to end", LOOK_SECONDS)
        if found["status"] == "Queued":
            return Ended("queued", job, found["warnings"][0]["message"])
        folder = self._lab.data / job
        self._ml.jobs.download(job, download_path=folder, all=True)
        files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in _below(folder)}
        log = "".join((folder / path).read_text() for path in files if "std_log" in path)
        results = {name.removeprefix("artifacts/"): size for name, size in files.items()}
        return Ended(found["status"].lower(), job, json.dumps(found["error"]), log, results)

    def _settled(self, job: str) -> Any:
        """The run history's result of a job that has ended, or that its cluster can never run."""
        cloud = self._lab.cloud
        found = asked(cloud, f"{cloud.azureml}/history/v1.0{cloud.record.workspace_id}/runs/{job}/details")
        never = [warning for warning in found["warnings"] if "the cluster may have" in warning["message"]]
        return found if never or found["status"] in ("Completed", "Failed", "Canceled") else None

    def metric(self, job: str, name: str) -> float:
        url = f"{os.environ['MLFLOW_TRACKING_URI']}/api/2.0/mlflow/metrics/get-history?run_id={job}&metric_key={name}"
        return float(asked(self._lab.cloud, url)["metrics"][-1]["value"])


def asked(cloud: Cloud, url: str) -> Any:
    """The workspace's answer to a GET."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token(cloud.azureml)}"})
    context = ssl.create_default_context(cafile=str(cloud.certs))
    with urllib.request.urlopen(request, timeout=30, context=context) as response:
        return json.load(response)


@contextmanager
def mlclient(cloud: Cloud) -> Iterator[Any]:
    """The unmodified MLClient, with the app's environment variables."""
    before = dict(os.environ)
    os.environ.update(cloud.azureml_env)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from azure.ai.ml import MLClient
            from azure.identity import DefaultAzureCredential

            scope = [os.environ[key] for key in ("AML_SUBSCRIPTION_ID", "AML_RESOURCE_GROUP", "AML_WORKSPACE")]
            with DefaultAzureCredential() as credential:
                yield MLClient(credential, *scope, **json.loads(os.environ["AML_CLIENT_KWARGS"]))
    finally:
        os.environ.clear()
        os.environ.update(before)
