"""Every trainer's job.yaml, as read by Azure ML's own client and by the trainer's own parser; and their environment.

cifar_elastic starts torchrun itself, and has its own tests. Transformers and azure-ai-ml take seconds to import, so the
tests import them where needed: every worker collects this file, and only one runs it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from packaging.requirements import Requirement

from tests.trainers.launch import TRAINERS

TRAINED = ("mnist", "transfer", "detection", "bert")
OUTPUTS = {"models", "metrics", "checkpoints"}
# How metrics reach Azure ML. The local cloud's trainers do without.
AZURE_ONLY = {"azureml-mlflow==1.62.0.post6", "mlflow-skinny==3.15.0"}

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


@cache
def parser_of(trainer: str) -> argparse.ArgumentParser:
    train = import_module(f"{trainer}.train")
    if trainer in ("transfer", "detection"):
        options: argparse.ArgumentParser = import_module(f"{trainer}.options").arguments(train.__doc__ or "")
        return options
    arguments: argparse.ArgumentParser = train.arguments()
    return arguments


@pytest.mark.parametrize("trainer", TRAINED)
def test_azure_ml_accepts_the_job(trainer: str) -> None:
    """Microsoft's client loads the job: two nodes with one process each, a limit on its time, three mounted outputs."""
    from azure.ai.ml import load_job
    from azure.ai.ml.entities import Command

    job = load_job(TRAINERS / trainer / "job.yaml")
    assert isinstance(job, Command)
    assert (job.resources.instance_count, job.distribution.type, job.environment) == (2, "pytorch", "trainyard@latest")
    assert job.distribution.process_count_per_instance == 1
    assert job.limits.timeout >= 3600
    found = {name: (output.type, output.mode) for name, output in job.outputs.items()}
    assert found == dict.fromkeys(OUTPUTS, ("uri_folder", "rw_mount"))


@pytest.mark.parametrize("trainer", TRAINED)
def test_the_code_is_the_trainers_folder(trainer: str) -> None:
    """The snapshot is trainers/ itself, so it contains the command's script and its imports."""
    job = yaml.safe_load((TRAINERS / trainer / "job.yaml").read_text())
    assert (TRAINERS / trainer / job["code"]).resolve() == TRAINERS
    assert shlex.split(job["command"])[:2] == ["python", f"{trainer}/train.py"]
    assert (TRAINERS / trainer / "train.py").is_file()


@pytest.mark.parametrize("trainer", TRAINED)
def test_the_trainer_takes_what_the_job_passes(trainer: str) -> None:
    """Every placeholder of the command is an input or output of the job; the passed values are the trainer's
    defaults."""
    job = yaml.safe_load((TRAINERS / trainer / "job.yaml").read_text())
    given = {f"inputs.{name}": value for name, value in job["inputs"].items()}
    given |= {"inputs.data": "/in/data"} | {f"outputs.{name}": f"/out/{name}" for name in job["outputs"]}
    words = re.sub(r"\$\{\{(.+?)\}\}", lambda found: _text(given.pop(found[1])), job["command"]).split()[2:]
    parser = parser_of(trainer)
    args = vars(parser.parse_args(words))
    defaults = vars(parser.parse_args([words[0], "/in/data"]))
    assert not given  # none is left unused
    passed = {name: value for name, value in args.items() if value != defaults[name]}
    assert {name: path.as_posix() for name, path in passed.items()} == {
        "model_dir": "/out/models",
        "metrics_dir": "/out/metrics",
        "checkpoint_dir": "/out/checkpoints",
    }


def _text(value: Any) -> str:
    """Return a value as Azure ML puts it into a command."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("file", sorted(TRAINERS.glob("*/parameters.json")), ids=lambda file: file.parent.name)
def test_the_parameters_are_the_jobs_inputs(file: Path) -> None:
    """parameters.json is a JSON Schema; its parameters and defaults are the literal inputs of the job beside it."""
    schema = json.loads(file.read_text())
    Draft202012Validator.check_schema(schema)
    inputs = yaml.safe_load(file.with_name("job.yaml").read_text())["inputs"]
    literals = {name: value for name, value in inputs.items() if not isinstance(value, dict)}
    assert literals == {name: each["default"] for name, each in schema["properties"].items()}
    Draft202012Validator(schema).validate(literals)
    assert all(each["description"] for each in schema["properties"].values())


def test_the_choices_are_what_the_libraries_have() -> None:
    """The networks that a parameter allows are those that the trainer can build."""
    assert _choices("transfer", "backbone") == import_module("transfer.backbone").BACKBONES
    assert _choices("detection", "model") == list(import_module("detection.model").NAMES)
    assert _choices("bert", "model") == list(import_module("bert.model").SIZES)


def _choices(trainer: str, name: str) -> list[str]:
    found: list[str] = json.loads((TRAINERS / trainer / "parameters.json").read_text())["properties"][name]["enum"]
    return found


@pytest.mark.parametrize("trainer", TRAINED)
def test_help_shows_the_launch_commands(trainer: str) -> None:
    """--help gives a command line for each way to start the trainer."""
    text = parser_of(trainer).format_help()
    for words in (f"$ python {trainer}/train.py", "$ torchrun", "az ml job create"):
        assert words in text


@pytest.mark.parametrize(
    ("file", "build"), [("environment.yaml", "cpu"), ("environment-gpu.yaml", "cu126")], ids=["processors", "GPUs"]
)
def test_the_environments_are_what_the_requirements_say(file: str, build: str) -> None:
    """Each conda file has the pins of requirements.txt for its Python, and MLflow; Azure ML's client loads it.

    PyTorch comes in a build for processors, and in a build for the CUDA version that works with Azure ML's driver.
    """
    from azure.ai.ml import load_environment

    environment = load_environment(TRAINERS / file)
    assert environment.name == ("trainyard" if build == "cpu" else "trainyard-gpu")
    python, _, pip = environment.conda_file["dependencies"]
    marks = {"python_full_version": python.removeprefix("python=") + ".0"}
    lines = [line for line in (TRAINERS / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {str(r.name) + str(r.specifier) for r in map(Requirement, lines) if not r.marker or r.marker.evaluate(marks)}
    index, *packages = pip["pip"]
    assert index == f"--extra-index-url https://download.pytorch.org/whl/{build}"
    assert {each.removesuffix(f"+{build}") for each in packages} == pins | AZURE_ONLY
    assert {each.partition("==")[0] for each in packages if each.endswith(f"+{build}")} == {"torch", "torchvision"}
