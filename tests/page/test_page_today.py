"""The page's first view: what needs attention with its one action, what is running, what happened; and the six
places."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from shared.diagnosis.causes import Cause, Certainty, Diagnosis
from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.runs.model import Moment, RunState
from tests.page.lab import NOW, PATIENCE, Lab, a_run

if TYPE_CHECKING:
    from playwright.sync_api import Route

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

EVIL = "<img src=x onerror=\"document.title='pwned'\">\u202e"


def test_without_a_run_the_view_says_how_to_begin(lab: Lab) -> None:
    """A new deployment shows three commands and the place to drop a folder."""
    page = lab.page()
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    expect(page.locator(".command")).to_have_count(3)
    page.get_by_role("link", name="drop a folder in the browser").click()
    expect(page.get_by_role("heading", name="Drops")).to_be_visible()
    page.close()
    assert lab.faults == []


def test_what_needs_somebody_has_its_reason_and_its_action(lab: Lab) -> None:
    """A failed run with its diagnosis is retried after one confirmation, and a rejected drop leads to its view.
    Active and completed runs are shown, with one request per refresh."""
    now = datetime.now(UTC)
    found = Diagnosis(Cause.CUDA_OOM, Certainty.CERTAIN, f"Out of memory, at {EVIL}.")
    failed = a_run("broke-1", state=RunState.FAILED, created_at=now, history=(Moment(RunState.FAILED, now),))
    lab.system.runs.insert(failed.having(found))
    for name, hours, value in (("before-1", 30, 0.8), ("after-1", 1, 0.9)):
        at = now - timedelta(hours=hours)
        measured = {"best_metrics": {"accuracy": value}, "last_metrics": {"accuracy": value}}
        ended = {"state": RunState.COMPLETED, "history": (Moment(RunState.COMPLETED, at),), "archived_at": at}
        lab.system.runs.insert(a_run(name, created_at=at, **ended, **measured))
    rejected = Drop(DropKey("mnist", EVIL[:20]), DropState.REJECTED, "t", NOW, why=f"No such file: {EVIL}")
    lab.system.drops.insert(rejected)
    asked: list[str] = []
    page = lab.page("health")
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    page.goto(f"{lab.cloud.api}/page#/")
    run = page.locator(".needs li", has_text="broke-1")
    expect(run).to_contain_text(f"Out of memory, at {EVIL}.".replace("\u202e", "⟨U+202E⟩"))
    expect(page.locator(".needs li", has_text="rejected")).to_contain_text("No such file: <img")
    expect(page.get_by_text("accuracy 90.00%, better than before-1 (80.00%)")).to_be_visible()
    assert [url for url in asked if url.startswith("today")], asked
    told = {url.partition("?")[0] for url in asked if not url.startswith("page")}
    assert told <= {"today", "me", "curves", "status"}

    retried: list[str] = []

    def refuse(route: Route) -> None:
        retried.append(route.request.url)
        route.fulfill(status=409, json={"detail": "Not now."})

    page.route("**/runs/broke-1/retry", refuse)
    run.get_by_role("button", name="Try again").click()
    assert retried == []
    run.get_by_role("button", name="Yes, train again").click()
    expect(run.get_by_role("alert")).to_have_text("Not now.")
    assert len(retried) == 1
    assert "pwned" not in page.title()
    assert lab.faults == []
    page.close()


def test_six_places_hold_every_view_and_old_addresses_lead_there(lab: Lab) -> None:
    """A place opens its first view and names the others; the docs are behind the question mark."""
    page = lab.page("runs")
    top = page.get_by_role("navigation", name="Trainyard").get_by_role("link")
    places = ["Today", "Runs", "Data", "Models", "Clusters and money", "Administration"]
    expect(top).to_have_text(places)
    views = {"runs": "Runs", "compare": "Runs", "storage": "Data", "money": "Clusters and money"}
    for view, place in (views | {"health": "Administration"}).items():
        page.goto(f"{lab.cloud.api}/page#/{view}")
        expect(page.locator(".top [aria-current]")).to_have_text(place)
        expect(page.locator(".views [aria-current]")).to_have_count(1)
    for old, new in (("data", "drops"), ("administration", "schedules"), ("costs?by=run", "money?by=run")):
        page.goto(f"{lab.cloud.api}/page#/{old}")
        expect(page).to_have_url(f"{lab.cloud.api}/page#/{new}")
    page.get_by_role("button", name="Help and keys").click()
    page.get_by_role("dialog").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Trainyard's documentation")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert lab.faults == []
    page.close()
