"""Published job files on the local cloud: which files could start, which complete, and why others are refused.

    python3 trainyard.py bench published DIR [--run] [--bare] [--web DIR] [--quick] [--json]

DIR is a checkout of any repository. Each YAML file in DIR that declares a job (by its `$schema` or `type`, or by a
`command` with an `environment`) is submitted unchanged, as the command line does: first with --dry-run, and with --run
for real, until its end. Before that, the assets that the job names and the checkout declares are registered in the
workspace, as the repository's own scripts do (`az ml component create --file train.yml`); with --bare they are not.
--web names a folder that stands for the web, for data that can't be reached (emulators/README.md).

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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks._options import options
from benchmarks._published_assets import Assets, assets_of
from cli.api.client import Api
from cli.errors import CliError
from cli.files.component_upload import with_job_sent
from cli.files.job_file import load
from local.cloud import Cloud, Options
from local.configs import WEB

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "e2e" / "corpus"
WAITS = "cluster_busy"  # the code of a reason that passes: the nodes are used by the other file's job
CLUSTER, QUICK, AT_ONCE, WORDS = "cpu-cluster", 3, 2, 400
PATIENCE, LOOK_SECONDS = 1800.0, 1.0  # a published job sleeps 600 s after its training
DIAGNOSIS_SECONDS = 120.0  # until a failed run is archived, and has a diagnosis
_ONE_AT_A_TIME = threading.Lock()  # files of one folder upload the same code, which can be created only once
SCHEMAS = re.compile(
    r"/(commandJob|sweepJob|pipelineJob|parallelJob|sparkJob|autoMLJob\w*)\.schema\.json", re.IGNORECASE
)
KINDS = ("command", "sweep", "pipeline", "spark", "automl")
# The part responsible for a refusal, by its words. The first match counts; without a match it is Trainyard.
WHOSE = (
    (
        "the workspace",
        r"No version \S+ of .* among the workspace's|among components of registry|is not in the (workspace|registry)|"
        r"there is nothing at azureml:",
    ),
    (
        "the file",
        r"not a valid job file|is missing|is empty|does not have among|asks for no package|is neither an ARM id|"
        r"optional Input binding|has no value or path|must be (text|a mapping)|"
        r"Unknown field|Clone it|does not exist|No such file",
    ),
    ("this machine", r"this machine|from there only a single file|can be a file only|no network|can't be reached"),
)
# The part responsible for a failure, by the start of the diagnosed cause; for any other cause it is the job's code.
OF_CAUSE = (("network", "this machine"), ("gpu", "this machine"), ("missing_module", "its environment"))
NOTHING_SHOWN = ("healthy", "not_known")  # diagnoses of a log without a cause: the run's own reason is its sentence
# The words of a job that ended before its command began: the check before the run should have found the cause.
NEVER_BEGAN = re.compile(r"there is nothing at |can't be (made|built|installed|reached)|No version \S+ of ")


@dataclass(frozen=True)
class Attempt:
    """How files are tried: against which API, with which assets of the checkout (None: with none), and whether their
    runs are waited for."""

    api: Api
    folder: Path
    assets: Assets | None
    really: bool


@dataclass(frozen=True)
class Outcome:
    """The result of one file. `state` is refused, could start, completed, failed or unfinished; `why` and `whose`
    give the reason for an unwanted state, and the part that is responsible."""

    file: str
    state: str
    why: str = ""
    whose: str = ""
    run: str = ""
    registered: tuple[str, ...] = ()  # assets of the checkout that the job names

    @property
    def could_start(self) -> bool:
        return self.state != "refused"

    @property
    def row(self) -> str:
        limit = f" [{self.whose}]" if self.whose else ""
        first = f" (registered: {', '.join(self.registered)})" if self.registered else ""
        return f"{self.state:11} {self.file}{limit} {self.why}".rstrip() + first


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


def whose_limit(why: str) -> str:
    """Return the part responsible for a refusal: the workspace, the file, this machine, or Trainyard."""
    return next((whose for whose, words in WHOSE if re.search(words, why, re.IGNORECASE)), "Trainyard")


def tried(attempt: Attempt, file: Path) -> Outcome:
    """Return the outcome of the file: of a dry run, and then, if the attempt is real, of its run."""
    name = file.relative_to(attempt.folder).as_posix()
    with _ONE_AT_A_TIME:
        registered = tuple(attempt.assets.register(file)) if attempt.assets else ()
    return replace(_submitted(attempt, file, name), registered=registered)


def _submitted(attempt: Attempt, file: Path, name: str) -> Outcome:
    api = attempt.api
    try:
        with _ONE_AT_A_TIME:
            sent = with_job_sent(api, load(file), file.parent, lambda _: None)
        body = {"job": sent, "cluster": CLUSTER}
        plan = api.post("runs", body=body, dry_run=True)
        if reasons := [reason["message"] for reason in plan["reasons"] if reason["code"] != WAITS]:
            return _refused(name, one_sentence(reasons))
        if not attempt.really:
            return Outcome(name, "could start")
        sent_once = {"Idempotency-Key": uuid.uuid4().hex}  # a busy API is asked again
        return ended(api, name, api.post("runs", body=body, headers=sent_once)["run"])
    except CliError as exc:
        return _refused(name, str(exc))


def one_sentence(reasons: Iterable[str]) -> str:
    """Return the reasons as one sentence. Steps that lack the same thing are named together."""
    steps: dict[str, list[str]] = {}
    for reason in reasons:
        found = re.fullmatch(r"Step '([^']+)': (.*?)\.?", reason, re.DOTALL)
        step, what = found.groups() if found else ("", reason.rstrip("."))
        steps.setdefault(what, []).extend([step] if step else [])
    said = "; ".join(what + (f" (steps {', '.join(names)})" if names else "") for what, names in steps.items())
    return said if said.endswith("?") else f"{said}."


def _refused(name: str, why: str) -> Outcome:
    return Outcome(name, "refused", " ".join(why.split())[:WORDS], whose_limit(why))


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


def unsuccessful(name: str, run: str, found: dict[str, Any]) -> Outcome:
    """Return the outcome of a run that failed or was canceled: the summary of the diagnosis, with the first line that
    shows it. A job that never began is a broken promise of the dry run."""
    reason = " ".join((found["reason"] or "").split())
    if found["state"] == "failed" and (not found["job"] or NEVER_BEGAN.search(reason[:WORDS])):
        return Outcome(name, "failed", reason[:WORDS], "Trainyard: it never began", run)
    diagnosis = found.get("diagnosis")
    if not diagnosis or diagnosis["cause"] in NOTHING_SHOWN:
        return Outcome(name, found["state"], reason[:WORDS], run=run)
    shown = diagnosis["evidence"][0]["text"] if diagnosis["evidence"] else ""
    whose = next((whose for cause, whose in OF_CAUSE if diagnosis["cause"].startswith(cause)), "its code")
    why = diagnosis["summary"].rstrip(".") + (f": {' '.join(shown.split())}" if shown else ".")
    return Outcome(name, found["state"], why[:WORDS], whose, run)


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the counts: files, files that could start, completed files, and the others by responsible part."""
    return {
        "files": len(outcomes),
        "could_start": sum(each.could_start for each in outcomes),
        "completed": sum(each.state == "completed" for each in outcomes),
        "broken_promises": sum(each.whose.startswith("Trainyard:") for each in outcomes),
        "refused": dict(Counter(each.whose for each in outcomes if each.state == "refused")),
        "failed": dict(Counter(each.whose for each in outcomes if each.state in ("failed", "canceled", "unfinished"))),
    }


def measure(folder: Path, files: Sequence[Path], really: bool, bare: bool, web: Path) -> list[Outcome]:
    """Return the outcome of each file on a new cloud with the default routes and limits."""
    outcomes = []
    with (
        tempfile.TemporaryDirectory() as home,
        Cloud.start(Path(home) / "cloud", Options(web=web)) as cloud,
        Api(cloud.api) as api,
        assets_of(folder, cloud) as assets,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        attempt = Attempt(api, folder, None if bare else assets, really)
        for outcome in pool.map(lambda file: tried(attempt, file), files):
            print(outcome.row, flush=True)
            outcomes.append(outcome)
    return outcomes


def main(argv: list[str]) -> int:
    parser = options(__doc__, f"only the first {QUICK} files")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=CORPUS, metavar="DIR", help="a checkout of a repository"
    )
    parser.add_argument("--run", action="store_true", help="run each file to its end, too")
    parser.add_argument("--bare", action="store_true", help="register no assets of the checkout")
    parser.add_argument("--web", type=Path, default=WEB, help="a folder that stands for the web")
    asked = parser.parse_args(argv)
    if not asked.folder.is_dir():
        parser.error(f"{asked.folder} is not a folder. Name the folder of a checkout.")
    folder = asked.folder.resolve()
    files = list(job_files(folder))
    if not files:
        parser.error(f"{asked.folder} has no job files: YAML files whose $schema or type says that they are jobs.")
    chosen = files[: QUICK if asked.quick else None]
    found = figures(measure(folder, chosen, asked.run, asked.bare, asked.web.resolve()))
    print(json.dumps(found) if asked.json else ", ".join(f"{name}: {value}" for name, value in found.items()))
    return 1 if found["broken_promises"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
