"""Published job files on the local cloud: which files could start, which complete, and why others are refused.

    python3 trainyard.py bench published DIR [--run] [--bare] [--web DIR] [--quick] [--json]

DIR is a checkout of any repository. Each YAML file in DIR that declares a job (by its `$schema` or `type`, or by a
`command` with an `environment`) is submitted unchanged, as the command line does: first with --dry-run, and with --run
for real, until its end. Before that, the assets that the job names and the checkout declares are registered in the
workspace, as the repository's own scripts do (`az ml component create --file train.yml`). --web names a folder that
stands for the web, for data that can't be reached (emulators/README.md). Without it, and if the storage account of
Azure's examples can't be reached, two of its tables are copies that scikit-learn has; each row says so, and
`with_copies` counts them among `completed`. With --bare there are neither assets nor copies.

A refusal is attributed to the file (a mistake, or a file that is not beside it), to the workspace (an asset that is
not registered), to this machine (the network, or anything except Python packages), or to Trainyard. A run that is
created and can't start counts as `broken_promises`. --quick takes the first three files; without DIR, the corpus of
the tests is used.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks._options import options
from benchmarks._published_assets import Assets, assets_of, named
from benchmarks._published_outcome import Outcome, figures, one_sentence, refused, unsuccessful
from benchmarks._published_web import HOST, copies_in, is_reachable, web_folder
from cli.api.client import Api
from cli.errors import CliError
from cli.files.component_upload import with_job_sent
from cli.files.job_file import load
from local.cloud import Cloud, Options
from local.configs import WEB

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "e2e" / "corpus"
WAITS = "cluster_busy"  # the code of a reason that passes: the nodes are used by the other file's job
CLUSTER, QUICK, AT_ONCE = "cpu-cluster", 3, 2
PATIENCE, LOOK_SECONDS = 1800.0, 1.0  # a published job sleeps 600 s after its training
DIAGNOSIS_SECONDS = 120.0  # until a failed run is archived, and has a diagnosis
_ONE_AT_A_TIME = threading.Lock()  # files of one folder upload the same code, which can be created only once
SCHEMAS = re.compile(
    r"/(commandJob|sweepJob|pipelineJob|parallelJob|sparkJob|autoMLJob\w*)\.schema\.json", re.IGNORECASE
)
KINDS = ("command", "sweep", "pipeline", "spark", "automl")


@dataclass(frozen=True)
class Attempt:
    """How files are tried: against which API, with which assets of the checkout (None: with none), whether their
    runs are waited for, and whether copies stand for two tables of the web."""

    api: Api
    folder: Path
    assets: Assets | None
    really: bool
    copies: bool = False


def job_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files below the folder that are jobs, in order of their paths. Components and assets are not
    jobs."""
    for file in sorted(each for pattern in ("*.yml", "*.yaml") for each in folder.rglob(pattern)):
        if file.is_file() and is_job(file.read_text("utf-8", "replace")):
            yield file


def is_job(text: str) -> bool:
    """Return whether the text of a YAML file describes a job. A text that is not valid YAML is a job if it names a
    job's `$schema`."""
    if SCHEMAS.search(text):
        return True
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    if not isinstance(document, dict) or "schema.json" in str(document.get("$schema")):
        return False
    plain = "command" in document and "environment" in document and "type" not in document
    return plain or (document.get("type") in KINDS and bool({"jobs", "trial", "command", "task"} & set(document)))


def tried(attempt: Attempt, file: Path) -> Outcome:
    """Return the outcome of the file: of a dry run, and then, if the attempt is real, of its run."""
    name = file.relative_to(attempt.folder).as_posix()
    with _ONE_AT_A_TIME:
        registered = tuple(attempt.assets.register(file)) if attempt.assets else ()
    copies = copies_in(named(file)[1]) if attempt.copies else ()
    return replace(_submitted(attempt, file, name), registered=registered, copies=copies)


def _submitted(attempt: Attempt, file: Path, name: str) -> Outcome:
    api = attempt.api
    try:
        with _ONE_AT_A_TIME:
            sent = with_job_sent(api, load(file), file.parent, lambda _: None)
        body = {"job": sent, "cluster": CLUSTER}
        plan = api.post("runs", body=body, dry_run=True)
        if reasons := [reason["message"] for reason in plan["reasons"] if reason["code"] != WAITS]:
            return refused(name, one_sentence(reasons))
        if not attempt.really:
            return Outcome(name, "could start")
        sent_once = {"Idempotency-Key": uuid.uuid4().hex}  # a busy API is asked again
        return ended(api, name, api.post("runs", body=body, headers=sent_once)["run"])
    except CliError as exc:
        return refused(name, str(exc))


def ended(api: Api, name: str, run: str) -> Outcome:
    """Return the outcome of a run. The benchmark waits PATIENCE seconds before it cancels the run."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found: dict[str, Any] = api.get("runs", run)
        if found["state"] == "completed":
            return Outcome(name, "completed", run=run)
        if found["state"] in ("failed", "canceled"):
            return unsuccessful(name, run, _with_diagnosis(api, found))
        time.sleep(LOOK_SECONDS)
    api.post("runs", run, "cancel")
    return Outcome(name, "unfinished", f"It had not ended after {PATIENCE:.0f} s.", "this machine", run)


def _with_diagnosis(api: Api, found: dict[str, Any]) -> dict[str, Any]:
    """Return the failed run once it has a diagnosis, or after DIAGNOSIS_SECONDS."""
    until = time.monotonic() + DIAGNOSIS_SECONDS
    while not found.get("diagnosis") and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        found = api.get("runs", found["run"])
    return found


def measure(folder: Path, files: Sequence[Path], really: bool, bare: bool, web: Path | None) -> list[Outcome]:
    """Return the outcome of each file on a new cloud with the default routes and limits. Each row is printed when
    its file has ended."""
    copies = web is None and not bare and not is_reachable()
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as made:
        if copies:
            print(f"{HOST} can't be reached: Iris and the diabetes table are those of scikit-learn.", file=sys.stderr)
        options_of_cloud = Options(web=web_folder(Path(made)) if copies else web or WEB)
        with (
            Cloud.start(Path(home) / "cloud", options_of_cloud) as cloud,
            Api(cloud.api) as api,
            assets_of(folder, cloud) as assets,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            attempt = Attempt(api, folder, None if bare else assets, really, copies)
            return list(pool.map(lambda file: _shown(tried(attempt, file)), files))


def _shown(outcome: Outcome) -> Outcome:
    sys.stdout.write(f"{outcome.row}\n")  # at once, because files end side by side
    sys.stdout.flush()
    return outcome


def main(argv: list[str]) -> int:
    parser = options(__doc__, f"only the first {QUICK} files")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=CORPUS, metavar="DIR", help="a checkout of a repository"
    )
    parser.add_argument("--run", action="store_true", help="run each file to its end, too")
    parser.add_argument("--bare", action="store_true", help="register no assets of the checkout, and make no copies")
    parser.add_argument("--web", type=Path, help="a folder that stands for the web")
    asked = parser.parse_args(argv)
    if not asked.folder.is_dir():
        parser.error(f"{asked.folder} is not a folder. Name the folder of a checkout.")
    folder = asked.folder.resolve()
    files = list(job_files(folder))
    if not files:
        parser.error(f"{asked.folder} has no job files: YAML files whose $schema or type says that they are jobs.")
    chosen = files[: QUICK if asked.quick else None]
    found = figures(measure(folder, chosen, asked.run, asked.bare, asked.web and asked.web.resolve()))
    print(json.dumps(found) if asked.json else ", ".join(f"{name}: {value}" for name, value in found.items()))
    return 1 if found["broken_promises"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
