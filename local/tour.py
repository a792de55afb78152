"""`python3 trainyard.py tour`: a tour on a local cloud of its own, in about three minutes.

Each step explains what it does and runs the command that you would type. The tour leaves nothing behind.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.api.client import Api
from emulators.process import PartFailed, wait_for
from local import digits, record, up
from local.cloud import AlreadyRunning, Cloud, Options

HOME = record.HOME.with_name("tour")
DROP, RUN = "mnist/tour", "mnist@latest"
PATIENCE_SECONDS = 180.0


class TourFailed(Exception):
    """A command of the tour failed. The message names the command."""


class Tour:
    def __init__(self, home: Path, folder: Path, api: str) -> None:
        self.home, self.folder, self.api = home, folder, api

    def walk(self, steps: Sequence[Step]) -> None:
        for number, step in enumerate(steps, 1):
            say(f"\n{number} of {len(steps)}  {step.title}\n{step.words}")
            for act in step.acts:
                act(self) if callable(act) else self.type(act)

    def type(self, words: Sequence[str]) -> None:
        """Print a command as if typed, and run the command. Raises TourFailed for a failure."""
        say(f"\n$ python3 trainyard.py {shlex.join(words)}")
        environment = {**os.environ, "TRAINYARD_CLOUD": str(self.home), "TRAINYARD_CWD": str(self.folder)}
        argv = [sys.executable, "-m", "cli", *words, "--profile", "local"]
        if status := subprocess.run(argv, cwd=record.REPOSITORY, env=environment).returncode:
            raise TourFailed(f"`{words[0]}` ended with exit status {status}. Its cloud's logs: {self.home / 'logs'}")

    def await_training(self) -> None:
        """Wait for the first trained epoch of the newest run."""
        with Api(self.api) as api:
            wait_for(lambda: _has_trained(api), PATIENCE_SECONDS, "the run to train", 0.5)


def _has_trained(api: Api) -> bool:
    run: dict[str, Any] = api.get("runs", limit=1)["runs"][0]
    return run["state"] == "running" and bool(api.get("runs", run["run"], "metrics")["series"])


@dataclass(frozen=True)
class Step:
    """One step: an explanation, commands, and the condition to wait for between commands."""

    title: str
    words: str
    acts: Sequence[Sequence[str] | Callable[[Tour], None]]


STEPS = (
    Step(
        "Drop a folder, get a model",
        "The folder `digits` has 1,797 handwritten digits. Uploaded to the route `mnist`, it becomes a run; --follow\n"
        "stays until its model is archived.",
        [("drop", "digits", DROP, "-p", "epochs=3", "--follow")],
    ),
    Step(
        "Train the same data otherwise, and compare",
        "The data are there already, so this submits a run with another learning rate. `compare` shows what differs.",
        [
            ("submit", "mnist", "--data", f"drops/{DROP}", "-p", "epochs=3", "-p", "lr=0.01", "--follow"),
            ("compare", DROP, RUN, "--name", "test_accuracy"),
        ],
    ),
    Step(
        "Lose a node",
        "A longer run. Once it trains, `evict` takes one of its nodes as Azure takes a low-priority one. The job\n"
        "fails, and another job continues the run from its checkpoint; watch the epochs in the log.",
        [
            ("submit", "mnist", "--data", f"drops/{DROP}", "-p", "epochs=12"),
            Tour.await_training,
            ("evict", RUN, "--node", "0"),
            ("logs", RUN, "-f"),
            ("show", RUN),
        ],
    ),
    Step(
        "See the bill",
        "What each run's nodes would have cost in Azure, by the minute. Idle nodes go by themselves.",
        [("cost", "--by", "run"), ("clusters",)],
    ),
    Step(
        "Take the model home, and tidy up",
        "`fetch` checks each file against the archive's manifest. `rm` deletes what a run or a drop left; that\n"
        "it was, and who removed it, stays on record.",
        [("fetch", DROP, "--only", "models"), ("rm", RUN, "--yes"), ("du",)],
    ),
)


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python3 trainyard.py tour", description=__doc__).parse_args(argv)
    up.stop_on_signals()
    began = time.monotonic()
    try:
        with up.one_interrupt():
            _walk()
    except (TourFailed, TimeoutError, PartFailed) as exc:
        say(f"\nThe tour ends here: {exc}")
        return 1
    except AlreadyRunning:
        say("Another tour is under way. Wait for it, or stop it with Ctrl-C where it runs.")
        return 1
    except KeyboardInterrupt:
        say("Stopped; what the tour started is gone.")
        return 130
    say(
        f"\nThat was the tour: {time.monotonic() - began:.0f} s. Its cloud is gone again. A cloud to keep:"
        "\n  python3 trainyard.py up\nNext: docs/index.md, or `python3 trainyard.py --help`."
    )
    return 0


def _walk() -> None:
    say("A cloud for the tour starts: storage, Event Grid, Azure ML and the Functions app, all on this machine.")
    options = Options(say=lambda line: say(f"  {line}"), arm_limits=True)
    with tempfile.TemporaryDirectory() as scratch, Cloud.start(HOME, options) as cloud:
        folder = Path(scratch)
        (folder / "digits").mkdir()
        digits.write(folder / "digits")
        Tour(HOME, folder, cloud.api).walk(STEPS)
    shutil.rmtree(HOME, ignore_errors=True)


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
