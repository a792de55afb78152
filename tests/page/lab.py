"""A cloud, a browser, and a test's actions on both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from emulators import process
from local import configs
from local.cloud import Cloud
from local.record import REPOSITORY
from shared import wiring
from shared.adapters.storage import account
from shared.adapters.sweeps.studies import JournalStudies
from shared.adapters.sweeps.study_table import TableJournal
from shared.jobs.search import CHOICE, Parameter, Sweep
from shared.jobs.spec import JobSpec
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.settings import Settings
from shared.runs.model import Cost, Moment, Run, RunState
from shared.runs.results.archive import MANIFEST
from shared.runs.results.outputs import archive_folder
from shared.sweeps.model import SweepSummary, TrialOf, TrialState, trial_run
from shared.sweeps.trial_run import SWEEP_TAG
from shared.system import System
from tests.fakes.parts import changed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SHOTS = Path(__file__).resolve().parents[2] / ".trainyard" / "page"
PICTURES = "TRAINYARD_PICTURES"  # "0": save none
PATIENCE = 30_000  # milliseconds that the page has to update by itself
TRAINING = 120_000
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Lab:
    def __init__(self, cloud: Cloud, browser: Browser, data: Path) -> None:
        self.cloud, self.browser, self.data = cloud, browser, data
        self.system: System = wiring.build(Settings.from_env(cloud._parts["host"].env))
        self.faults: list[str] = []

    def context(self, **more: Any) -> BrowserContext:
        return self.browser.new_context(viewport={"width": 1280, "height": 900}, **more)

    def page(self, view: str = "", context: BrowserContext | None = None, api: str = "", **more: Any) -> Page:
        """Open a tab on a view. Console errors and violations of the page's policy are collected in `faults`."""
        page = (context or self.context(**more)).new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._hear)
        page.goto(f"{api or self.cloud.api}/page#/{view}")
        return page

    @contextmanager
    def other_app(self, settings: dict[str, str], config: dict[str, Any]) -> Iterator[str]:
        """Start a second host of the same app on the same storage, with other settings; return the address of its
        API."""
        file = self.cloud.home / "configs" / "other.json"
        file.write_text(json.dumps({**configs.host(REPOSITORY), **config}))
        argv = [sys.executable, "-m", "emulators.host", "--config", str(file)]
        env = {**self.cloud._parts["host"].env, **settings}
        part = process.start("other", argv, log=self.cloud.log("other"), env=env)
        try:
            yield f"{part.info['url']}/api"
        finally:
            part.stop()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Call the API as the command line does, without the browser."""
        answer = httpx.request(method, f"{self.cloud.api}/{path}", json=body, timeout=120)
        answer.raise_for_status()
        return answer.json()

    def _hear(self, said: ConsoleMessage) -> None:
        """Collect errors of the console as faults of the page, except messages about resources that failed to load."""
        if said.type == "error" and not said.text.startswith("Failed to load resource"):
            self.faults.append(said.text)

    def shot(self, page: Page, name: str) -> None:
        """Save a picture of the whole page as build output, unless the gate asks for none."""
        if os.environ.get(PICTURES) != "0":
            SHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SHOTS / f"{name}.png", full_page=True)

    def archived(self, run: Run, files: dict[str, bytes]) -> Run:
        """A run that completed some time ago, with these files as its archive, as the archive's handler leaves it."""
        moments = tuple(
            Moment(state, run.created_at + timedelta(seconds=10 * i))
            for i, state in enumerate((RunState.RECEIVED, RunState.SUBMITTED, RunState.RUNNING, RunState.COMPLETED))
        )
        ended = changed(run, state=RunState.COMPLETED, history=moments, archived_at=run.created_at + timedelta(hours=1))
        folder = archive_folder(ended)
        for name, data in files.items():
            self.system.blobs.write(OUTPUT_CONTAINER, f"{folder}/{name}", data, "application/octet-stream")
        rows = [{"name": name, "size": len(data), "md5": "", "etag": "x"} for name, data in files.items()]
        manifest = {"manifest_version": 2, "files": rows, "outputs": [], "run": {}}
        self.system.blobs.write(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", _json(manifest), "application/json")
        self.system.runs.insert(ended)
        return ended


def a_sweep(lab: Lab, name: str) -> Run:
    """An ended sweep of ten trials, with a study of their parameters and values."""
    sizes = ("small", "large")
    space = {"lr": Parameter("loguniform", (), -9.0, -1.0), "size": Parameter(CHOICE, sizes)}
    sweep = Sweep(space, "test_accuracy", sampling="random", most_trials=10)
    tables = account.clients(Settings.from_env(lab.cloud._parts["host"].env).storage).table
    study = JournalStudies(lambda journal: TableJournal(lambda: tables, journal)).open(name, sweep)
    for number in range(10):
        told, drawn = 0.5 + number / 25, {"lr": 0.0002 * 2**number, "size": sizes[number % 2]}
        study.add_values(study.add(drawn), [told])
        study.end(number, TrialState.COMPLETED, told)
        best = {"best_metrics": {"test_accuracy": told}, "cost": Cost(0.01 * number, 0.0, 0.0, 1.0, NOW)}
        of_sweep = {"tags": {SWEEP_TAG: name}, "parameters": drawn}
        lab.archived(a_run(trial_run(name, number), **of_sweep, **best).having(TrialOf(name)), {})
    study.commit()
    standing = SweepSummary(begun=10, ended=10, best=trial_run(name, 9), best_value=0.86, dollars=0.45)
    parent = {"kind": "sweep", "cluster": "", "nodes": 0, "request": JobSpec(sweep=sweep)}
    return lab.archived(a_run(name, **parent).having(standing), {})


def a_run(name: str, **more: Any) -> Run:
    """A run as `ask` makes it, of the trainer mnist."""
    given = {"drop": "", "route": "mnist", "fingerprint": "f" * 64, "experiment": "mnist", "cluster": "cpu-cluster"}
    return Run.of(**{"name": name, **given, "nodes": 2, "created_at": NOW, **more})


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
