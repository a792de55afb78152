"""The driver of parallel jobs: how it splits the input, which failures it retries, and when it fails the job."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from emulators.azureml.environments.builder import finding_pythons
from emulators.azureml.running import parallel_run, parallel_table, parallel_worker, ray_cluster
from emulators.azureml.running.parallel_run import Tally

SCORE = """
import argparse, os, pathlib, sys, time
from azureml_user.parallel_run import EntryScript

def init():
    global factor, logger
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=int, default=1)
    factor, logger = parser.parse_known_args()[0].factor, EntryScript().logger
    logger.info("init of process %s", os.environ["AZUREML_CR_NODE_RANK"])
    print("to standard output", flush=True)

def run(files):
    rows = []
    for file in files:
        text = pathlib.Path(file).read_text()
        tries = pathlib.Path(os.environ["TRIES"], pathlib.Path(file).name)
        tries.write_text((tries.read_text() if tries.exists() else "") + "x")
        if text == "twice" and len(tries.read_text()) < 2 or text == "never":
            raise ValueError(f"{text} is no number")
        if text == "slow" and len(tries.read_text()) < 2:
            time.sleep(60)
        if text == "dies":
            os._exit(3)
        rows += [] if text == "nothing" else [str(len(text) * factor)]
    return rows

def shutdown():
    pathlib.Path(os.environ["TRIES"], f"ended-{os.getpid()}").touch()
"""
TABLE = """
def run(rows, context):
    assert rows.columns.tolist() == ["shop", "sold"], rows.columns
    return rows.assign(at=context.minibatch_index) if not context.partition_key_value else rows.head(1)
"""


class Parallel:
    """Runs the driver on files with the given texts, as the emulated service does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code, self.tries = folder / "input", folder / "node-0", folder / "tries"
        for each in (self.folder, self.code, self.tries):
            each.mkdir()
        self.rows = folder / "rows.csv"
        (self.code / "score.py").write_text(SCORE)

    def __call__(self, *options: str, kind: str = "uri_folder") -> subprocess.CompletedProcess[str]:
        words = ("--scoring_module_name", "score.py", "--input_data", str(self.folder), "--input_type", kind)
        return subprocess.run(
            [sys.executable, parallel_run.__file__, *words, "--append_row_to", str(self.rows), *options],
            cwd=self.code,
            env={"TRIES": str(self.tries), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def files(self, *texts: str) -> None:
        for number, text in enumerate(texts):
            (self.folder / f"{number:02}.txt").write_text(text)

    def tried(self, number: int) -> int:
        return len((self.tries / f"{number:02}.txt").read_text())


@pytest.fixture
def parallel(tmp_path: Path) -> Parallel:
    return Parallel(tmp_path)


def test_files_are_scored_in_mini_batches_by_processes_of_all_nodes(parallel: Parallel) -> None:
    """Each process calls init() and shutdown() once, the entry script gets its own arguments, and all rows go to
    one file."""
    parallel.files(*["x" * length for length in range(1, 8)])
    ended = parallel("--mini_batch_size", "2", "--node_count", "2", "--process_count_per_node", "2", "--factor", "10")
    assert ended.returncode == 0, ended.stderr
    assert sorted(parallel.rows.read_text().split()) == ["10", "20", "30", "40", "50", "60", "70"]
    assert "4 mini-batches for 4 processes on 2 nodes" in ended.stdout
    assert "[node 1 process 1] to standard output" in ended.stdout
    assert "init of process 1" in ended.stdout
    assert len(list(parallel.tries.glob("ended-*"))) == 4


def test_a_failed_mini_batch_is_retried(parallel: Parallel) -> None:
    """An exception and the end of a process each count as one failed attempt."""
    parallel.files("twice", "dies", "good")
    ended = parallel("--mini_batch_size", "1", "--run_max_try", "2")
    assert ended.returncode == 0, ended.stderr
    assert [parallel.tried(number) for number in range(3)] == [2, 2, 1]
    assert sorted(parallel.rows.read_text().split()) == ["4", "5"]
    assert "3 mini-batches ended, 1 failed, with 1 failed items" in ended.stdout


def test_a_mini_batch_that_takes_too_long_is_retried_in_a_new_process(parallel: Parallel) -> None:
    """A timeout counts as a failed attempt. On a busy machine, a further attempt may take too long, too."""
    parallel.files("slow")
    ended = parallel("--mini_batch_size", "1", "--run_max_try", "20", "--run_invocation_timeout", "1")
    assert ended.returncode == 0, ended.stderr
    assert parallel.tried(0) >= 2
    assert parallel.rows.read_text().split() == ["4"]
    assert "attempt 1: run() took longer than 1 s" in ended.stdout
    assert "init of process 0" in ended.stdout.partition("attempt 1")[2]


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--mini_batch_error_threshold=1", "2 mini-batches failed, more than mini_batch_error_threshold 1"),
        ("--error_threshold=2", "4 items failed, more than error_threshold 2"),
        ("--allowed_failed_percent=10", "33 % of the mini-batches failed, more than allowed_failed_percent 10"),
    ],
)
def test_more_failures_than_allowed_fail_the_job(parallel: Parallel, option: str, reason: str) -> None:
    """The reason has the limit and the first failure."""
    parallel.files("never", "a", "b", "c", "never", "d")
    ended = parallel("--mini_batch_size", "2", "--run_max_try", "1", option)
    assert ended.returncode == 1
    assert reason in ended.stderr
    assert "The first was mini-batch 0: ValueError: never is no number" in ended.stderr


def test_as_many_failures_as_allowed_do_not(parallel: Parallel) -> None:
    """An item without an element in the result of run() counts as failed, and so does its mini-batch."""
    parallel.files("never", "nothing", "c")
    limits = ("--mini_batch_error_threshold=2", "--error_threshold=2")
    ended = parallel("--mini_batch_size", "1", "--run_max_try", "1", *limits)
    assert ended.returncode == 0, ended.stderr
    assert "3 mini-batches ended, 2 failed, with 2 failed items" in ended.stdout


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("def init(): open('/no/model')\ndef run(files): return files", "init() of score.py failed: FileNotFoundError"),
        ("import nothing_like_it", "failed: ModuleNotFoundError"),
        ("x = 1", "score.py has no function run(mini_batch)"),
    ],
)
def test_an_entry_script_that_cannot_start_fails_the_job(parallel: Parallel, script: str, reason: str) -> None:
    parallel.files("a")
    (parallel.code / "score.py").write_text(script)
    ended = parallel()
    assert ended.returncode == 1
    assert reason in ended.stderr


def test_run_must_return_elements(parallel: Parallel) -> None:
    parallel.files("a")
    (parallel.code / "score.py").write_text("def run(files): return 'text'")
    ended = parallel("--error_threshold=0")
    assert "run() returned a str; it must return a list, a tuple, an array or a DataFrame" in ended.stderr


def test_an_empty_input_is_refused(parallel: Parallel) -> None:
    assert "there are no mini-batches" in parallel().stderr


def table(parallel: Parallel, *transformations: object) -> None:
    for shop in ("north", "south"):
        (parallel.folder / shop).mkdir()
        (parallel.folder / shop / "sales.csv").write_text("sold\n" + "\n".join(map(str, range(100))))
    form = {"extract_columns_from_partition_format": {"partition_format": "{shop}/{file}.{ending}"}}
    keep = {"keep_columns": ["shop", "sold"]}
    described = {"paths": [{"pattern": "./**/*.csv"}], "transformations": [{"read_delimited": {}}, form, keep]}
    described["transformations"] += [*transformations]  # type: ignore[operator]
    (parallel.folder / "MLTable").write_text(json.dumps(described))
    (parallel.code / "score.py").write_text(TABLE)


def test_a_table_is_split_by_size(parallel: Parallel) -> None:
    """Rows of a DataFrame are written as values separated by spaces."""
    table(parallel)
    ended = parallel("--mini_batch_size", "300", kind="mltable")
    assert ended.returncode == 0, ended.stderr
    rows = [row.split(" ") for row in parallel.rows.read_text().splitlines()]
    assert sorted((shop, int(sold)) for shop, sold, _ in rows) == [
        (s, n) for s in ("north", "south") for n in range(100)
    ]
    assert {int(batch) for _, _, batch in rows} == {0, 1}


def test_a_table_is_split_by_columns(parallel: Parallel) -> None:
    """A script that returns one row for each partition has no failed items."""
    table(parallel)
    ended = parallel("--partition_keys", '["shop"]', "--error_threshold=0", kind="mltable")
    assert ended.returncode == 0, ended.stderr
    assert sorted(parallel.rows.read_text().splitlines()) == ["north 0", "south 0"]


def test_a_table_without_transformations_is_its_files(parallel: Parallel) -> None:
    """Azure's examples describe a folder of pictures so. A mini-batch is then a list of files."""
    for name, text in {"a.png": "12", "b.png": "123", "c.txt": "other"}.items():
        (parallel.folder / name).write_text(text)
    (parallel.folder / "MLTable").write_text("paths:\n  - pattern: ./*.png\n")
    ended = parallel("--mini_batch_size", "1", kind="mltable")
    assert ended.returncode == 0, ended.stderr
    assert sorted(parallel.rows.read_text().split()) == ["2", "3"]


def test_an_unknown_transformation_is_refused_by_name(parallel: Parallel) -> None:
    table(parallel, {"filter": "col('sold') > 3"})
    ended = parallel(kind="mltable")
    assert "the transformation 'filter' is not supported here; supported: read_delimited" in ended.stderr


def test_a_table_needs_two_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason has the name of the missing package."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match="needs yaml in the job's environment"):
        parallel_table.read(tmp_path)


def test_the_tally_counts_each_limit() -> None:
    tally = Tally(4, most_items=3, most_batches=1)
    tally.count({"index": 0, "items": 2}, 2)
    tally.count({"index": 1, "items": 2}, None, "ValueError: x")
    assert (tally.failed, tally.failed_items, tally.verdict()) == (1, 2, "")
    tally.count({"index": 2, "items": 2}, 1)
    assert tally.verdict().startswith("2 mini-batches failed")


def test_the_drivers_run_with_the_oldest_published_python() -> None:
    """Published environments ask for Python 3.7 and 3.8. The drivers have no later syntax, and import with the oldest
    Python of this machine."""
    files = [Path(str(each.__file__)) for each in (parallel_run, parallel_worker, parallel_table, ray_cluster)]
    for file in files:
        ast.parse(file.read_text("utf-8"), feature_version=(3, 7))
    path = finding_pythons().get("PATH")
    found = (shutil.which(f"python3.{minor}", path=path) for minor in (7, 8, 9))
    oldest = next((each for each in found if each), sys.executable)
    names = ", ".join(file.stem for file in files)
    subprocess.run([oldest, "-c", f"import {names}"], cwd=files[0].parent, check=True)
