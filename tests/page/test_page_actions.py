"""Actions that the page shares with the command line: submit, schedule, promote, move an alias, notify; each asks
once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.page.lab import PATIENCE, Lab, a_run

if TYPE_CHECKING:
    from playwright.sync_api import Route

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)


def test_a_run_is_checked_priced_and_submitted_after_one_question(lab: Lab) -> None:
    """The check shows what is missing and the greatest cost, and makes nothing; after one confirmation the run is
    made."""
    sent: list[str] = []
    page = lab.page("submit")

    def keep(route: Route) -> None:
        if route.request.method == "POST" and "dry_run" not in route.request.url:
            sent.append(route.request.post_data or "")
            route.fulfill(status=202, json={"run": "made-1", "state": "received"})
        else:
            route.continue_()

    page.route("**/api/runs*", keep)
    page.get_by_label("What").select_option("trainer:mnist")
    page.get_by_label("Data").fill("drops/mnist/nothing-there")
    page.get_by_label("Parameters").fill("epochs=3")
    page.get_by_role("button", name="Check and show the cost").click()
    plan = page.locator(".card")
    expect(plan.locator(".findings li").first).to_contain_text("nothing-there")
    expect(plan).to_contain_text("cost")
    plan.get_by_role("button", name="Submit").click()
    assert sent == []
    plan.get_by_role("button", name="Yes").click()
    expect(page).to_have_url(f"{lab.cloud.api}/page#/run/made-1")
    body = {"trainer": "mnist", "data": "drops/mnist/nothing-there", "parameters": {"epochs": 3}}
    assert [json.loads(text) for text in sent] == [body]
    page.goto(f"{lab.cloud.api}/page#/submit")
    page.get_by_label("What").select_option("job:")
    page.locator("textarea").fill("{no")
    page.get_by_role("button", name="Check and show the cost").click()
    expect(page.get_by_role("alert")).to_contain_text("The job is no JSON")
    assert lab.faults == []
    page.close()


def test_a_run_is_promoted_and_an_alias_moved(lab: Lab) -> None:
    """Both actions ask once, and the history has the reason."""
    for number in (1, 2):
        made = a_run(f"good-{number}", last_metrics={"accuracy": 0.8})
        lab.archived(made, {"models/model.safetensors": b"x" * number})
        page = lab.page(f"run/{made.name}")
        page.get_by_role("button", name="Promote", exact=True).click()
        page.get_by_label("Model", exact=True).fill("acted")
        page.get_by_label("Alias", exact=True).fill("production" if number == 1 else "")
        page.get_by_role("button", name="Promote", exact=True).click()
        page.get_by_role("button", name="Yes, promote").click()
        expect(page.locator(".notice.good")).to_have_text(f"It is version {number} of acted.")
        page.close()
    page = lab.page("models")
    page.get_by_text("Move an alias", exact=True).first.click()
    page.locator("details").get_by_label("Why").fill("it is larger")
    page.get_by_role("button", name="Move an alias").click()
    page.get_by_role("button", name="Yes, move it").click()
    expect(page.locator(".state.completed", has_text="production → 2")).to_be_visible()
    version = lab.api("GET", "models/acted")
    assert version["history"][0]["why"] == "it is larger"
    lab.api("POST", "models/acted/versions/2/attestations", {"kind": "approval", "says": "reviewed in June"})
    page.get_by_text("Proof", exact=True).first.click()
    expect(page.locator("details code", has_text=version["versions"][0]["signer"])).to_be_visible()
    expect(page.get_by_role("region", name="Evidence that came later")).to_contain_text("reviewed in June")
    assert lab.faults == []
    page.close()


def test_notifications_are_added_here(lab: Lab) -> None:
    """By default a subscription covers failed runs; the list shows the subscription."""
    page = lab.page("schedules")
    page.get_by_text("Notify", exact=True).first.click()
    page.get_by_label("Address").fill("ada@example.org")
    page.get_by_role("button", name="Notify", exact=True).click()
    expect(page.locator("tr", has_text="example.org")).to_contain_text("failed")
    assert [one["on"] for one in lab.api("GET", "notices")] == [["failed"]]
    page.get_by_role("link", name="Add a schedule").click()
    expect(page.get_by_label("Schedule (empty: once, now)")).to_have_value("0 6 * * 1")
    assert lab.faults == []
    page.close()
