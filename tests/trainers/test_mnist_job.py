"""job.yaml, environment.yaml and conda.yaml, as Azure ML's own client and the trainer's own parser read them."""

from __future__ import annotations

import re
import shlex
import warnings

import pytest
import yaml
from mnist import train
from packaging.requirements import Requirement

from tests.trainers.launch import TRAINERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # azure-ai-ml on its own marshmallow
    from azure.ai.ml import load_environment, load_job
    from azure.ai.ml.entities import Command

JOB = TRAINERS / "mnist" / "job.yaml"
# How metrics reach Azure ML. They don't go with other packages of the local cloud, which has no MLflow server.
AZURE_ONLY = {"azureml-mlflow==1.62.0.post6", "mlflow-skinny==3.15.0"}

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


@pytest.fixture
def job() -> Command:
    loaded = load_job(JOB)
    assert isinstance(loaded, Command)
    return loaded


def test_azure_ml_accepts_the_job(job: Command) -> None:
    """Microsoft's client loads the job: two nodes with one process each, and a limit on its time."""
    assert (job.resources.instance_count, job.distribution.type, job.limits.timeout) == (2, "pytorch", 3600)
    assert job.distribution.process_count_per_instance == 1
    assert job.environment == "trainyard@latest"
    assert {name: (out.type, out.mode) for name, out in job.outputs.items()} == {
        "models": ("uri_folder", "rw_mount"),
        "metrics": ("uri_folder", "rw_mount"),
        "checkpoints": ("uri_folder", "rw_mount"),
    }


def test_the_code_is_the_trainers_folder(job: Command) -> None:
    """The snapshot is trainers/ itself, so that the command's script and what it imports are in it."""
    assert (JOB.parent / str(job.code)).resolve() == TRAINERS
    assert (TRAINERS / shlex.split(job.command)[1]).is_file()


def test_the_trainer_takes_what_the_job_passes() -> None:
    """Every placeholder of the command is an input or output of the job, and every flag one of the trainer's."""
    job = yaml.safe_load(JOB.read_text())
    given = {f"inputs.{name}": value for name, value in job["inputs"].items()}
    given |= {"inputs.data": "/in/data"} | {f"outputs.{name}": f"/out/{name}" for name in job["outputs"]}
    words = re.sub(r"\$\{\{(.+?)\}\}", lambda found: str(given.pop(found[1])), job["command"]).split()
    args = train.arguments().parse_args(words[2:])
    defaults = train.arguments().parse_args(["--data", "x"])
    assert not given  # none is left unused
    assert (args.epochs, args.batch_size, args.lr) == (defaults.epochs, defaults.batch_size, defaults.lr)
    assert [path.as_posix() for path in (args.data, args.model_dir, args.metrics_dir, args.checkpoint_dir)] == [
        "/in/data",
        "/out/models",
        "/out/metrics",
        "/out/checkpoints",
    ]


def test_the_environment_is_what_the_requirements_say() -> None:
    """conda.yaml pins what requirements.txt pins for its Python, and MLflow; Azure ML's client loads it."""
    environment = load_environment(TRAINERS / "environment.yaml")
    assert environment.name == "trainyard"
    python, _, pip = environment.conda_file["dependencies"]
    marks = {"python_full_version": python.removeprefix("python=") + ".0"}
    lines = [line for line in (TRAINERS / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {str(r.name) + str(r.specifier) for r in map(Requirement, lines) if not r.marker or r.marker.evaluate(marks)}
    assert set(pip["pip"]) == pins | AZURE_ONLY
    assert environment.conda_file == yaml.safe_load((TRAINERS / "conda.yaml").read_text())
