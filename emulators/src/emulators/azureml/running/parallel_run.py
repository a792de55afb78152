"""The driver of a parallel job: splits the input into mini-batches, has workers run them, and judges the result.

    python parallel_run.py --scoring_module_name score.py --input_data images --mini_batch_size 5 --node_count 2 ...

This script runs in the job's own environment, with Python 3.7 or later, and imports nothing of the emulators. Azure
ML's driver, driver/amlbi_main.py, has options with the same names. All nodes are this machine: the driver starts each
node's workers in that node's folder. Each worker (parallel_worker.py) calls the entry script's `init()` once and then
`run(mini_batch)` in a process of its own, so a mini-batch that takes too long, or ends its process, is retried in a new
worker.

A mini-batch fails if `run` raises, takes longer than --run_invocation_timeout seconds or ends its process in each of
--run_max_try attempts. An item fails if its mini-batch fails, or if `run` returned no element for it.

https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-parallel
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict

Json = Dict[str, Any]
UNLIMITED = -1
APPENDED = "parallel_run_step.txt"  # Azure ML's name of the file of rows if `append_row_to` is a folder
LAST_WAIT_SECONDS = 60.0  # for a worker's `shutdown()`
LAST_LINES_SECONDS = 5.0  # for its log, unless a process that it started holds the log open


class JobFailed(Exception):
    """The whole job has failed. The message is the reason."""


@dataclass
class Tally:
    """Counts of mini-batches and items, and the limits for failures. UNLIMITED ignores all failures."""

    batches: int
    most_items: int = UNLIMITED
    most_batches: int = UNLIMITED
    most_percent: float = 100.0
    done: int = 0
    failed: int = 0
    failed_items: int = 0
    first_failure: str = ""

    def count(self, batch: Json, returned: int | None, why: str = "") -> None:
        """Count a mini-batch that ended with `returned` elements, or with None if it failed for the reason `why`.

        A mini-batch that returned fewer elements than it has items also counts as failed, except for a partition, for
        which published scripts return one element.
        """
        self.done += 1
        short = 0 if batch.get("partition") else max(0, batch["items"] - (returned or 0))
        if returned is None:
            self.failed_items += batch["items"]
        else:
            self.failed_items += short
        if returned is None or short:
            self.failed += 1
            reason = why or f"run() returned {returned} elements for {batch['items']} items"
            self.first_failure = self.first_failure or f"mini-batch {batch['index']}: {reason}"

    def verdict(self) -> str:
        """Return why the job fails, or '' while its failures are within the limits."""
        percent = 100.0 * self.failed / self.batches
        if 0 <= self.most_items < self.failed_items:
            over = f"{self.failed_items} items failed, more than error_threshold {self.most_items}"
        elif 0 <= self.most_batches < self.failed:
            over = f"{self.failed} mini-batches failed, more than mini_batch_error_threshold {self.most_batches}"
        elif percent > self.most_percent:
            over = f"{percent:.0f} % of the mini-batches failed, more than allowed_failed_percent {self.most_percent:g}"
        else:
            return ""
        return f"{over}. The first was {self.first_failure}"


class Worker:
    """A worker process. Its standard output is the channel for answers, and the output of its program goes to the
    log."""

    def __init__(self, node: int, slot: int, argv: list[str]) -> None:
        self._name = f"[node {node} process {slot}]"
        self._answers: queue.Queue[Json] = queue.Queue()
        here = Path.cwd().with_name(f"node-{node}")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("parallel_worker.py")), *argv],
            cwd=here if here.is_dir() else None,
            env={**os.environ, "AZUREML_CR_NODE_RANK": str(node), "NODE_RANK": str(node)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._copier = threading.Thread(target=self._copy_log, daemon=True)
        for thread in (self._copier, threading.Thread(target=self._read_answers, daemon=True)):
            thread.start()

    def ask(self, message: Json, seconds: float) -> Json:
        """Return the worker's answer. The answer has `error` if the worker failed, was too slow, or ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            self.kill()
            return {"error": f"run() took longer than {seconds:g} s", "ended": True}
        except OSError:
            return self._answers.get()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Have the worker call the entry script's `shutdown()`, and end the worker."""
        if self._process.poll() is None:
            self.ask({"end": True}, LAST_WAIT_SECONDS)
        self.kill()
        self._copier.join(LAST_LINES_SECONDS)

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        status = self._process.wait()
        self._answers.put({"error": f"its process ended with status {status}", "ended": True})

    def _copy_log(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            say(f"{self._name} {line.rstrip()}")


class Run:
    """One run of the job."""

    def __init__(self, settings: argparse.Namespace, argv: list[str]) -> None:
        self._settings, self._argv = settings, argv
        self._waiting: queue.Queue[Json] = queue.Queue()
        self._lock = threading.Lock()
        self._workers: dict[tuple[int, int], Worker] = {}
        self._failure = ""
        self._tally = Tally(0)

    def run(self) -> None:
        """Run all mini-batches. Raises JobFailed."""
        batches = self._plan()
        limits = self._settings
        self._tally = Tally(
            len(batches), limits.error_threshold, limits.mini_batch_error_threshold, limits.allowed_failed_percent
        )
        for batch in batches:
            self._waiting.put(batch)
        slots = [(n, s) for s in range(limits.process_count_per_node) for n in range(limits.node_count)]
        slots = slots[: len(batches)]
        say(f"[parallel] {len(batches)} mini-batches for {len(slots)} processes on {limits.node_count} nodes")
        threads = [threading.Thread(target=self._work, args=slot, daemon=True) for slot in slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure:
            raise JobFailed(self._failure)
        tally = self._tally
        say(
            f"[parallel] {tally.done} mini-batches ended, {tally.failed} failed, with {tally.failed_items} failed items"
        )

    def _plan(self) -> list[Json]:
        worker = Worker(0, 0, self._argv)
        try:
            answer = worker.ask({"plan": True}, self._settings.task_overhead_timeout)
        finally:
            worker.kill()
        if "error" in answer:
            raise JobFailed(f"The input can't be split into mini-batches: {answer['error']}")
        batches: list[Json] = answer["batches"]
        if not batches:
            raise JobFailed("The input has no files and no rows, so there are no mini-batches.")
        return batches

    def _work(self, node: int, slot: int) -> None:
        """Run mini-batches in one slot until none is left or the job has failed."""
        try:
            while not self._failure:
                try:
                    batch = self._waiting.get_nowait()
                except queue.Empty:
                    break
                self._run_batch(node, slot, batch)
            worker = self._workers.get((node, slot))
            if worker and not self._failure:
                worker.close()
        except JobFailed as error:
            self._fail(str(error))

    def _run_batch(self, node: int, slot: int, batch: Json) -> None:
        began, answer = time.monotonic(), {}
        for attempt in range(1, self._settings.run_max_try + 1):
            answer = self._ready(node, slot).ask({"batch": batch}, self._settings.run_invocation_timeout)
            if answer.get("ended"):
                self._workers.pop((node, slot)).kill()
            if "error" not in answer or self._failure:
                break
            say(f"[parallel] mini-batch {batch['index']}, attempt {attempt}: {answer['error']}")
        if self._failure:
            return
        with self._lock:
            returned = None if "error" in answer else answer["count"]
            self._append(answer.get("rows", ()))
            self._tally.count(batch, returned, answer.get("error", ""))
            verdict, tally = self._tally.verdict(), self._tally
        state = "failed" if returned is None else f"returned {returned} elements"
        seconds = time.monotonic() - began
        if self._settings.logging_level != "WARNING":
            say(f"[parallel] {tally.done} of {tally.batches}: mini-batch {batch['index']} {state}, {seconds:.1f} s")
        if verdict:
            raise JobFailed(verdict)

    def _ready(self, node: int, slot: int) -> Worker:
        """Return the slot's worker after its `init()`."""
        if (node, slot) not in self._workers:
            worker = self._workers[(node, slot)] = Worker(node, slot, self._argv)
            answer = worker.ask({"init": True}, self._settings.task_overhead_timeout)
            if "error" in answer:
                why = answer["error"].replace("run()", "init()")
                raise JobFailed(f"init() of {self._settings.scoring_module_name} failed: {why}")
        return self._workers[(node, slot)]

    def _append(self, rows: list[str] | tuple[()]) -> None:
        file = appended(self._settings.append_row_to)
        if rows and file:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as out:
                out.writelines(f"{row}\n" for row in rows)

    def _fail(self, why: str) -> None:
        """Fail the job: the running mini-batches end with their workers."""
        self._failure = self._failure or why
        for worker in list(self._workers.values()):
            with contextlib.suppress(OSError):
                worker.kill()


def appended(said: str) -> Path | None:
    """Return the file to which rows are appended, or None without `append_row_to`."""
    if not said:
        return None
    path = Path(said)
    return path / APPENDED if path.is_dir() else path


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def settings_of(argv: list[str]) -> argparse.Namespace:
    """Return the driver's options. The entry script gets all arguments and reads its own, as in Azure ML, so
    options in `program_arguments` override the job's."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--scoring_module_name", required=True)
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--logging_level", default="INFO")
    parser.add_argument("--append_row_to", default="")
    return parser.parse_known_args(argv)[0]


# https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-parallel has the meanings and defaults.
NUMBERS: Mapping[str, int | float] = {
    "node_count": 1,
    "process_count_per_node": 1,
    "run_invocation_timeout": 60.0,
    "run_max_try": 3,
    "error_threshold": UNLIMITED,
    "mini_batch_error_threshold": UNLIMITED,
    "allowed_failed_percent": 100.0,
    "task_overhead_timeout": 600.0,
}


def main(argv: list[str]) -> int:
    try:
        Run(settings_of(argv), argv).run()
    except JobFailed as error:
        sys.stdout.flush()
        sys.stderr.write(f"The parallel job failed: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # threads of killed workers may still hold their pipes
