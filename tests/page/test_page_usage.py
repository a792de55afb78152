"""A run's node usage on the page: curves by node on the training's axis, and the line of facts."""

from __future__ import annotations

import json

import pytest

from tests.page.lab import NOW, PATIENCE, Lab, a_run

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

EVIL = "<img src=x onerror=\"document.title='pwned'\">\u202e"
BEGIN = NOW.timestamp()


def samples() -> bytes:
    """Ten minutes of two nodes, one with a hostile name, with two GPUs each: the GPUs of a node are at 20 and 60 %."""
    rows: list[dict[str, object]] = []
    for minute in range(10):
        for i, node in enumerate(("a-node", f"b-{EVIL}")):
            about = {"time": BEGIN + 60 * minute, "node": node}
            rows.append(
                {**about, "device": "", "cpu": [40 + i, 50], "memory": [2000 + minute, 2100], "disk_read": [5, 5]}
            )
            rows += [{**about, "device": str(gpu), "gpu": [20 + 40 * gpu, 90]} for gpu in range(2)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def test_a_run_shows_how_its_nodes_were_used(lab: Lab) -> None:
    """Each chart has two curves on the same axis as the training's curves; the facts include the sentence about
    usage."""
    metrics = "".join(
        json.dumps({"step": step, "loss": 1 / (step + 1), "time": BEGIN + 120 + 30 * step}) + "\n" for step in range(9)
    )
    files = {"usage.jsonl": samples(), "metrics/metrics.jsonl": metrics.encode()}
    run = lab.archived(a_run("used-1", job="job-1"), files)
    page = lab.page(f"run/{run.name}?x=time")
    part = page.locator("#part-nodes")
    expect(part.locator("h3")).to_have_text(["Processors, percent", "Memory, MB", "GPUs, percent"])
    expect(part.locator(".plot[data-series='2'][data-points='20'] canvas")).to_have_count(3)
    gpus = part.locator(".chart", has=page.get_by_role("heading", name="GPUs, percent"))
    expect(gpus.locator(".legend li b")).to_have_text(["40", "40"])
    expect(gpus.locator(".legend .sr").first).to_contain_text("at -120")
    expect(page.locator(".facts div", has_text="Nodes used")).to_contain_text("2 nodes, processors 40 %")
    part.get_by_text("Disks, network and more").click()
    expect(part.locator("h3").nth(3)).to_have_text("Read from disk, MB")
    part.get_by_text("Names of the nodes").click()
    expect(part.locator("ol li")).to_have_text(["a-node", f"b-{EVIL}".replace("\u202e", "⟨U+202E⟩")])
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        lab.shot(page, f"usage-{theme}")
    page.set_viewport_size({"width": 380, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "pwned"
    assert lab.faults == []
    page.close()


def test_a_run_without_measurements_has_no_such_part(lab: Lab) -> None:
    """A run without measurements shows neither an empty chart nor a notice."""
    run = lab.archived(a_run("unused-1", job="job-2"), {})
    page = lab.page("health")
    with page.expect_response(f"**/runs/{run.name}/usage") as answer:
        page.goto(f"{lab.cloud.api}/page#/run/{run.name}")
    assert answer.value.json()["samples"] == []
    expect(page.locator("#part-files")).to_be_visible()
    expect(page.locator("#part-nodes, .facts div:has-text('Nodes used')")).to_have_count(0)
    assert lab.faults == []
    page.close()


def test_an_address_that_changes_before_the_page_listens_is_shown(lab: Lab) -> None:
    """The address changes after the first view is drawn and before the page listens, so without an event; the page
    still shows the new view."""
    context = lab.context()
    context.add_init_script(
        """new MutationObserver((_, seen) => {
            if (!document.getElementById("content")) return;
            seen.disconnect();
            history.replaceState(null, "", "#/storage");
        }).observe(document, { childList: true, subtree: true });"""
    )
    page = lab.page("schedules", context)
    expect(page.locator("main h1")).to_have_text("Storage")
    assert lab.faults == []
    context.close()
