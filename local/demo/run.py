"""`python3 trainyard.py demo`: drop a data set into a local cloud and watch it become a trained model."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient
from rich.console import Console

from cli.api.client import Api
from cli.errors import CliError
from cli.setup.file_trust import Untrusted
from cli.show import plot, png
from emulators.process import PartFailed
from local import cloud, record, up
from local.demo import claims, data, summary
from local.demo.follow import Stuck, follow, users
from local.demo.phases import CLOUD, UPLOAD, Seen
from local.demo.view import Screen, View, open_view

ROUTE = "mnist"
PIPE_WIDTH = 120  # characters of a line, without a terminal that gives its width
PLOTS = record.REPOSITORY / ".trainyard" / "demo"


@dataclass(frozen=True)
class Choice:
    """The options of the user. `data` None means scikit-learn's digits."""

    data: Path | None
    epochs: int | None
    as_json: bool
    keep: bool
    home: Path

    @property
    def least_accuracy(self) -> float:
        """Return the run's required accuracy with these options; 0 for other data or epochs."""
        return claims.DIGITS_ACCURACY if self.data is None and self.epochs is None else 0.0


def main(argv: list[str] | None = None) -> int:
    choice = parse(argv)
    up.stop_on_signals()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    demo = Demo(choice, console)
    try:
        with up.one_interrupt():
            return demo.run()
    except (data.NoData, PartFailed, Stuck, CliError) as exc:
        console.print(f"\nThe demo failed: {exc}\n{demo.left()}", style="red", markup=False)
        demo.say_failure(str(exc))
    except Untrusted as exc:
        console.print(str(exc), style="red", markup=False)
    except cloud.AlreadyRunning as exc:
        console.print(f"{exc} Wait for it, or stop it with `python3 trainyard.py down`.")
    except KeyboardInterrupt:
        demo.forget()
        console.print("\nStopped; what the demo started is gone.")
        return 130
    return 1


def parse(argv: list[str] | None) -> Choice:
    parser = argparse.ArgumentParser(prog="python3 trainyard.py demo", description=__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with MNIST's four IDX files (.gz or not)")
    parser.add_argument("--epochs", type=int, metavar="N", help="how long to train; default: the trainer's own")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object as the last line")
    parser.add_argument("--keep", action="store_true", help="keep the cloud up afterwards, until Ctrl-C")
    parser.add_argument(
        "--home", type=Path, default=record.HOME, help="folder of the cloud's state; default %(default)s"
    )
    options = parser.parse_args(argv)
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs is {options.epochs}; it must be 1 or more")
    if options.data:  # relative to the user's folder, not to the folder of this program
        options.data = Path(os.environ.get("TRAINYARD_CWD", ".")).resolve() / options.data
    return Choice(**vars(options))


class Demo:
    def __init__(self, choice: Choice, console: Console) -> None:
        self.choice, self.console = choice, console
        began = datetime.now(UTC)
        self.drop = f"{ROUTE}/{'data' if choice.data else 'digits'}-{began:%Y%m%d-%H%M%S}"
        self.screen = Screen(f"Trainyard: drops/{self.drop}", Seen(began))
        self._cloud: cloud.Cloud | None = None
        self.home = choice.home

    def run(self) -> int:
        """Run the whole demo. Returns the exit status: 0 only if every claim holds."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            with open_view(self.console, self.screen) as view:
                self._say_part("the data set")
                files = data.files(self.choice.data, Path(folder))
                where = stack.enter_context(self._somewhere())
                self._drop(where, files, view)
                api = stack.enter_context(Api(where.api))
                follow(api, self.screen, self.drop, lambda: self._between(view))
            holds = self._conclude(where, api)
            if self.choice.keep:
                self._stay()
        if holds:
            self.forget()
        return 0 if holds else 1

    def forget(self) -> None:
        """Remove the folder of the demo's own cloud, if any."""
        if self.home != self.choice.home:
            shutil.rmtree(self.home, ignore_errors=True)

    def left(self) -> str:
        """Return where the logs of a failed demo are, and how to remove them."""
        where = f"The logs are in {self.home / 'logs'}."
        own = self.home != self.choice.home
        return f"{where} `python3 trainyard.py down --purge` removes them, and the other cloud." if own else where

    def say_failure(self, why: str) -> None:
        """Print the last line. With --json, the line is an object, even if the demo failed."""
        if self.choice.as_json:
            run = self.screen.seen.run
            told = {"run": run.get("run", ""), "state": run.get("state", ""), "error": why}
            sys.stdout.write(json.dumps(told) + "\n")

    @contextlib.contextmanager
    def _somewhere(self) -> Iterator[record.Record]:
        """A running cloud, left running; or a new cloud, stopped at the end.

        If others use the running cloud, the demo starts its own cloud beside it, so that neither waits for the other.
        """
        seen = self.screen.seen
        found = record.read(self.choice.home)
        if found and (busy := _users(found)):
            self.console.print(f"The local cloud that is up is busy with {busy[0]}; the demo starts one beside it.")
            self.home, found = record.beside(self.home), None
        if found:
            self.screen.notes[CLOUD] = f"the one that is up since {found.started_at}"
            seen.cloud_up = datetime.now(UTC)
            yield found
            return
        with cloud.Cloud.start(self.home, cloud.Options(say=self._say_part, arm_limits=True)) as own:
            self.screen.notes[CLOUD] = own.api
            seen.cloud_up = datetime.now(UTC)
            self._cloud = own
            yield own.record

    def _say_part(self, line: str) -> None:
        self.screen.notes[CLOUD] = line

    def _drop(self, where: record.Record, files: list[Path], view: View) -> None:
        """Upload the data set with a plain blob client, and the marker that completes the drop at the end."""
        epochs = self.choice.epochs
        marker, content = ("job.yaml", f"inputs:\n  epochs: {epochs}\n") if epochs else ("_SUCCESS", "")
        with ContainerClient.from_connection_string(where.connection_string, "drops") as drops:
            for file in files:
                drops.upload_blob(f"{self.drop}/{file.name}", file.read_bytes())
            drops.upload_blob(f"{self.drop}/{marker}", content.encode())
        size = sum(file.stat().st_size for file in files)
        self.screen.notes[UPLOAD] = f"{len(files)} files, {size / 1000:,.0f} kB, and {marker}"
        self.screen.seen.uploaded = datetime.now(UTC)
        view.update()

    def _between(self, view: View) -> None:
        view.update()
        if self._cloud:
            self._cloud.heal()

    def _conclude(self, where: record.Record, api: Api) -> bool:
        """Check every claim against the storage itself, draw the curves, and print the result."""
        seen = self.screen.seen
        archive = claims.read_archive(where.connection_string, seen.run)
        row = claims.read_row(where.connection_string, seen.run["run"])
        checked = claims.check(seen, archive, row, self.choice.least_accuracy)
        picture = _draw(api, seen.run, archive)
        self.console.print()
        self.console.print(summary.as_table(seen, archive, checked, picture))
        if failed := [claim.text for claim in checked if not claim.holds]:
            self.console.print(f"\nNot true: {'; '.join(failed)}.\nLogs: {self.home / 'logs'}", style="bold red")
        self.console.print(f"\n{self._page_address(where)}", highlight=False, soft_wrap=True)
        if self.choice.as_json:
            sys.stdout.write(json.dumps(summary.as_json(seen, archive, picture)) + "\n")
            sys.stdout.flush()
        return not failed

    def _page_address(self, where: record.Record) -> str:
        """Return the address of the run's page while its cloud is running, otherwise how to start the cloud."""
        page = f"{where.api}/page#/run/{self.screen.seen.run['run']}"
        if self.choice.keep:
            return f"Look at it: {page}\nThe cloud stays up until Ctrl-C."
        if self._cloud is None:
            return f"Look at it: {page}"
        return "Look at such a run in a browser: python3 trainyard.py demo --keep"

    def _stay(self) -> None:
        while self._cloud:
            time.sleep(up.CHECK_SECONDS)
            self._cloud.heal()


def _users(found: record.Record) -> list[str]:
    with Api(found.api) as api:
        return users(api)


def _draw(api: Api, run: dict[str, Any], archive: claims.Archive) -> Path | None:
    """Draw the curves as `metrics --png` does; None if the run has no metrics."""
    series: dict[str, Any] = api.get("runs", run["run"], "metrics")["series"]
    if not (curves := plot.curves_of(series, plot.telling(list(series)))):
        return None
    file = PLOTS / f"{run['run']}.png"
    png.draw(curves, f"{run['run']} · {run['drop']}", file, summary.in_a_line(run, archive))
    return file
