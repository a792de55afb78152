"""How benchmarks/published.py finds and counts job files. The gate does not run the jobs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.published import Outcome, figures, is_job, job_files, one_sentence, whose_limit

SCHEMA = "$schema: https://azuremlschemas.azureedge.net/latest/"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{SCHEMA}commandJob.schema.json\ncommand: x", True),
        (f"{SCHEMA}pipelineJob.schema.json\nbad: [", True),
        (f"{SCHEMA}commandComponent.schema.json\ntype: command\ncommand: x\nenvironment: e", False),
        ("type: pipeline\njobs: {}", True),
        ("command: x\nenvironment: e", True),
        ("name: conda\ndependencies: [python]", False),
        ("bad: [", False),
        ("- a list", False),
    ],
)
def test_a_job_is_told_by_its_schema_or_type(text: str, expected: bool) -> None:
    """Components and environments are no jobs; a job with invalid YAML still counts."""
    assert is_job(text) == expected


def test_every_folder_is_searched(tmp_path: Path) -> None:
    """Files with both extensions are found in all folders."""
    (tmp_path / "a").mkdir()
    for name in ("a/x.yaml", "b.yml", "b.txt"):
        (tmp_path / name).write_text("command: x\nenvironment: e")
    assert [file.name for file in job_files(tmp_path)] == ["x.yaml", "b.yml"]


@pytest.mark.parametrize(
    ("why", "whose"),
    [
        ("No version 1 of 'net' among the workspace's models.", "the workspace"),
        ("No version latest of 'fit' among components of registry 'azureml'.", "the workspace"),
        ("component azureml://registries/a/components/fit is not in the registry.", "the workspace"),
        ("Input 'rows': there is nothing at azureml://datastores/d/paths/a.csv; is it a folder?", "the workspace"),
        ("a.yml is not a valid job file: line 3", "the file"),
        ("component: /a/b.yml can't be read: No such file or directory.", "the file"),
        ("'r-base' is R, which can't be installed on this machine.", "this machine"),
        ("type is 'automl'; Trainyard runs command jobs, sweeps and pipelines.", "Trainyard"),
    ],
)
def test_a_refusal_says_whose_limit_it_is(why: str, whose: str) -> None:
    """A refusal that no other limit explains is Trainyard's own."""
    assert whose_limit(why) == whose


def test_several_reasons_are_one_sentence() -> None:
    """Steps that lack the same thing are named together; a reason of the whole job stays as it is."""
    reasons = ["Step 'a': no rows.", "Step 'b': no rows.", "Step 'c': no net.", "No cluster."]
    assert one_sentence(["Is it a folder?"]) == "Is it a folder?"
    assert one_sentence(reasons) == "no rows (steps a, b); no net (steps c); No cluster."


def test_the_figures_count_what_started() -> None:
    """A run that ended without a job is a broken promise; each refusal counts once, under the owner of its limit."""
    outcomes = [
        Outcome("a", "completed"),
        Outcome("b", "failed", "no", "Trainyard: it never began"),
        Outcome("c", "refused", "no", "the file"),
        Outcome("d", "could start"),
    ]
    expected = {"files": 4, "could_start": 3, "completed": 1, "broken_promises": 1, "refused": {"the file": 1}}
    assert figures(outcomes) == expected
