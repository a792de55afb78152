"""The page in a real browser, against the real local cloud."""

from __future__ import annotations

import pytest

from tests.page.lab import TRAINING, Lab, a_run

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe


@pytest.fixture(autouse=True)
def without_faults(lab: Lab) -> None:
    """Every test begins without complaints of the console."""
    lab.faults.clear()


@pytest.fixture(scope="module")
def trained(lab: Lab) -> str:
    """The run that a folder chosen on the page became, archived."""
    page = lab.page("drops")
    page.get_by_label("Choose a folder").set_input_files(lab.data)
    page.get_by_label("Route", exact=True).first.select_option("mnist")
    page.get_by_label("Name of the drop").fill("from-the-page")
    page.get_by_role("button", name="Upload").click()
    page.locator(".notice.good a").wait_for(timeout=TRAINING)
    page.locator(".notice.good a").click()
    expect(page.locator(".head .state")).to_have_text("completed", timeout=TRAINING)
    name = page.locator("h1").inner_text()
    expect(page.get_by_text("models/model.pt")).to_be_visible()
    page.close()
    assert lab.faults == []
    return name


def test_a_folder_becomes_a_model_while_the_page_follows(lab: Lab, trained: str) -> None:
    """Chosen on the page, uploaded straight to storage, trained: curves, log of every rank and files are there."""
    page = lab.page(f"run/{trained}")
    expect(page.locator(".chart h3", has_text="test_accuracy").first).to_be_visible()
    expect(page.locator(".log-line").first).to_contain_text("processes 2")
    page.get_by_label("Rank").select_option("1")
    expect(page.locator(".log-size")).to_contain_text("line")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download models/model.json").click()
    assert b"accuracy" in download.value.path().read_bytes()
    assert lab.faults == []
    page.close()


VIEWS = ("runs", "run", "compare", "drops", "drop", "clusters", "money", "health")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_breaks_a_rule_of_accessibility(lab: Lab, trained: str, theme: str) -> None:
    """axe finds nothing on any view, in both themes; a picture of each is kept, also as narrow as a phone."""
    lab.archived(a_run(f"mnist-{theme}", tags={"lr": "0.1"}), {"metrics/metrics.jsonl": b'{"step": 1, "loss": 0.5}\n'})
    places = {
        "run": f"run/{trained}",
        "compare": f"compare?runs={trained},mnist-{theme}",
        "drop": "drops/mnist/from-the-page",
    }
    page = lab.page(color_scheme=theme)
    found = []
    for view in VIEWS:
        page.goto(f"{lab.cloud.api}/page#/{places.get(view, view)}")
        page.wait_for_load_state("networkidle")
        expect(page.locator("main h1")).to_be_visible()
        for width, height in ((1280, 900), (380, 800)):
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator("main .notice", has_text="Loading")).to_have_count(0)
            lab.shot(page, f"{view}-{theme}-{width}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
        found += [
            (view, rule["id"], [n["html"][:200] for n in rule["nodes"]][:3])
            for rule in Axe().run(page).response["violations"]
        ]
    assert found == []
    assert lab.faults == []
    page.close()
