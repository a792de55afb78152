"""Command jobs in every form that Azure ML documents, as others publish them: submitted, dropped, and sent by MLClient.

Each file of corpus/ says in its first lines what is expected: a line of the `log`, a `file` of the archive, an `asset`
of the workspace, a `metric` with its last value, the words with which it `failed` or was `refused`.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.storage.blob import BlobServiceClient

from cli.client import Api
from cli.errors import CliError
from cli.jobfile import load
from cli.sending import with_everything_sent
from emulators.azureml.identity import token
from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.lab import LOOK_SECONDS, Lab

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
FILES = {file.stem: file for file in sorted(CORPUS.glob("*.yml")) if file.stem not in ("conda", "environment")}
DROPPED = ("code-ignored", "env-image-conda-inline", "input-literals", "output-folder", "spread-mpi", "spread-null")
BY_MLCLIENT = ("code-none", "env-build-context", "env-image-conda-file", "input-mltable", "output-folder", "spread-mpi")
PATIENCE = 240.0
ROUTES = {
    "routes": {"own": {"template": "own.yaml", "cluster": "cpu-cluster", "max_nodes": 4, "allow": ["code"]}},
    "limits": {"allow": ["code"], "cluster": "cpu-cluster"},
}

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning"),
]


def expected(name: str) -> list[tuple[str, str]]:
    """What the file's first lines say."""
    return re.findall(r"^# (log|file|asset|metric|failed|refused): (.*)$", FILES[name].read_text(), re.MULTILINE)


class Corpus:
    """A cloud that was given all jobs of the corpus. `runs` are by file, `drops` those that were dropped."""

    def __init__(self, cloud: Cloud, home: Path) -> None:
        self.cloud, self.lab = cloud, Lab(cloud, home)
        self.runs: dict[str, str] = {}
        self.refusals: dict[str, str] = {}

    def submit(self, *names: str) -> None:
        """Submit files as the command line does, with a cluster and nothing else."""
        with Api(self.cloud.api) as api:
            for name in names:
                try:
                    job = with_everything_sent(api, self._job(name), CORPUS, lambda _: None)
                    self.runs[name] = api.post("runs", body={"job": job, "cluster": "cpu-cluster"})["run"]
                except CliError as exc:
                    self.refusals[name] = str(exc)

    def _job(self, name: str) -> dict[str, Any]:
        text = FILES[name].read_text()
        if not (earlier := re.findall(r"\{(output-folder)\}", text)):
            return load(FILES[name])
        found: dict[str, Any] = yaml.safe_load(text.replace(f"{{{earlier[0]}}}", self.runs[earlier[0]]))
        return found

    def drop(self, name: str) -> None:
        """Drop the job with its code beside it, and a file of data."""
        source = CORPUS / "src"
        files = {f"src/{p.relative_to(source).as_posix()}": p.read_bytes() for p in source.rglob("*.py")}
        self.lab.upload(f"own/{name}", {**files, "data.txt": b"x", "job.yaml": FILES[name].read_bytes()})

    def archived(self, run: str) -> Any:
        def look() -> Any:
            found = self.lab.get(f"runs/{run}")
            return found if found["archived_at"] else None

        return wait_for(look, PATIENCE, f"run {run} to be archived", LOOK_SECONDS)

    def log(self, run: str) -> str:
        with urllib.request.urlopen(f"{self.cloud.api}/runs/{run}/logs", timeout=30) as response:
            return str(response.read().decode())

    def arm(self, path: str) -> Any:
        """What Resource Manager says of something in the workspace."""
        url = f"{self.cloud.azureml}{self.cloud.record.workspace_id}/{path}?api-version=2025-12-01"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token(self.cloud.azureml)}"})
        context = ssl.create_default_context(cafile=str(self.cloud.certs))
        with urllib.request.urlopen(request, timeout=30, context=context) as response:
            return json.load(response)


@contextmanager
def mlclient(cloud: Cloud) -> Iterator[Any]:
    """The unmodified MLClient, with the variables that the app has too."""
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


def prepare(cloud: Cloud, ml: Any) -> None:
    """What jobs of the corpus find in the workspace: data, a model and an environment."""
    from azure.ai.ml import load_environment
    from azure.ai.ml.entities import Data, Model

    with BlobServiceClient.from_connection_string(cloud.connection_string) as blobs:
        blobs.create_container("corpus").upload_blob("in/one.csv", b"stored")
        store = ml.datastores.get_default().container_name
        blobs.get_container_client(store).upload_blob("corpus/in/one.csv", b"stored")
    place = "azureml://datastores/workspaceblobstore/paths/corpus/in/"
    ml.data.create_or_update(Data(name="stored", version="1", type="uri_folder", path=place))
    ml.models.create_or_update(Model(name="net", version="1", type="custom_model", path=place))
    named = [{"name": "corpus"}, {"version": "1"}]
    ml.environments.create_or_update(load_environment(CORPUS / "environment.yml", params_override=named))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    home = tmp_path_factory.mktemp("corpus")
    (home / "routes.yaml").write_text(json.dumps(ROUTES))
    (home / "own.yaml").write_text(json.dumps({"command": "echo", "environment": "azureml:AzureML-minimal@latest"}))
    options = Options(routes=home / "routes.yaml", node_start_seconds=0.1)
    with Cloud.start(home / "cloud", options) as cloud, mlclient(cloud) as ml:
        made = Corpus(cloud, home)
        prepare(cloud, ml)
        made.submit(*(name for name in FILES if not name.startswith("later-")))
        for name in DROPPED:
            made.drop(name)
        for name in ("output-folder", "output-model"):
            made.archived(made.runs[name])
        made.submit(*(name for name in FILES if name.startswith("later-")))
        yield made


@pytest.mark.parametrize("name", FILES)
def test_a_published_job_does_what_its_file_says(corpus: Corpus, name: str) -> None:
    """With a cluster and nothing else it runs, with its log, outputs in the archive and assets; or says why not."""
    wanted = expected(name)
    assert wanted, "the file must say what is expected"
    if refused := [words for kind, words in wanted if kind == "refused"]:
        assert refused[0] in corpus.refusals[name]
        return
    assert name in corpus.runs, corpus.refusals[name]
    run = corpus.archived(corpus.runs[name])
    if failed := [words for kind, words in wanted if kind == "failed"]:
        assert (run["state"], failed[0] in run["reason"]) == ("failed", True), run["reason"]
        return
    assert run["state"] == "completed", run["reason"]
    check(corpus, run, wanted)


@pytest.mark.parametrize("name", DROPPED)
def test_a_dropped_job_is_the_same(corpus: Corpus, name: str) -> None:
    """In a drop, with its code beside it, the file makes the same log and archive."""
    drop = corpus.lab.drop_that_is(f"own/{name}", "sealed")
    run = corpus.archived(drop["run"])
    assert run["state"] == "completed", run["reason"]
    wanted = [(kind, words.replace("'.amlignore', ", "")) for kind, words in expected(name)]
    check(corpus, run, wanted)


def check(corpus: Corpus, run: Any, wanted: list[tuple[str, str]]) -> None:
    log, files = corpus.log(run["run"]), corpus.lab.output(run)
    assert [words for kind, words in wanted if kind == "log" and words not in log] == [], log
    assert [words for kind, words in wanted if kind == "file" and not files.get(words)] == [], sorted(files)
    assert any(name.startswith("logs/") for name in files)
    for name, _, last in [words.partition(" ") for kind, words in wanted if kind == "metric"]:
        points = corpus.lab.get(f"runs/{run['run']}/metrics")["series"][name]
        assert not last or points[-1][1] == float(last)
    for asset in [words for kind, words in wanted if kind == "asset"]:
        kind, name, version = asset.split("/")
        found = corpus.arm(f"{kind}/{name}/versions/{version}")["properties"]
        assert run["run"] in str(found.get("modelUri") or found.get("dataUri")) + str(found.get("jobName"))


def test_a_folder_of_code_runs_by_its_command(corpus: Corpus, tmp_path: Path) -> None:
    """`submit FOLDER --command` needs no more than data, parameters and packages; the saved job file repeats it."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_bytes((CORPUS / "src" / "show.py").read_bytes())
    command = "python train.py in={data} lr={lr} out={models} module=msgspec"
    words = ["code", "--command", command, "-p", "lr=0.1", "--env", "msgspec", "--save", "job.yml"]
    for argv in (words, ["job.yml"]):
        argv = [sys.executable, "-m", "cli", "submit", *argv, "--data", "workspaceblobstore/corpus/in"]
        environment = {**os.environ, "TRAINYARD_CWD": str(tmp_path), "TRAINYARD_URL": corpus.cloud.api}
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run = corpus.archived(done.stdout.strip())
        assert run["state"] == "completed", run["reason"]
        told = [("log", "IN {'one.csv': 'stored'}"), ("log", 'SAID "lr=0.1"'), ("file", "models/result.txt")]
        check(corpus, run, told)


def test_mlclient_sends_the_same_files(corpus: Corpus) -> None:
    """Microsoft's own client uploads, registers and submits them unchanged but for the compute; their logs agree."""
    from azure.ai.ml import load_job

    with mlclient(corpus.cloud) as ml:
        sent = {}
        for name in BY_MLCLIENT:
            job = load_job(FILES[name], params_override=[{"compute": "cpu-cluster"}, {"experiment_name": "sdk"}])
            sent[name] = ml.jobs.create_or_update(job).name
        for name, job in sent.items():
            wait_for(lambda job=job: ml.jobs.get(job).status in ("Completed", "Failed"), PATIENCE, job, LOOK_SECONDS)
            assert ml.jobs.get(job).status == "Completed", name
            ml.jobs.download(job, download_path=corpus.lab.data / job, all=True)
            logs = "".join(file.read_text() for file in (corpus.lab.data / job).rglob("std_log*.txt"))
            assert [words for kind, words in expected(name) if kind == "log" and words not in logs] == []
