"""Command jobs in every form that Azure ML documents, as others publish them: each submitted, dropped, and sent by
MLClient.

The first lines of each file of corpus/ state the expectation: a line of the `log`, a `file` of the archive, an `asset`
of the workspace, a `metric` with its last value, or the words with which the job `failed`, was `refused`, or stays
`queued`. A line such as `# dropped refused: words` applies to one way; a way that has lines of its own ignores the
other lines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from local.cloud import Cloud, Options
from tests.e2e.corpus_ways import ByMLClient, Dropped, Submitted, Way, asked, mlclient
from tests.e2e.lab import Lab

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(file.stem for file in CORPUS.glob("*.yml") if file.stem not in ("conda", "environment"))
LATER = [name for name in NAMES if name.startswith("later-")]  # they read what the other jobs wrote
EARLY = ["output-folder", "output-model"]
LONG = ["mlflow", "spread-ray"]  # some seconds each, so they run last
WAYS = ("submitted", "dropped", "mlclient")
# The gate submits all, and leaves these out of the other two ways: another file has the same form. (Ray's launcher
# takes ten seconds of both cores; `spread-ray-without` goes each way.) TRAINYARD_CORPUS=all leaves out nothing.
ALIKE = {
    "code-multiline",
    "env-curated-version",
    "env-registry-label",
    "env-workspace-version",
    "input-asset-version",
    "input-optional",
    "output-file",
    "spread-ray",
}
ALL = os.environ.get("TRAINYARD_CORPUS") == "all"
CHOSEN = [(way, name) for way in WAYS for name in NAMES if ALL or way == "submitted" or name not in ALIKE]
ROUTES = {
    "routes": {
        "own": {
            "template": "own.yaml",
            "cluster": "cpu-cluster",
            "max_nodes": 4,
            "allow": ["code"],
            "settle_seconds": 0.5,
        }
    },
    "limits": {"allow": ["code"], "cluster": "cpu-cluster"},
}

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning"),
]


class Corpus:
    """A cloud that received all jobs of the corpus in each of the three ways."""

    def __init__(self, cloud: Cloud, home: Path, ml: Any) -> None:
        self.cloud, self.home = cloud, home
        lab = Lab(cloud, home)
        self.ways: dict[str, Way] = {
            "submitted": Submitted(lab),
            "dropped": Dropped(lab),
            "mlclient": ByMLClient(ml, lab),
        }

    def file(self, way: str, name: str) -> Path:
        """The way's own copy of the file, in which created assets have unique names."""
        if not (folder := self.home / way).exists():
            shutil.copytree(CORPUS, folder)
            for file in folder.glob("*.yml"):
                file.write_text(file.read_text().replace("corpus-", f"{way}-"))
        return folder / f"{name}.yml"

    def send(self, way: str, *names: str) -> None:
        for name in names:
            file = self.file(way, name)
            for earlier in re.findall(r"\{(output-\w+)\}", text := file.read_text()):
                file.write_text(text.replace(f"{{{earlier}}}", self.ways[way].ended(earlier).job))
            self.ways[way].send(file)

    def expected(self, way: str, name: str) -> list[tuple[str, str]]:
        """The expectations for this way in the file's first lines."""
        said = re.findall(
            rf"^# (?:({'|'.join(WAYS)}) )?(log|file|asset|metric|failed|queued|refused): (.*)$",
            self.file(way, name).read_text(),
            re.MULTILINE,
        )
        own = way if any(only == way for only, _, _ in said) else ""
        return [(kind, words) for only, kind, words in said if only == own]


def prepare(cloud: Cloud, ml: Any) -> None:
    """Create the data, model and environment that jobs of the corpus expect in the workspace."""
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
    rare = dict.fromkeys(("TRAINYARD_RECONCILE_SCHEDULE", "TRAINYARD_SCALING_SCHEDULE"), "0 * * * * *")
    options = Options(routes=home / "routes.yaml", node_start_seconds=0.1, app_env=rare)
    with Cloud.start(home / "cloud", options) as cloud, mlclient(cloud) as ml:
        made = Corpus(cloud, home, ml)
        prepare(cloud, ml)
        middle = [name for name in NAMES if name not in (*EARLY, *LATER, *LONG)]
        for names in (EARLY, middle, LATER, LONG):
            for way in WAYS:
                made.send(way, *(name for name in names if (way, name) in CHOSEN))
        yield made


@pytest.mark.parametrize(("way", "name"), CHOSEN)
def test_a_published_job_does_what_its_file_says(corpus: Corpus, way: str, name: str) -> None:
    """With only a cluster added, the job runs with its log, results and assets, or gives the expected reason."""
    wanted = corpus.expected(way, name)
    assert wanted, "the file must say what is expected"
    found = corpus.ways[way].ended(name)
    why_not = [(kind, words) for kind, words in wanted if kind in ("refused", "queued", "failed")]
    assert found.state == (why_not[0][0] if why_not else "completed"), found.words
    assert [words for _, words in why_not if words not in found.words] == [], found.words
    assert [words for kind, words in wanted if kind == "log" and words not in found.log] == [], found.log
    assert [words for kind, words in wanted if kind == "file" and not found.files.get(words)] == [], found.files
    for metric, _, last in [words.partition(" ") for kind, words in wanted if kind == "metric"]:
        assert corpus.ways[way].metric(found.job, metric) == float(last)
    for kind, asset, version in [words.split("/") for kind, words in wanted if kind == "asset"]:
        url = f"{corpus.cloud.azureml}{corpus.cloud.record.workspace_id}/{kind}/{asset}/versions/{version}"
        made = asked(corpus.cloud, f"{url}?api-version=2025-12-01")["properties"]
        assert found.job in str(made.get("modelUri") or made.get("dataUri")) + str(made.get("jobName"))


def test_a_folder_of_code_runs_by_its_command(corpus: Corpus, tmp_path: Path) -> None:
    """`submit FOLDER --command` needs only data, parameters and packages; the saved job file repeats the run."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_bytes((CORPUS / "src" / "show.py").read_bytes())
    command = "python train.py in={data} lr={lr} out={models} module=msgspec"
    words = ["code", "--command", command, "-p", "lr=0.1", "--env", "msgspec", "--save", "job.yml"]
    submitted = corpus.ways["submitted"]
    assert isinstance(submitted, Submitted)
    for argv in (words, ["job.yml"]):
        argv = [sys.executable, "-m", "cli", "submit", *argv, "--data", "workspaceblobstore/corpus/in"]
        environment = {**os.environ, "TRAINYARD_CWD": str(tmp_path), "TRAINYARD_URL": corpus.cloud.api}
        done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = submitted.archived(done.stdout.strip())
        assert found.state == "completed", found.words
        assert "IN {'one.csv': 'stored'}" in found.log
        assert 'SAID "lr=0.1"' in found.log
        assert "models/result.txt" in found.files
