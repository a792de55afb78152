"""Published pipelines with parallel steps: MLClient loads the YAML, and the service runs the mini-batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from emulator_tests.azureml.clouds import Cloud

pytestmark = pytest.mark.filterwarnings("ignore")

# The two forms in Azure's own examples: the task within the step, or in a separate component.
STEP = """
    type: parallel
    compute: azureml:cpu-cluster
    inputs:
      job_data_path: {type: uri_folder, path: ./images, mode: ro_mount}
      score_model: {type: uri_folder, path: ./model, mode: download}
    outputs:
      job_output_file: {type: uri_file, mode: rw_mount}
"""
RUNS = """
    mini_batch_size: "5"
    resources: {instance_count: 2}
    mini_batch_error_threshold: LIMIT
    logging_level: "DEBUG"
    input_data: ${{inputs.job_data_path}}
    max_concurrency_per_instance: 2
    retry_settings: {max_retries: 1, timeout: 60}
    environment_variables: {"EXAMPLE": "3a_yaml"}
    task:
      type: run_function
      code: ./script
      entry_script: identify.py
      environment: azureml:AzureML-local@latest
      program_arguments: >-
        --model ${{inputs.score_model}}
        --allowed_failed_percent 60
      append_row_to: ${{outputs.job_output_file}}
"""
PIPELINE = f"type: pipeline\njobs:\n  predict:{STEP}"
COMPONENT = """
$schema: https://azuremlschemas.azureedge.net/latest/parallelComponent.schema.json
type: parallel
name: identify_in_batches
version: "1"
inputs:
  job_data_path: {type: uri_folder, mode: ro_mount}
  score_model: {type: uri_folder, mode: download}
outputs:
  job_output_file: {type: uri_file, mode: rw_mount}
"""
SCRIPT = """
import argparse, os, pathlib

def init():
    global names
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", type=str)
    model = parser.parse_known_args()[0].model
    names = (pathlib.Path(model) / "names.txt").read_text().split()
    assert os.environ["EXAMPLE"] == "3a_yaml"

def run(mini_batch):
    texts = [(os.path.basename(image), pathlib.Path(image).read_text()) for image in mini_batch]
    return [f"{name}: {names[int(text)]}" for name, text in texts]
"""
Submit = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("script", "images", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "script" / "identify.py").write_text(SCRIPT)
    (tmp_path / "model" / "names.txt").write_text("zero one two three")
    for number in range(12):
        (tmp_path / "images" / f"{number:02}.png").write_text(str(number % 3))
    return tmp_path


@pytest.fixture
def submit(ml: Any, folder: Path) -> Submit:
    def load_and_submit(text: str) -> Any:
        from azure.ai.ml import load_job

        (folder / "pipeline.yml").write_text(text)
        return ml.jobs.create_or_update(load_job(folder / "pipeline.yml"))

    return load_and_submit


def rows(ml: Any, folder: Path, pipeline: str) -> list[str]:
    [child] = ml.jobs.list(parent_job_name=pipeline)
    ml.jobs.download(child.name, output_name="job_output_file", download_path=folder / "got")
    [file] = [each for each in (folder / "got").rglob("*") if each.is_file()]
    return sorted(file.read_text().splitlines())


@pytest.mark.timeout(120)
def test_an_inline_parallel_step_scores_every_file(ml: Any, cloud: Cloud, submit: Submit, folder: Path) -> None:
    """Four processes on two nodes score three mini-batches, with the model in the program's arguments."""
    job = submit(PIPELINE + RUNS.replace("LIMIT", "5"))
    assert cloud.wait(job.name, timeout=90)["status"] == "Completed", cloud.details(job.name)["error"]
    wanted = [f"{number:02}.png: {['zero', 'one', 'two'][number % 3]}" for number in range(12)]
    assert rows(ml, folder, job.name) == wanted
    [child] = ml.jobs.list(parent_job_name=job.name)
    command = cloud.arm("GET", f"jobs/{child.name}")["properties"]["command"]
    assert command.startswith("python driver/amlbi_main.py --input_data ${{inputs.job_data_path}}")
    log = cloud.log(child.name, "user_logs/std_log.txt")
    assert "3 mini-batches for 3 processes on 2 nodes" in log


@pytest.mark.timeout(120)
def test_a_component_of_a_file_is_a_parallel_step(ml: Any, cloud: Cloud, submit: Submit, folder: Path) -> None:
    """The step's settings override the component's, here the size of a mini-batch."""
    variables = 'environment_variables: {"EXAMPLE": "3a_yaml"}'
    own = RUNS.replace("LIMIT", "5").replace(variables, "").replace("\n    ", "\n")
    (folder / "component.yml").write_text(COMPONENT + own)
    job = submit(f'{PIPELINE}    component: ./component.yml\n    mini_batch_size: "1"\n    {variables}\n')
    assert cloud.wait(job.name, timeout=90)["status"] == "Completed", cloud.details(job.name)["error"]
    assert len(rows(ml, folder, job.name)) == 12
    [child] = ml.jobs.list(parent_job_name=job.name)
    assert "12 mini-batches for 4 processes on 2 nodes" in cloud.log(child.name, "user_logs/std_log.txt")


@pytest.mark.timeout(120)
def test_more_failed_mini_batches_than_allowed_fail_the_step(
    ml: Any, cloud: Cloud, submit: Submit, folder: Path
) -> None:
    """After the retries, the pipeline's error has the step's name, the limit and the first failure."""
    (folder / "images" / "07.png").write_text("9")
    job = submit(PIPELINE + RUNS.replace("LIMIT", "0"))
    assert cloud.wait(job.name, timeout=90)["status"] == "Failed"
    error = cloud.details(job.name)["error"]["error"]["message"]
    assert "Step 'predict'" in error
    assert (
        "1 mini-batches failed, more than mini_batch_error_threshold 0. The first was mini-batch 1: IndexError" in error
    )
    [child] = ml.jobs.list(parent_job_name=job.name)
    assert "mini-batch 1, attempt 2: IndexError" in cloud.log(child.name, "user_logs/std_log.txt")


@pytest.mark.parametrize(
    ("said", "instead", "reason"),
    [
        ('mini_batch_size: "5"', "description: as usual", None),
        ("input_data: ${{inputs.job_data_path}}", "input_data: ${{inputs.nothing}}", "input_data names 'nothing'"),
        ("instance_count: 2", "instance_count: 33", "at most 64 for a parallel job"),
        ("type: run_function", "type: model", "task.type 'model'; choose run_function"),
    ],
)
def test_a_parallel_step_that_cannot_run_is_refused(
    submit: Submit, said: str, instead: str, reason: str | None
) -> None:
    """An impossible step is refused before anything starts. A step without a mini-batch size gets the default."""
    text = (PIPELINE + RUNS.replace("LIMIT", "5")).replace(said, instead)
    if reason is None:
        assert submit(text).name
        return
    with pytest.raises(HttpResponseError, match=reason):
        submit(text)
