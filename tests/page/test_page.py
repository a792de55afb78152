"""The page in a real browser, against the real local cloud."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emulators.process import wait_for
from shared.runs.model import RunState
from tests.page.lab import NOW, PATIENCE, TRAINING, Lab, a_run, a_sweep
from tests.page.made_up_runs import queue_a_run, two_that_compare

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Response

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
expect.set_options(timeout=PATIENCE)


def drag(page: Page, folder: Path) -> None:
    """Drag a folder of the machine's own files onto the page and drop it."""
    box = page.locator(".zone").bounding_box()
    assert box
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    with_devtools = page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        with_devtools.send("Input.dispatchDragEvent", {"type": step, "data": data, **at})


@pytest.fixture(scope="module")
def trained(shared_lab: Lab) -> str:
    """The archived run of a folder dropped on the page."""
    page = shared_lab.page("drops")
    called = {"x-trainyard-caller": "Ann%20%C3%96"}  # the header that sign-in would set
    page.route("**/api/drops/**", lambda route: route.continue_(headers={**route.request.headers, **called}))
    expect(page.get_by_label("Choose a folder")).to_be_attached()
    drag(page, shared_lab.data)
    expect(page.get_by_label("Name of the drop")).to_have_value(shared_lab.data.name)
    page.locator(".zone select").select_option("mnist")
    page.get_by_label("Name of the drop").fill("from-the-page")
    page.get_by_role("button", name="Upload").click()
    page.locator(".notice.good a").wait_for(timeout=TRAINING)
    page.locator(".notice.good a").click()
    expect(page.locator(".head .state")).to_have_text("completed", timeout=TRAINING)
    name = page.locator("h1").inner_text()
    expect(page.get_by_text("models/model.safetensors")).to_be_visible()
    page.close()
    assert shared_lab.faults == []
    return name


def test_a_folder_becomes_a_model_while_the_page_follows(lab: Lab, trained: str) -> None:
    """A folder dropped on the page is uploaded straight to storage and trained; the page has its curves, the log of
    every rank and its files. The run belongs to the signed-in person."""
    assert lab.api("GET", f"runs/{trained}")["owner"] == "Ann Ö"
    page = lab.page(f"run/{trained}")
    expect(page.locator(".chart h3", has_text="test_accuracy").first).to_be_visible()
    expect(page.locator(".log")).to_contain_text("processes 2")
    page.get_by_label("Rank").select_option("1")
    expect(page.locator(".log-size")).to_contain_text("line")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download models/model.json").click()
    assert b"accuracy" in download.value.path().read_bytes()
    page.get_by_label("A note on this run").fill("<b>the best</b> so far")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".card", has_text="Notes").locator("li")).to_contain_text("<b>the best</b> so far")
    assert [note["text"] for note in lab.api("GET", f"runs/{trained}")["notes"]] == ["<b>the best</b> so far"]
    tag = page.get_by_label("A tag: name=value")
    for text in ("stage=draft", "team=<b>vision</b>"):
        tag.fill(text)
        tag.press("Enter")
        expect(page.locator(".tags li", has_text=text)).to_be_visible()
        expect(tag).to_be_focused()
    page.get_by_role("button", name="Remove the tag stage").press("Enter")
    expect(page.locator(".tags li")).to_have_count(1)
    expect(tag).to_be_focused()
    assert lab.api("GET", f"runs/{trained}")["tags"] == {"team": "<b>vision</b>"}
    tag.fill("no value")
    tag.press("Enter")
    expect(page.locator(".tags li")).to_have_count(1)
    assert lab.faults == []
    page.close()


VIEWS = {  # each view, and what it shows once it has its data
    "today": ".today .part",
    "runs": "tr[data-row] .spark",
    "run": ".chart canvas",
    "members": ".timeline .life",
    "steps": ".timeline .node",
    "sweep": ".bars progress",
    "compare": ".parallel text",
    "drops": "tr[data-row]",
    "drop": ".notice.good a",
    "clusters": ".timeline",
    "money": ".big",
    "models": ".card .spark",
    "schedules": ".scroll tr",
    "storage": ".lines li, .scroll tr",
    "health": ".scroll tr",
    "settings": ".scroll tr",
    "keys": ".card .facts",
    "docs": ".prose li",
}

RULES: dict[str, dict[str, object]] = {  # axe's; the dark theme changes nothing but colors
    "light": {},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}


@pytest.fixture(scope="module")
def lived_in(shared_lab: Lab, trained: str) -> None:
    """A cloud with content in every view: a schedule, subscriptions, removed things, a model of two versions."""
    run = {"trainer": "mnist", "data": "drops/mnist/from-the-page"}
    schedule = shared_lab.api("POST", "schedules", {"run": run, "cron": "0 6 * * 1", "timezone": "Europe/Berlin"})
    shared_lab.api("POST", f"schedules/{schedule['id']}/pause")
    shared_lab.api("POST", "schedules", {"run": run, "route": "mnist", "new_files": 1_000_000})
    shared_lab.api("POST", "notices", {"on": ["failed", "completed"], "to": "ada@example.org", "route": "mnist"})
    shared_lab.archived(a_run("gone-1"), {"models/model.pt": b"x" * 5000})
    shared_lab.api("POST", "runs/gone-1/remove")
    for number in (1, 2):
        accuracy = {"test_accuracy": 0.8 + number / 100}
        made = a_run(f"kept-{number}", best_metrics=accuracy, last_metrics=accuracy)
        shared_lab.archived(made, {"models/model.safetensors": b"x" * number})
        shared_lab.api("POST", "models/digits/versions", {"run": made.name, "alias": "production", "why": "better"})


def test_schedules_notices_and_storage_are_shown_and_changed(lab: Lab, lived_in: None) -> None:
    """A schedule is paused and resumed, and removed things and storage use are shown, all as the API has them."""
    page = lab.page("schedules")
    card = page.locator(".card", has_text="Europe/Berlin")
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("button", name="Pause")).to_be_visible()
    assert [one["paused"] for one in lab.api("GET", "schedules")] == [False, False]
    expect(page.locator("tr", has_text="failed")).to_contain_text("mnist")
    page.goto(f"{lab.cloud.api}/page#/storage")
    expect(page.locator("tr", has_text="gone-1")).to_be_visible()
    page.get_by_role("button", name="Count now").click()
    expect(page.locator(".bars li", has_text="Archives").locator("b")).to_have_text(re.compile(r"\d [kM]?B$"))
    page.close()
    assert lab.faults == []


def expect_contents(page: Page, view: str) -> None:
    """Check that the view draws the runs made for it."""
    if view == "members":
        expect(page.locator(".timeline .end")).to_have_count(1)
        expect(page.locator(".pictures img")).to_have_js_property("naturalWidth", 1)
    if view == "steps":
        expect(page.locator(".timeline .edge")).to_have_count(3)
        expect(page.get_by_role("row", name="evaluate")).to_contain_text("skipped")
    if view == "sweep":
        expect(page.locator(".parallel path")).to_have_count(10)
        expect(page.locator(".parallel text", has_text="large")).to_be_visible()
        expect(page.get_by_role("row", name="9 Best")).to_contain_text("86.00%")
    if view == "compare":
        expect(page.locator(".parallel path")).to_have_count(3)


def test_no_view_breaks_a_rule_of_accessibility(lab: Lab, trained: str, lived_in: None) -> None:
    """axe finds nothing on any view, in both themes; a picture of each view is saved, also at the width of a phone."""
    two_that_compare(lab)
    lab.system.runs.insert(a_run("broke-1", state=RunState.FAILED, created_at=datetime.now(UTC), reason="It exited."))
    places = {
        "run": f"run/{trained}",
        "members": "run/cifar-1",
        "steps": "run/mnist-1",
        "sweep": f"run/{a_sweep(lab, 'swept').name}",
        "compare": f"compare?runs={trained},mnist-1,cifar-1",
        "drop": "drops/mnist/from-the-page",
    }
    page, broken_rules = lab.page(), list[object]()
    for view in VIEWS:
        if view == "clusters":
            queue_a_run(lab)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(f"{lab.cloud.api}/page#/{places.get(view, view)}")
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator(VIEWS[view]).first).to_be_visible()
        if view == "clusters":
            expect(page.get_by_role("link", name="waits-for-nodes")).to_be_visible()
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for width, height in ((1440, 900), (375, 800)):
                page.set_viewport_size({"width": width, "height": height})
                expect(page.locator("main .notice", has_text="Loading")).to_have_count(0)
                lab.shot(page, f"{view}-{theme}-{width}")
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
            broken_rules += [
                (view, theme, rule["id"], [n["html"][:200] for n in rule["nodes"]][:3])
                for rule in Axe().run(page, options=RULES[theme]).response["violations"]
            ]
        expect_contents(page, view)
    assert broken_rules == []
    assert lab.faults == []
    page.close()


def news_with(status: int) -> Callable[[Response], bool]:
    """An answer to the request for changes in the list."""
    return lambda response: "rows?changes" in response.url and response.status == status


def test_a_refresh_asks_only_for_what_changed(lab: Lab, trained: str) -> None:
    """The list is requested once; each later refresh is one request, answered with 304 or with the new rows."""
    page, later = lab.page("runs"), list[str]()
    expect(page.get_by_role("link", name=trained)).to_be_visible()
    page.on("request", lambda request: later.append(request.url.partition("/api/")[2]))
    for status in (200, 304):
        with page.expect_response(news_with(status)):
            page.evaluate("dispatchEvent(new Event('online'))")  # refreshes at once
    new = f"new-{len(later)}"
    with page.expect_response(news_with(200)) as news:
        lab.system.runs.insert(a_run(new, created_at=datetime.now(UTC)))
        page.evaluate("dispatchEvent(new Event('online'))")
    told = [row["run"] for row in news.value.json()["rows"]]
    assert told[0] == new
    # The books may also have written a cost on each made-up run of an earlier test.
    assert len([name for name in told if not name.startswith(("swept", "cifar-1")) and name != "mnist-1"]) <= 3
    expect(page.locator("tr[data-row]").first).to_contain_text(new)
    assert [url for url in later if not url.startswith(("rows?changes=", "curves?"))] == []
    page.close()


def test_a_message_that_was_set_aside_goes_back_by_its_button(lab: Lab, trained: str) -> None:
    """The page shows a dead-lettered message, returns it to its queue on request, and then shows that none is left."""
    message = {
        "eventType": "Microsoft.Storage.BlobCreated",
        "subject": "/blobServices/default/containers/drops/blobs/nowhere/left-1/a.bin",
        "eventTime": NOW.isoformat(),
        "data": {"api": "PutBlob"},
    }
    lab.system.queues.put("drop-events-poison", json.dumps(message))
    page = lab.page("health")
    expect(page.locator("pre.reason")).to_contain_text("left-1")
    page.get_by_role("button", name="Give back").click()
    page.get_by_role("button", name="Yes, give back").click()
    expect(page.locator(".notice.good")).to_have_text("1 went back")
    expect(page.get_by_text("There are no poison messages.")).to_be_visible()
    assert lab.api("GET", "status")["queues"]["drop-events"]["poison"] == 0
    wait_for(lambda: any(drop["drop"] == "nowhere/left-1" for drop in lab.api("GET", "drops")), 30, "its handling")
    page.close()
    assert lab.faults == []


def test_two_tabs_agree(lab: Lab, trained: str) -> None:
    """A tab shows another tab's changes by itself; a canceled run can be retried."""
    job = {"command": "sleep 600", "environment": "azureml:trainyard@latest", "compute": "azureml:cpu-cluster"}
    name = lab.api("POST", "runs", {"job": job, "experiment": "sleeps"})["run"]
    context = lab.context()
    one, two = lab.page(f"run/{name}", context), lab.page("runs", context)
    expect(two.locator(f"[data-row={name}] .state")).to_have_text("running", timeout=TRAINING)
    one.get_by_role("button", name="Cancel", exact=True).click()
    one.get_by_role("button", name="Yes, end it").click()
    expect(two.locator(f"[data-row={name}] .state")).to_have_text("canceled", timeout=TRAINING)
    expect(one.locator(".head .state")).to_have_text("canceled")
    one.get_by_role("button", name="Try again").click()
    one.get_by_role("button", name="Yes, train again").click()
    expect(one.locator("h1")).not_to_have_text(name)
    again = one.locator("h1").inner_text()
    expect(two.locator(f"[data-row={again}]")).to_be_visible()
    lab.api("POST", f"runs/{again}/cancel")
    context.close()
    assert lab.faults == []


def test_the_page_outlives_the_api(lab: Lab, trained: str) -> None:
    """While the API is away, the page says so and keeps its content; once the API is back, the page resumes by
    itself."""
    page = lab.page("runs")
    expect(page.get_by_role("link", name=trained)).to_be_visible()
    host = lab.cloud._parts["host"].part.process
    host.kill()
    host.wait()
    expect(page.get_by_role("alert")).to_contain_text("The API does not answer")
    expect(page.get_by_role("link", name=trained)).to_be_visible()
    assert lab.cloud.heal() == ["host"]
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


def principal(role: str) -> dict[str, str]:
    """App Service's header for a signed-in caller."""
    claims = [{"typ": "roles", "val": role}, {"typ": "preferred_username", "val": "ada@example.org"}]
    told = {"auth_typ": "aad", "claims": claims, "name_typ": "name", "role_typ": "roles"}
    return {"X-MS-CLIENT-PRINCIPAL": base64.b64encode(json.dumps(told).encode()).decode()}


def test_a_reader_has_no_button_that_would_fail(lab: Lab, trained: str, lived_in: None) -> None:
    """With Entra ID a reader sees everything and can change nothing. A caller without a role reads which role is
    missing, and can sign out; an anonymous caller gets a page that explains how to sign in."""
    lab.archived(a_run("seen-by-all"), {})
    with lab.other_app({"TRAINYARD_AUTH": "entra", "WEBSITE_AUTH_ENABLED": "true"}, {}) as api:
        for role, buttons in (("trainyard.reader", 0), ("trainyard.contributor", 1), ("trainyard.coder", 1)):
            page = lab.page("run/seen-by-all", api=api, extra_http_headers=principal(role))
            expect(page.locator(".head .state")).to_have_text("completed")
            expect(page.locator(".who")).to_have_text("ada@example.org")
            expect(page.get_by_role("button", name="Try again")).to_have_count(buttons)
            page.goto(f"{api}/page#/drops")
            expect(page.get_by_label("Choose a folder")).to_have_count(buttons)
            page.goto(f"{api}/page#/clusters")
            expect(page.get_by_role("button", name="Hold nodes")).to_have_count(buttons)
            page.goto(f"{api}/page#/schedules")
            expect(page.locator("main .card").first).to_be_visible()
            expect(page.locator("main button")).to_have_count(7 * buttons)
            page.context.close()
        page = lab.page("runs", api=api, extra_http_headers=principal("another"))
        expect(page.get_by_role("alert")).to_contain_text("This needs the role trainyard.reader. An administrator")
        expect(page.get_by_role("link", name="Sign out")).to_be_visible()
        page.context.close()
        page = lab.page("runs", api=api)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_role("link", name="Sign in with Microsoft Entra ID")).to_be_visible()
        page.context.close()


def test_a_view_asks_for_little(lab: Lab, trained: str, lived_in: None) -> None:
    """Besides the request for the caller's identity, a view starts with at most three requests, none of them twice."""
    page, urls, of_run = (
        lab.page("health"),
        list[str](),
        {"run": f"run/{trained}", "compare": f"compare?runs={trained}"},
    )
    page.on("request", lambda request: urls.append(request.url.partition("/api/")[2]))
    for view, sign in VIEWS.items():
        if view in ("members", "steps", "sweep", "drop"):  # covered by run and drops
            continue
        page.goto("about:blank")
        urls.clear()
        page.goto(f"{lab.cloud.api}/page#/{of_run.get(view, view)}")
        expect(page.locator(sign.replace(".parallel text", ".chart canvas")).first).to_be_visible()
        first = [url for url in urls if url and url != "me" and not url.startswith("page")]
        fewest = 0 if view == "docs" else 1  # the docs are a file of the page
        assert fewest <= len(set(first)) <= 3, (view, first)
        assert len(first) <= len(set(first)) + 1, (view, first)  # one request may be the next refresh
    page.close()


def works_on_a_run_by_keyboard(page: Page) -> None:
    """By keyboard, a curve is zoomed, a log line is linked, times become dates, and a note survives a new sign-in."""
    spoken, plot = page.locator("#spoken"), page.locator(".plot").first
    plot.press("+")
    expect(spoken).to_have_text(re.compile(r"Shown: .* to "))
    plot.press("0")
    expect(spoken).to_have_text("Everything is shown")
    page.get_by_role("button", name="Log", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Log")).to_be_focused()
    page.locator(".log").focus()
    for key in ("Tab", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile("line=3$"))
    page.keyboard.press("a")
    expect(page.locator("aside time").first).to_have_text(re.compile(r"^[A-Z][a-z]+ \d+, \d+:\d\d"))
    page.get_by_label("A note on this run").fill("half of it")
    page.evaluate("dispatchEvent(new Event('signedout'))")
    page.get_by_label("Function key").fill("another")
    page.get_by_role("button", name="Use this key").click()
    expect(page.get_by_label("A note on this run")).to_have_value("half of it")


def test_everything_goes_by_keyboard(lab: Lab, trained: str) -> None:
    """Keys lead through views, rows and dialogs, the focus is visible, and state changes are announced."""
    page = lab.page("runs")
    expect(page.get_by_role("link", name=trained)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("Find in names").press_sequentially(trained)
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.locator("h1").focus()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=trained)).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("x")
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    assert f"runs={trained}" in page.url
    page.go_back()
    expect(page.get_by_role("link", name=trained)).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Drops")).to_be_focused()
    page.goto(f"{lab.cloud.api}/page#/run/{trained}")
    said = page.locator(".legend .sr").first
    expect(said).to_have_text(
        re.compile(r"points\. First .*, last .*, least .* at .*, greatest .*(rising|falling|level) towards the end")
    )
    page.keyboard.press("s")
    expect(page.locator("#spoken")).to_have_text(said.inner_text())
    expect(page.get_by_role("button", name="Stop").first).to_be_visible()
    works_on_a_run_by_keyboard(page)
    page.goto(f"{lab.cloud.api}/page#/clusters")
    page.get_by_role("button", name="Hold nodes").press("Enter")
    expect(page.get_by_role("spinbutton", name="Nodes")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Hold nodes")).to_be_focused()
    page.goto(f"{lab.cloud.api}/page#/storage")
    page.get_by_role("button", name="Count now").press("Enter")
    expect(page.locator(".bars").first).to_be_visible()
    assert page.evaluate("document.activeElement.closest('main section section, main h1') !== null")
    page.close()
    assert lab.faults == []
