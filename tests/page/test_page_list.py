"""The list of runs: reasons for failures and waits, conditions, differing parameters, expandable sweeps, saved
views."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from shared.runs.model import Moment, RunState
from tests.page.lab import PATIENCE, Lab, a_run, a_sweep

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

EVIL = "<img src=x onerror=\"document.title='pwned'\">"


def test_the_list_says_why_and_reads_conditions_as_the_api_does(lab: Lab) -> None:
    """`and`, `!=` and `<=` follow the API's grammar; an unreadable condition is reported as such."""
    now = datetime.now(UTC)
    for i, lr in enumerate((0.1, 0.01, 0.001)):
        failed = (Moment(RunState.FAILED, now),) if i == 0 else ()
        lab.system.runs.insert(
            a_run(
                f"lr-{i}",
                **{"parameters": {"lr": lr, "epochs": 5}, "experiment": "rates", "history": failed},
                **{"state": RunState.FAILED if i == 0 else RunState.COMPLETED, "reason": f"It exited. {EVIL}"},
                created_at=now - timedelta(minutes=i),
            )
        )
    page = lab.page("runs?experiment=rates")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text(f"It exited. {EVIL}")
    expect(page.get_by_role("columnheader", name="lr")).to_be_visible()
    expect(page.get_by_role("columnheader", name="epochs")).to_have_count(0)
    condition = page.get_by_label("Condition")
    for text, names in (("lr<=0.01", ["lr-1", "lr-2"]), ("lr<=0.01 and lr!=0.01", ["lr-2"])):
        condition.fill(text)
        condition.press("Enter")
        expect(rows).to_have_count(len(names))
        assert rows.evaluate_all("(all) => all.map((row) => row.dataset.row)") == names
    condition.fill("lr <")
    condition.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("can't be read")
    condition.fill("")
    expect(rows).to_have_count(3)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Why").uncheck()
    expect(page.get_by_role("columnheader", name="Why")).to_have_count(0)
    expect(page).to_have_url(re.compile("columns="))
    page.get_by_text("Saved views", exact=True).click()
    page.get_by_label("Save this view as").fill(EVIL)
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto(f"{lab.cloud.api}/page#/runs")
    page.reload()
    page.get_by_text("Saved views", exact=True).click()
    page.get_by_role("link", name=EVIL).click()
    expect(page).to_have_url(re.compile("experiment=rates.*columns="))
    expect(rows).to_have_count(3)
    assert "pwned" not in page.title()
    assert lab.faults == []
    page.close()


def test_a_sweep_is_a_row_that_unfolds(lab: Lab) -> None:
    """An expanded sweep shows its trials below, and its cost is the sum of theirs."""
    sweep = a_sweep(lab, "swept-1")
    page = lab.page("runs?q=swept-1")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("$0.45")
    page.get_by_role("button", name="10 trials").click()
    expect(rows).to_have_count(11)
    expect(page.get_by_role("link", name=f"{sweep.name}-t9", exact=True)).to_be_visible()
    page.get_by_role("button", name="10 trials").click()
    expect(rows).to_have_count(1)
    assert lab.faults == []
    page.close()
