"""Jobs that are refused before submission: local files, faults against the schema, and unknown references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.adapters.azureml import sdk_job
from shared.jobs.batchai.job import Beside
from shared.jobs.batchai.job import read_job as read_batchai
from shared.jobs.parameters import wrong_parameters
from shared.jobs.readers.expressions import read_command
from shared.kernel.errors import BadInput
from tests.contract.sides import RealSide, job_of, with_keys
from tests.contract.wire import LocalAzureML

# azure-ai-ml on its own marshmallow and on Python's
pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")


def test_very_many_unknown_keys_are_refused_before_each_is_explained() -> None:
    """20,000 unknown keys are one problem, in a job, in parameters and in a Batch AI document."""
    many = {f"k{number}": "1" for number in range(20_000)}
    job = {**job_of("crowded", "true"), "resources": {"instance_count": 1, **many}}
    [problem] = sdk_job.problems(job)
    assert (problem.path, "has 20,001 keys" in problem.message) == ("resources", True)
    [problem] = wrong_parameters({}, many, {})
    assert (problem.path, "has 20,000 names" in problem.message) == ("inputs", True)
    document = {"properties": {"nodeCount": 1, "customToolkitSettings": {"commandLine": "true"}, **many}}
    assert [p.path for p in read_batchai(document, Beside()).report.problems] == ["properties"]


def test_an_unknown_key_of_an_input_is_the_only_finding() -> None:
    """That an input with a wrong key is no number and no text either is not said."""
    job = {**job_of("odd", "true"), "inputs": {"a": {"file": "https://example.com/a.csv"}}}
    assert [problem.path for problem in sdk_job.problems(job)] == ["inputs.a.file"]


LOCAL_FILES: list[tuple[str, dict[str, Any]]] = [
    ("code", {"code": "."}),
    ("code", {"code": "/etc"}),
    ("code", {"code": "git+https://example.com/x"}),
    ("inputs.data.path", {"inputs": {"data": {"type": "uri_file", "path": "/etc/passwd"}}}),
    ("inputs.data.path", {"inputs": {"data": {"type": "uri_file", "path": "file:///etc/passwd"}}}),
    ("inputs.data.path", {"inputs": {"data": {"path": "./data"}}}),
    ("environment", {"environment": "file:/etc/passwd"}),
    ("environment.conda_file", {"environment": {"image": "x", "conda_file": "/etc/passwd"}}),
    ("environment.build", {"environment": {"build": {"path": "/etc"}}}),
    ("services.a.b", {"services": {"a": {"b": "FILE:/etc/passwd"}}}),
]


@pytest.mark.parametrize(("path", "change"), LOCAL_FILES)
def test_no_file_of_this_machine_gets_into_a_job(
    azureml: LocalAzureML, real: RealSide, path: str, change: dict[str, Any], unique: Callable[[], str]
) -> None:
    """A job that names a local file is refused before anything is read or sent."""
    before = len(azureml.requests())
    with pytest.raises(BadInput, match=path):
        real.jobs.submit(with_keys(real.job(unique()), **change))
    assert len(azureml.requests()) == before
    if path != "code":  # a job that isn't resolved yet may name a folder
        assert [problem.path for problem in real.jobs.problems(with_keys(real.job("x"), **change))] == [path]


ODD_JOBS: list[tuple[str, dict[str, Any]]] = [
    ("colour", {"colour": "blue"}),
    ("distribution.type", {"distribution": {"type": "nope"}}),
    ("outputs.m.type", {"outputs": {"m": {"type": "nope"}}}),
    ("", {"type": "nope"}),
    ("", {"services": {"a": 1}}),
]


@pytest.mark.parametrize(("path", "change"), ODD_JOBS)
def test_the_schema_finds_faults_without_the_service(
    azureml: LocalAzureML, real: RealSide, path: str, change: dict[str, Any]
) -> None:
    """For every fault against the schema, `problems` returns its path and a message, without a request."""
    before = len(azureml.requests())
    problems = real.jobs.problems(with_keys(real.job("x"), **change))
    assert path in [problem.path for problem in problems]
    assert all(problem.message for problem in problems)
    assert len(azureml.requests()) == before


def test_a_reference_to_no_input_is_refused_in_words(real: RealSide, unique: Callable[[], str]) -> None:
    """A fault that only the SDK finds at submission raises BadInput with the SDK's sentence, without its colours."""
    name = unique()
    with pytest.raises(BadInput, match=r"^Azure ML refused the job: Inputs to job does not contain 'nope'"):
        real.jobs.submit(replace(real.job(name), command=read_command("python ${{inputs.nope}}")))
