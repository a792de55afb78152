"""bert's job.yaml, as Azure ML's own client and the trainer's own parser read it."""

from __future__ import annotations

import re
import shlex
import warnings

import pytest
import yaml
from bert import model, train

from tests.trainers.launch import TRAINERS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # azure-ai-ml on its own marshmallow
    from azure.ai.ml import load_job

JOB = TRAINERS / "bert" / "job.yaml"

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


def test_azure_ml_accepts_the_job() -> None:
    """Microsoft's client loads the job: two nodes, three outputs, and the trainers' folder as its code."""
    job = load_job(JOB)
    assert (job.resources.instance_count, job.distribution.type) == (2, "pytorch")
    assert set(job.outputs) == {"models", "metrics", "checkpoints"}
    assert (JOB.parent / str(job.code)).resolve() == TRAINERS
    assert (TRAINERS / shlex.split(job.command)[1]).is_file()


def test_the_trainer_takes_what_the_job_passes() -> None:
    """Every placeholder of the command is an input or output of the job, and what it passes are the defaults."""
    job = yaml.safe_load(JOB.read_text())
    given = {f"inputs.{name}": value for name, value in job["inputs"].items()}
    given |= {"inputs.data": "/in/data"} | {f"outputs.{name}": f"/out/{name}" for name in job["outputs"]}
    words = re.sub(r"\$\{\{(.+?)\}\}", lambda found: str(given.pop(found[1])), job["command"]).split()
    args = vars(train.arguments().parse_args(words[2:]))
    defaults = vars(train.arguments().parse_args(["--data", "/in/data"])) | {"lr": model.SIZES["tiny"].lr}
    assert not given  # none is left unused
    paths = {f"{kind}_dir": args[f"{kind}_dir"].as_posix() for kind in ("model", "metrics", "checkpoint")}
    assert paths == {"model_dir": "/out/models", "metrics_dir": "/out/metrics", "checkpoint_dir": "/out/checkpoints"}
    assert args | dict.fromkeys(paths) == defaults
