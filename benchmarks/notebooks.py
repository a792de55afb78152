"""Published notebooks on the local cloud: which run to their end, and why others do not.

    python3 trainyard.py bench notebooks DIR [--python PYTHON] [--web DIR] [--seconds N] [--quick] [--json]

DIR is a checkout of any repository. Each notebook in DIR that creates an MLClient runs cell by cell, in a copy of its
folder, with the workspace of a new local cloud; nothing else of it is changed. The local cloud has the clusters that
the examples name: cpu-cluster and gpu-cluster. A notebook is `completed` if all its cells ran and all its jobs
completed. Otherwise its line names the cell or the job that failed, and whose limit that is: the notebook's (a mistake
in it, a package or a file that it lacks), this machine's (the network, a GPU, anything except Python packages), or
Trainyard's. PYTHON has azure-ai-ml and what the notebooks import, such as mldesigner; the default is this Python.
--web names a folder that stands for the web (emulators/README.md), --seconds how long a cell's jobs may take. --quick
takes the first three notebooks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import _notebook_cells as cells
from benchmarks._options import options
from local.cloud import Cloud, Options
from local.configs import WEB

QUICK, AT_ONCE, WORDS, PATIENCE = 3, 2, 300, 600.0
# The part responsible for a failure, by its words. The first match counts; without a match it is Trainyard.
WHOSE = (
    (
        "this machine",
        r"this machine|not in this stand-in|can't be reached|Name or service|Connection(Error| refused)|URLError|"
        r"HTTPSConnection|urlopen|getaddrinfo|NCCL|cuda|GPU|horovod|in time",
    ),
    (
        "the notebook",
        r"(Syntax|Name|Type|FileNotFound)Error|No module named|No such file|does not exist|Required input",
    ),
)


@dataclass(frozen=True)
class Outcome:
    """The result of one notebook. `state` is completed, failed or unfinished; `why` and `whose` tell the cause."""

    notebook: str
    state: str
    why: str = ""
    whose: str = ""

    @property
    def row(self) -> str:
        limit = f" [{self.whose}]" if self.whose else ""
        return f"{self.state:11} {self.notebook}{limit} {self.why}".rstrip()


def notebooks(folder: Path) -> Iterator[Path]:
    """Yield the notebooks below the folder whose code creates an MLClient, in order of their paths."""
    for file in sorted(folder.rglob("*.ipynb")):
        try:
            sources = cells.code_cells(file.read_text("utf-8"))
        except (ValueError, KeyError, OSError):
            continue
        if any("MLClient" in source for source in sources):
            yield file


def outcome(name: str, found: dict[str, Any]) -> Outcome:
    """Return the outcome of a notebook from the result of its cells. The first thing that went wrong counts."""
    wrong = [(job, *told) for job, told in found["jobs"].items() if told[0] not in ("Completed", "")]
    if wrong:
        job, status, reason = wrong[0]
        state = "unfinished" if status == "unfinished" else "failed"
        return _failed(name, state, f"Job {job}: {status}. {reason}")
    if found["cell"] is not None:
        return _failed(name, "failed", f"Cell {found['cell']} of {found['cells']}: {found['error']}")
    return Outcome(name, "completed", f"{len(found['jobs'])} jobs")


def _failed(name: str, state: str, why: str) -> Outcome:
    whose = next((whose for whose, words in WHOSE if re.search(words, why, re.IGNORECASE)), "Trainyard")
    return Outcome(name, state, " ".join(why.split())[:WORDS], whose)


def tried(cloud: Cloud, folder: Path, file: Path, python: Path, seconds: float) -> Outcome:
    """Return the outcome of the notebook, which runs in a copy of its folder."""
    name = file.relative_to(folder).as_posix()
    with tempfile.TemporaryDirectory() as scratch:
        copy, result = Path(scratch) / "notebook", Path(scratch) / "result.json"
        shutil.copytree(file.parent, copy)
        command: list[str | Path] = [python, cells.__file__, copy / file.name, result, str(seconds)]
        env = {**os.environ, **cloud.azureml_env}
        done = subprocess.run(command, cwd=copy, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not result.exists():
            return Outcome(name, "failed", " ".join(done.stderr.split())[-WORDS:], "Trainyard")
        return outcome(name, json.loads(result.read_text()))


def measure(folder: Path, files: Sequence[Path], python: Path, web: Path, seconds: float) -> list[Outcome]:
    """Return the outcome of each notebook on a new cloud."""
    outcomes = []
    with (
        tempfile.TemporaryDirectory() as home,
        Cloud.start(Path(home) / "cloud", Options(web=web)) as cloud,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        for each in pool.map(lambda file: tried(cloud, folder, file, python, seconds), files):
            print(each.row, flush=True)
            outcomes.append(each)
    return outcomes


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the counts: notebooks, completed notebooks, and the others by the part responsible."""
    others = [each for each in outcomes if each.state != "completed"]
    return {
        "notebooks": len(outcomes),
        "completed": len(outcomes) - len(others),
        "others": dict(Counter(each.whose for each in others)),
    }


def main(argv: list[str]) -> int:
    parser = options(__doc__, f"only the first {QUICK} notebooks")
    parser.add_argument("folder", type=Path, metavar="DIR", nargs="?", help="a checkout of a repository")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="default: this Python")
    parser.add_argument("--web", type=Path, default=WEB, help="a folder that stands for the web")
    parser.add_argument("--seconds", type=float, default=PATIENCE, help="default: %(default)g")
    asked = parser.parse_args(argv)
    if asked.folder is None:
        print("There is no folder of notebooks. Name the folder of a checkout, for example azureml-examples/sdk.")
        return 0
    files = list(notebooks(asked.folder.resolve()))
    if not files:
        parser.error(f"{asked.folder} has no notebooks that create an MLClient.")
    chosen = files[: QUICK if asked.quick else None]
    # The path stays as written: a virtual environment is known by it, not by the Python that it links to.
    found = figures(
        measure(asked.folder.resolve(), chosen, asked.python.absolute(), asked.web.resolve(), asked.seconds)
    )
    print(json.dumps(found) if asked.json else ", ".join(f"{name}: {value}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
