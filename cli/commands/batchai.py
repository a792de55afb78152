"""The commands import and run, for Batch AI's documents."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ..api import fetch as fetching
from ..api.client import retry_unreachable
from ..errors import CliError
from ..files import batchai_documents
from ..files.batchai_documents import Beside, Folder
from ..files.job_form import ASSET_FORM
from ..results import prints
from ..session import Session, command, user_path
from . import options
from .follow import end_with, follow
from .runs import PATIENCE_SECONDS, print_new_run
from .values import seconds

Document = Annotated[Path, Argument(metavar="FILE", help="A job.json, cluster.json or project.json of Batch AI.")]
Translate = Annotated[bool, Option("--dry-run", help="Only print the equivalent as YAML, and the report.")]
Strict = Annotated[bool, Option("--strict", help="Fail if a field has no full equivalent.")]
ClusterFile = Annotated[
    Path | None, Option("--cluster-file", metavar="FILE", help="The cluster.json of a job, for its mounts.")
]
ProjectFile = Annotated[Path | None, Option("--project-file", metavar="FILE", help="The project.json of a job.")]
Mounted = Annotated[
    list[str] | None,
    Option(
        "--mount", metavar="NAME=PATH", help="Where the files of a mount are, written like --data. Repeat it for more."
    ),
]
Shares = Annotated[
    list[str] | None, Option("--afs-name", metavar="NAME[=PATH]", help="Also mount a file share, at PATH or at afs.")
]
Containers = Annotated[
    list[str] | None,
    Option("--bfs-name", metavar="NAME[=PATH]", help="Also mount a blob container, at PATH or at bfs."),
]
AccountName = Annotated[
    str,
    Option(
        "--storage-account-name",
        metavar="NAME",
        help="Fills <AZURE_BATCHAI_STORAGE_ACCOUNT>. Default: the variable AZURE_BATCHAI_STORAGE_ACCOUNT.",
    ),
]
Environment = Annotated[
    str,
    Option(metavar="NAME", help=f"Run in this environment, {ASSET_FORM} or an image, not in the document's."),
]
ProjectFolder = Annotated[
    Path, Argument(metavar="FOLDER", help="A folder with project.json, job.json and the script. Default: this one.")
]
Warm = Annotated[str, Option("--keep-warm", metavar="TIME", help="With persistCluster, how long the nodes stay up.")]

# the field of the answer, by the document's kind
DOCUMENTS = {"job": "job", "cluster": "compute", "project": "project"}
MODELS = re.compile(r"models/|named-outputs/.*")  # in an archive: files that a script wrote to its usual places


@command
@prints("POST imports", "POST runs", "GET runs/{run}")
def _import(
    session: Session,
    document: Document,
    cluster: options.Cluster = "",
    experiment: options.Experiment = "",
    cluster_file: ClusterFile = None,
    project_file: ProjectFile = None,
    mount: Mounted = None,
    afs_name: Shares = None,
    bfs_name: Containers = None,
    storage_account_name: AccountName = "",
    environment: Environment = "",
    key: options.Key = "",
    dry_run: Translate = False,
    strict: Strict = False,
    following: options.Follow = False,
) -> None:
    """Run a Batch AI job, or show the Azure ML equivalent of a Batch AI document.

    A job.json is submitted as an equivalent Azure ML job. Fields without an equivalent are reported one by one.
    --dry-run makes nothing, and prints YAML for `az ml job create`, or, for a cluster.json, for `az ml compute
    create`.

    Example: trainyard import job.json --cluster cpu-cluster --dry-run
    """
    content = batchai_documents.mounted(
        batchai_documents.read(user_path(document)), afs_name or [], bfs_name or [], storage_account_name
    )
    files = [user_path(file) if file else None for file in (cluster_file, project_file)]
    beside = Beside(files[0], files[1], _mounts(mount), storage_account_name, environment)
    request = {"document": content, "cluster": cluster, "experiment": experiment, "batchai": beside.body()}
    answer = session.api.post("imports", body=_filled(request))
    if scripts := batchai_documents.scripts_beside(answer.get("scripts", []), user_path(document).parent):
        for name in scripts:
            session.remark(f"{name} is sent with the run.", "dim")
        request["batchai"] = replace(beside, files=scripts).body()
        answer = session.api.post("imports", body=_filled(request))
    lossy = [row for row in answer["report"] if row["lossy"]]
    if answer["kind"] != "job" or dry_run or (strict and lossy):
        _print_import(session, answer)
        if strict and lossy:
            raise CliError(f"--strict: {len(lossy)} fields have no full equivalent.", "lossy")
        return
    session.remark(batchai_documents.as_text(answer["report"]))
    body = {"job": content, "cluster": cluster, "experiment": experiment, "batchai": request["batchai"]}
    print_new_run(session, _submit(session, _filled(body), key), following)


@command
@prints("GET runs/{run}")
def run(
    session: Session,
    folder: ProjectFolder = Path(),
    warm: Warm = "1h",
    mount: Mounted = None,
    cluster: options.Cluster = "",
    environment: Environment = "",
) -> None:
    """Run the project in a folder: submit, show the log, fetch models and logs, scale the cluster to zero.

    The folder holds a project.json and a job.json of the deep-learning job service, and the script. Models are
    written to ./models/RUN, logs to ./logs/RUN. With persistCluster, the nodes stay up for the next run, until
    `pause`.

    Example: trainyard run ./ants-and-bees
    """
    project = Folder.read(user_path(folder))
    facts = session.api.post("imports", body={"document": project.project})["project"]
    files = {facts["script"]: project.script} if facts["script"] else {}
    beside = Beside(mounts=_mounts(mount), environment=environment, files=files).body()
    body = {
        "job": project.job,
        "cluster": cluster,
        "batchai": {**beside, "project": project.project},
        "keep_warm_seconds": seconds(warm) if facts["persist"] else None,
    }
    name = _submit(session, _filled(body), "")["run"]
    ended = follow(session, name)
    _bring(session, name, project.path)
    if not facts["persist"]:
        _let_go(session, ended["cluster"])
    end_with(ended)


def _print_import(session: Session, answer: dict[str, Any]) -> None:
    shown = batchai_documents.hidden(answer)
    session.print_result(shown, batchai_documents.as_yaml(shown.get(DOCUMENTS[answer["kind"]]) or {}))
    if shown != answer:
        session.remark("Secrets in addresses are shown as ...; the job itself gets the real values.", "yellow")
    session.remark(batchai_documents.as_text(answer["report"]))
    for reason in answer.get("reasons", []):
        session.remark(f"not now: {reason['message']}", "yellow")
    if answer["kind"] == "cluster":
        session.remark("Create it with `az ml compute create --file`, or declare it in infra/ to keep it.", "dim")
    elif answer["kind"] == "project":
        session.remark(f"Run it with `{session.program} run`, in its folder.", "dim")


def _submit(session: Session, body: dict[str, Any], key: str) -> dict[str, Any]:
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}  # a repeat is safe when the first answer was lost
    answer: dict[str, Any] = retry_unreachable(
        lambda: session.api.post("runs", body=body, headers=headers),
        PATIENCE_SECONDS,
        session.outage,
    )
    return answer


def _bring(session: Session, run: str, folder: Path) -> None:
    """Download this run's models and logs, and no other run's, each into a folder with the run's name."""
    everything = [fetching.File.of(row) for row in session.api.get("runs", run, "artifacts")["files"]]
    for part, pattern in (("models", MODELS), ("logs", re.compile("logs/"))):
        files = [file for file in everything if pattern.match(file.name)]
        place = folder / part / run
        fetching.fetch(session.api, run, files, place, lambda _: None)
        session.remark(f"{len(files)} files in {place}")


def _let_go(session: Session, cluster: str) -> None:
    try:
        answer = session.api.post("clusters", cluster, "scale-to-zero", force=True)
    except CliError as exc:  # something else needs the cluster
        session.remark(f"{cluster} stays up: {exc}", "yellow")
    else:
        session.remark(f"{answer['cluster']}: {answer['action']}. {answer['why']}")


def _mounts(texts: list[str] | None) -> dict[str, str]:
    shares = {}
    for text in texts or []:
        name, equals, path = text.partition("=")
        if not name or not equals or not path:
            raise typer.BadParameter(f"--mount is {text!r}; write NAME=PATH.")
        shares[name] = path
    return shares


def _filled(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value not in ("", None, {})}
