"""How benchmarks/published.py finds and counts job files. The gate does not run the jobs themselves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks._published_assets import Assets, declared, named
from benchmarks._published_outcome import Outcome, figures, one_sentence, unsuccessful, whose_limit
from benchmarks._published_web import CONTAINER, HOST, copies_in, web_folder
from benchmarks.published import Attempt, is_job, job_files, tried

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
        ("compute must be text, it is a dict.", "the file"),
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


class Busy:
    """An API whose cluster is in use: a dry run says that the job would wait."""

    def post(self, *_: str, body: Any, dry_run: bool = False) -> dict[str, Any]:
        waits = {"code": "cluster_busy", "message": "cpu-cluster has 0 free nodes of 4; the job would wait."}
        other = [{"code": "no", "message": "No rows."}] if body["job"].get("inputs") else []
        return {"reasons": [waits, *other]}


def test_a_job_that_would_wait_could_start(tmp_path: Path) -> None:
    """Nodes that the job of another file uses are no refusal."""
    for name, inputs in (("a.yml", ""), ("b.yml", "inputs: {n: 1}")):
        (tmp_path / name).write_text(f"command: x\nenvironment: azureml:e:1\n{inputs}")
    attempt = Attempt(Busy(), tmp_path, None, False)  # type: ignore[arg-type]
    assert [tried(attempt, tmp_path / name).row for name in ("a.yml", "b.yml")] == [
        "could start a.yml",
        "refused     b.yml [Trainyard] No rows.",
    ]


def test_the_figures_count_what_started() -> None:
    """A run that ended without a job is a broken promise; each refusal counts once, under the owner of its limit."""
    outcomes = [
        Outcome("a", "completed"),
        Outcome("b", "failed", "no", "Trainyard: it never began"),
        Outcome("c", "refused", "no", "the file"),
        Outcome("d", "could start"),
    ]
    counts = {"files": 4, "could_start": 3, "completed": 1, "with_copies": 0, "broken_promises": 1}
    assert figures(outcomes) == {**counts, "refused": {"the file": 1}, "failed": {"Trainyard: it never began": 1}}


@pytest.mark.parametrize(
    ("found", "whose", "why"),
    [
        ({"job": "", "reason": "No such cluster."}, "Trainyard: it never began", "No such cluster."),
        (
            {"reason": "Input 'a': there is nothing at x"},
            "Trainyard: it never began",
            "Input 'a': there is nothing at x",
        ),
        ({"diagnosis": {"cause": "network"}}, "this machine", "It failed: urlopen error"),
        ({"diagnosis": {"cause": "user_exception"}}, "its code", "It failed: urlopen error"),
        ({"diagnosis": {"cause": "not_known"}}, "", "Execution failed."),
    ],
)
def test_a_failure_says_its_cause_and_whose_limit_it_is(found: dict[str, Any], whose: str, why: str) -> None:
    """The diagnosis of a failed run is its sentence. A job that never began is a broken promise."""
    run = {"state": "failed", "job": "j", "reason": "Execution failed.", **found}
    if "diagnosis" in run:
        run["diagnosis"] |= {"summary": "It failed.", "evidence": [{"text": "urlopen\n error"}]}
    outcome = unsuccessful("f", "r", run)
    assert (outcome.whose, outcome.why) == (whose, why)


def _checkout(folder: Path) -> Path:
    """Write a job with a registered component and data, and the files that declare these and others of the same name.
    Return the job's file."""
    files = {
        "job/job.yml": f"{SCHEMA}pipelineJob.schema.json\njobs: {{a: {{component: 'azureml:fit@latest', compute: "
        "'azureml:fit'}, b: {component: ./own.yml}}\n",
        "job/own.yml": f"{SCHEMA}commandComponent.schema.json\nname: own\nenvironment: azureml:tools:3\n",
        "job/parts/fit.yml": f"{SCHEMA}commandComponent.schema.json\nname: fit\nenvironment: azureml:tools:3\n",
        "else/fit.yml": f"{SCHEMA}commandComponent.schema.json\nname: fit\n",
        "else/env.yml": f"{SCHEMA}environment.schema.json\nname: tools\nversion: 3\n",
        "else/rows.yml": "$schema: https://azuremlsdk2.blob.core.windows.net/latest/asset.schema.json\nname: rows\n",
        "else/bad.yml": "name: [",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "job" / "job.yml"


def test_the_files_of_a_checkout_say_which_assets_they_declare(tmp_path: Path) -> None:
    """The kind comes from the schema. A job names assets itself and through its components' files; a cluster is no
    asset."""
    job = _checkout(tmp_path)
    assert [(each.kind, each.name) for each in declared(tmp_path)] == [
        ("environment", "tools"),
        ("component", "fit"),
        ("data", "rows"),
        ("component", "own"),
        ("component", "fit"),
    ]
    assert named(job) == ({"fit", "tools"}, {job, tmp_path / "job" / "own.yml"})


def test_the_nearest_file_of_a_name_is_registered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment comes before the component that names it. A failure is told, and not tried again."""
    job, sent = _checkout(tmp_path), []

    def create(client: object, asset: SimpleNamespace) -> None:
        sent.append(asset.file.relative_to(tmp_path).as_posix())
        if asset.kind == "component":
            raise ValueError("it has\nno command")

    monkeypatch.setattr("benchmarks._published_assets._create", create)
    assets = Assets(None, list(declared(tmp_path)))
    assert assets.register(job) == ["environment tools of env.yml", "component fit of fit.yml: it has no command"]
    assets.register(job)
    assert sent == ["else/env.yml", "job/parts/fit.yml"]


def test_copies_are_the_tables_that_the_examples_read(tmp_path: Path) -> None:
    """Iris has 150 rows and the diabetes table 442, under the columns that the examples' scripts drop and read."""
    place = web_folder(tmp_path) / HOST / CONTAINER
    iris, diabetes = ((place / name).read_text().splitlines() for name in ("iris.csv", "diabetes.csv"))
    assert (len(iris), iris[0].split(",")[-1], iris[1]) == (151, "species", "5.1,3.5,1.4,0.2,setosa")
    assert (len(diabetes), diabetes[0].split(",")[-1]) == (443, "target")


@pytest.mark.parametrize(
    ("address", "copies"),
    [
        (f"https://{HOST}/datasets/iris.csv", ("iris.csv",)),
        (f"wasbs://datasets@{HOST}/diabetes.csv", ("diabetes.csv",)),
        (f"https://{HOST}/datasets/", ("iris.csv",)),
        (f"wasbs://datasets@{HOST}/nyctaxi/", ()),
        ("https://example.com/datasets/iris.csv", ()),
    ],
)
def test_a_row_says_which_copies_a_file_reads(tmp_path: Path, address: str, copies: tuple[str, ...]) -> None:
    (tmp_path / "job.yml").write_text(f"inputs: {{a: {{path: '{address}'}}}}")
    assert copies_in([tmp_path / "job.yml"]) == copies
