"""The page with unusual names and numbers: names of JavaScript's own objects, very long names, markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.elastic.model import Loss
from shared.pipelines.model import PipelineSteps
from shared.runs.model import Moment, RunState
from tests.fakes.parts import changed
from tests.page.lab import NOW, PATIENCE, Lab, a_run
from tests.page.made_up_runs import STEPS, elastic

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

EVIL = "<img src=x onerror=\"document.title='pwned'\">"
NAMES = ("constructor", "__proto__", "toString", "hasOwnProperty", "w" * 3000, EVIL, "\u202eright", "לרוחב")
SEEN = [name.replace("\u202e", "⟨U+202E⟩") for name in NAMES]
FITS = "document.documentElement.scrollWidth <= innerWidth"
TOO_WIDE = """() => [...document.querySelectorAll("main *")]
    .filter((each) => each.getBoundingClientRect().left + each.scrollWidth > innerWidth + 1)
    .map((each) => `${each.tagName}.${each.className} in ${each.parentElement.className}`).slice(0, 20)"""


def is_sound(lab: Lab, page: Page) -> None:
    """Check that the view is as wide as its window, on a desktop and on a phone, and that no name ran as code."""
    for width in (1440, 375):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(300)  # charts adapt to a new width after a moment
        assert page.evaluate(FITS), f"{page.url} is too wide for {width}: {page.evaluate(TOO_WIDE)}"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.locator("img[src=x]").count() == 0
    assert "pwned" not in page.title()
    assert lab.faults == []


def hostile_run(lab: Lab, name: str, value: float) -> str:
    """A run with hostile names of metrics, parameters and tags."""
    rows = [{"step": step, **dict.fromkeys(NAMES, value + step / 10)} for step in range(3)]
    metrics = dict.fromkeys(NAMES, value)
    run = a_run(
        name,
        **{"parameters": dict.fromkeys(NAMES, value), "tags": dict.fromkeys(NAMES, "x" * 3000)},
        **{"best_metrics": metrics, "last_metrics": metrics, "experiment": "constructor", "owner": EVIL},
    )
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    return lab.archived(run, {"metrics/metrics.jsonl": text.encode()}).name


def test_hostile_names_of_everything_are_only_names(lab: Lab) -> None:
    """Each metric has its curve and each parameter its value, in comparisons, lists and a model's version."""
    one, two = (hostile_run(lab, f"named-{i}", i / 4) for i in (1, 2))
    lab.system.runs.insert(a_run("plain-1", parameters={"lr": 0.1}))
    page = lab.page(f"run/{one}")
    expect(page.locator(".chart h3")).to_have_text(SEEN, use_inner_text=False)
    expect(page.locator(".chart canvas")).to_have_count(len(NAMES))
    expect(page.locator(".facts").first).to_contain_text("__proto__=0.25")
    is_sound(lab, page)
    page.goto(f"{lab.cloud.api}/page#/compare?runs={one},{two},plain-1")
    expect(page.locator(".chart canvas")).to_have_count(len(NAMES))
    for name in ("constructor", "__proto__", "toString"):
        header = page.locator("th", has_text=re.compile(f"^{name}"))
        row = page.locator("table.compare tbody tr", has=header).first
        expect(row.locator("td")).to_have_text(["0.25", "0.5", ""])
    is_sound(lab, page)
    page.goto(f"{lab.cloud.api}/page#/runs?q=named")
    expect(page.locator("tr[data-row]")).to_have_count(2)
    is_sound(lab, page)
    for where in ("constructor", "__proto__", "toString/valueOf", "run/constructor", "drops/__proto__/constructor"):
        page.goto(f"{lab.cloud.api}/page#/{where}")
        expect(page.locator("h1, .notice").first).to_be_visible()
        expect(page.get_by_role("heading", name="This view broke")).to_have_count(0)
    is_sound(lab, page)
    page.close()


def test_hostile_names_in_a_models_versions(lab: Lab) -> None:
    """A version with such metric names is listed with them; a metric that only one version has gets no curve."""
    for number, more in ((1, {}), (2, {"constructor": 0.5, "w" * 3000: 1.0})):
        metrics = {"accuracy": 0.8 + number / 100, "__proto__": 0.25, **more}
        run = a_run(f"odd-{number}", best_metrics=metrics, last_metrics=metrics)
        lab.archived(run, {"models/model.safetensors": b"x" * number})
        lab.api("POST", "models/oddly/versions", {"run": run.name, "alias": "production", "why": EVIL})
    page = lab.page("models")
    card = page.locator(".card", has=page.get_by_role("heading", name="oddly"))
    expect(card.locator("dt")).to_have_text(["accuracy", "__proto__"])
    expect(card.locator("dd").first).to_have_text("82.00%")
    expect(card.locator("tbody tr").first).to_contain_text("accuracy 82.00%, ")
    is_sound(lab, page)
    page.close()


def test_a_fault_of_the_page_is_not_shown_as_one_of_the_api(lab: Lab) -> None:
    """An answer that the page can't read breaks only this view, which shows an error; the next view works."""
    lab.archived(a_run("broken-1"), {})
    lab.archived(a_run("sound-1"), {})
    page = lab.page("health")
    page.route("**/runs/broken-1/live*", lambda route: route.fulfill(json={"run": {}, "metrics": {"series": {}}}))
    page.goto(f"{lab.cloud.api}/page#/run/broken-1")
    expect(page.get_by_role("heading", name="This view broke")).to_be_visible()
    assert lab.faults
    page.goto(f"{lab.cloud.api}/page#/run/sound-1")
    expect(page.get_by_role("heading", name="sound-1")).to_be_visible()
    page.close()


def test_an_elastic_runs_logs_are_one(lab: Lab) -> None:
    """Each line is prefixed with its job, even after the first job was evicted; losses, nodes and limits are shown."""
    members = replace(elastic(), losses=(Loss(NOW + timedelta(seconds=14), 1, 1, "Its node was evicted."),))
    jobs = {"m0-1": b"one\ntwo\n", "m1-1": b"three\nunfinished", "m1-2": b"four\n", "m2-1": "fünf\n".encode()}
    files = {f"logs/{job}/std_log_process_0.txt": text for job, text in jobs.items()}
    lab.archived(a_run("many-jobs", nodes=4).having(members), files)
    page = lab.page("run/many-jobs")
    lines = page.locator(".log-line pre")
    expect(lines).to_have_text(
        ["m0-1 | one", "m0-1 | two", "m1-1 | three", "m1-1 | unfinished", "m2-1 | fünf", "m1-2 | four"]
    )
    facts = page.locator("aside .facts").first
    expect(facts).to_contain_text("1 to 4")
    expect(facts).to_contain_text(f"{members.resubmitted} of 4 used")
    lost = page.locator(".history li", has_text="lost")
    expect(lost).to_contain_text("m1-1: Its node was evicted.")
    page.locator(".log-tools select").select_option("m1-2")
    expect(lines).to_have_text(["four"])
    expect(page).to_have_url(re.compile("rank=5"))
    page.close()
    assert lab.faults == []


def test_a_failed_pipeline_opens_with_the_log_of_its_failed_step(lab: Lab) -> None:
    """The log of the failed step is above the curves; steps are chosen by name."""
    run = a_run("steps-failed", kind="pipeline", reason="It exited with 3.").having(PipelineSteps(STEPS))
    run = lab.archived(run, {"logs/fit.train/std_log_process_0.txt": b"it broke\n"})
    stored = lab.system.runs.get(run.name)
    ended = (*run.progress.history[:-1], Moment(RunState.FAILED, run.progress.history[-1].at))
    lab.system.runs.update(stored, changed(stored.value, state=RunState.FAILED, history=ended))
    page = lab.page(f"run/{run.name}")
    expect(page.locator(".log-tools select")).to_have_value("2")
    expect(page.locator(".log-tools select").locator("option")).to_have_text(["prepare", "fit", "fit.train"])
    parts = page.locator("section.part h2")
    expect(parts).to_have_text(["Steps", "Log", "Curves", "Files"])
    page.close()


def test_health_answers_without_storage(lab: Lab) -> None:
    """With storage away, the view names the unavailable service, and does not claim that no message is left."""
    storage = lab.cloud._parts["storage"].part.process
    page = lab.page("health")
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    storage.kill()
    storage.wait()
    try:
        expect(page.locator("li", has_text="storage")).not_to_contain_text("answers", timeout=60_000)
        expect(page.get_by_text("are unknown while storage does not answer")).to_be_visible()
        expect(page.get_by_text("There are no poison messages.")).to_have_count(0)
    finally:
        lab.cloud.heal()
    expect(page.get_by_text("There are no poison messages.")).to_be_visible(timeout=60_000)
    page.close()
