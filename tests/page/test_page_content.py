"""The page with difficult content: documents, keys, hostile text, long logs and lists, interrupted uploads."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local import page_bundle
from shared.deadlines.model import Date, DeadlineTerms, Pace
from shared.deadlines.plan import NodeChoice
from shared.diagnosis.causes import Cause, Certainty, Diagnosis
from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.runs.model import RunState
from tests.batchai.documents import practitioner
from tests.fakes.parts import changed
from tests.page.lab import NOW, PATIENCE, Lab, a_run

if TYPE_CHECKING:
    from playwright.sync_api import Request, Route

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)


def test_a_batch_ai_document_is_explained(lab: Lab) -> None:
    """Each field without a full equivalent is listed with its replacement; text that is no JSON is reported as
    such."""
    page = lab.page("batchai")
    page.get_by_label("Document").fill("{no")
    page.get_by_role("button", name="Translate").click()
    expect(page.get_by_role("alert")).to_contain_text("This is not JSON")
    page.get_by_label("Document").fill(json.dumps(practitioner()))
    with page.expect_response(re.compile("/imports$")) as told:
        page.get_by_role("button", name="Translate").click()
    assert told.value.json()["report"]
    expect(page.locator("tbody tr")).to_have_count(len(told.value.json()["report"]))
    page.close()
    assert lab.faults == []


EVIL = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"

LOG = (
    b"\x1b[31mred\x1b[0m plain \x1b]52;c;cm0gLXJm\x07 \x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x1b[2J\x00\n"
    + EVIL.encode()
    + "\nno \u202edirection\n".encode()
    + b"x" * 10_000_000
    + b"\nlast \xff\xfe line\r\n"
)


def test_hostile_names_logs_and_metrics_do_nothing(lab: Lab) -> None:
    """Script tags, escapes, a line of 10 MB, right-to-left marks and infinities are shown as text, or left out."""
    rows = (
        b'{"step": 1, "loss": 1e308, "'
        + EVIL.replace('"', "'").encode()
        + b'": 1, "bad": NaN}\n{"step": 2, "loss": Infinity}\n'
    )
    tags = {"evil": EVIL, "turn": "\u202eabc"}
    run = lab.archived(
        a_run("evil-1", drop=f"mnist/{EVIL}", owner=EVIL, tags=tags, reason=f"{EVIL}\x1b[2J"),
        {"metrics/metrics.jsonl": rows, "logs/std_log_process_0.txt": LOG, f"models/{EVIL[:20]}.png": b"no picture"},
    )
    page = lab.page(f"run/{run.name}?find=direction")
    page.on("dialog", lambda dialog: lab.faults.append(dialog.message))
    expect(page.locator(".log-line")).to_have_count(5)
    expect(page.locator(".log-line").first).to_contain_text("red plain ␛]52;c;cm0gLXJm␇ ␛]8;;javascript:alert(1)␇link")
    expect(page.locator(".log-line .f31")).to_have_text("red")
    expect(page.locator(".log-line").nth(1)).to_contain_text(EVIL)
    expect(page.locator(".log-line").nth(2)).to_contain_text("no ⟨U+202E⟩direction")
    expect(page.locator(".log-line").nth(2)).to_have_class("log-line  found")
    expect(page.locator(".log-line").nth(3)).to_contain_text("9,998,000 more characters")
    expect(page.get_by_text("last \ufffd\ufffd line")).to_be_visible()
    expect(page.locator(".chart h3")).to_have_count(2)
    expect(page.get_by_text("evil=<img").first).to_be_visible()
    page.goto(f"{lab.cloud.api}/page#/runs?q=evil")
    expect(page.get_by_role("link", name="evil-1")).to_be_visible()
    assert page.title() == "Runs · Trainyard"
    assert page.evaluate("document.querySelectorAll('img[src=x], main script').length") == 0
    assert lab.faults == []
    page.close()


def test_a_date_says_where_its_run_stands(lab: Lab) -> None:
    """A run with a deadline shows its actual and required progress, and why it has its present nodes."""
    why = "Dedicated nodes: only 12 min more than it needs, so nothing else meets the date."
    due = DeadlineTerms(NOW + timedelta(hours=6), 4 * 3600.0, "cpu-cluster")
    for name, late in (("dated-1", None), ("dated-2", NOW)):
        pace = Pace(0.4, 0.375, NodeChoice.DEDICATED, why, late_since=late)
        lab.system.runs.insert(a_run(name, state=RunState.RUNNING).having(Date(due, pace)))
        page = lab.page(f"run/{name}")
        card = page.locator(".facts div", has_text="Done by")
        expect(card.get_by_role("meter", name="40 % of it is done, at least 38 % keeps the date")).to_be_visible()
        expect(card).to_contain_text(why)
        expect(card.get_by_text("It will be late.")).to_have_count(1 if late else 0)
        page.close()
    assert lab.faults == []


def test_a_diagnosis_says_the_cause_and_what_to_do(lab: Lab) -> None:
    """The diagnosis is above the log's words; names in it are shown as text."""
    found = Diagnosis(Cause.CUDA_OOM, Certainty.CERTAIN, f"Out of memory, at {EVIL}.", advice=("Use a smaller batch.",))
    run = a_run("failed-1", reason="It exited with 1.").having(found)
    lab.archived(run, {"logs/std_log_process_0.txt": b"torch.OutOfMemoryError\n"})
    page = lab.page("run/failed-1")
    expect(page.locator(".notice p")).to_have_text(f"Out of memory, at {EVIL}. Use a smaller batch.")
    expect(page.locator(".notice .reason")).to_have_text("It exited with 1.")
    page.close()
    assert lab.faults == []


def is_block_after(sent: list[str], before: int, request: Request) -> bool:
    """Whether the request uploads a block, after exactly this many blocks were sent."""
    return "comp=block&" in request.url and len(sent) == before


def test_an_upload_that_broke_off_goes_on_with_what_is_missing(lab: Lab, tmp_path: Path) -> None:
    """If the page is reloaded during an upload, dropping the same folder again sends only the blocks that storage
    lacks."""
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "data.bin").write_bytes(bytes(range(256)) * (20 << 12))  # 20 MiB are three blocks
    page, sent = lab.page("drops"), list[str]()

    def pass_on(route: Route) -> None:
        """Let the first block through but never the second; hold the marker back, so that no run is made."""
        url, first = route.request.url, not page.url.endswith("again")
        if "comp=block&" in url:
            sent.append(re.sub(r".*blockid=", "again " if not first else "", url))
        if first and len(sent) > 1:
            return
        if "_SUCCESS" in (route.request.post_data or "") or "_SUCCESS" in url:
            route.abort()
        else:
            route.continue_()

    page.route(re.compile("blockid|_SUCCESS|/uploads"), pass_on)
    for view, before in (("drops", 1), ("drops?again", 3)):
        page.goto("about:blank")
        page.goto(f"{lab.cloud.api}/page#/{view}")
        page.get_by_label("Choose a folder").set_input_files(tmp_path / "large")
        page.locator(".zone select").select_option("mnist")
        page.get_by_role("button", name="Upload").click()  # mnist can't read such a file
        with page.expect_request(partial(is_block_after, sent, before)):
            page.get_by_role("button", name="Upload anyway").click()
    whole = (tmp_path / "large" / "data.bin").read_bytes()
    name = "mnist/large/data.bin"
    page.wait_for_event("response", lambda got: "comp=blocklist" in got.url and got.request.method == "PUT")
    assert lab.system.blobs.read_from("drops", name, 0, 1 << 25) == whole
    page.close()
    assert len(sent) == 4
    assert sent[2:] == [f"again {sent[1]}", sent[3]]  # the block that never arrived, and the third
    assert sent[0] not in sent[3]
    lab.system.blobs.remove("drops", [name])


def test_a_key_is_asked_for_and_stands_in_no_address(lab: Lab) -> None:
    """With keys the page shows nothing without a key, refuses a wrong key, and sends the right key only as a
    header."""
    asked: list[str] = []
    lab.archived(a_run("behind-a-door"), {})
    keys = {"function": "right-key", "master": "master-key", "eventgrid_extension": "event-key"}
    with lab.other_app({}, {"require_keys": True, "keys": keys}) as api:
        page = lab.page("runs", api=api)
        page.on("request", lambda request: asked.append(request.url))
        for key in ("wrong-key", "right-key"):
            page.get_by_label("Function key").fill(key)
            page.get_by_role("button", name="Use this key").click()
            if key == "wrong-key":
                expect(page.get_by_role("alert")).to_have_text("This key was refused.")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        expect(page.locator("[data-row]").first).to_be_visible()
        page.get_by_role("button", name="Forget the key").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.context.close()
    assert asked
    assert [url for url in asked if "key" in url] == []


CHART = """async ([runs, points, outlier]) => {
    const { Chart, h, render } = await import("/api/page/chart-alone.js");
    const series = Array.from({ length: runs }, (_, r) => {
        const x = Float64Array.from({ length: points }, (_, i) => i), y = x.map((i) => Math.sin(i / 1000 + r) + r / 50);
        if (r === 3) y[0] = 100; // so that the scale is the same with the outlier and without
        if (r === 7) y[outlier] = 100;
        return { name: `run-${r}`, label: `run-${r}`, x, y };
    });
    const place = document.createElement("div");
    document.querySelector("main").replaceChildren(place);
    const began = performance.now();
    render(h(Chart, { title: "loss", series }), place);
    while (!place.querySelector("canvas")) await new Promise((go) => setTimeout(go));
    await new Promise(requestAnimationFrame);
    const seconds = (performance.now() - began) / 1000, canvas = place.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 20, canvas.width, 60), columns = new Set();
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--curve-7");
    const wanted = colour.match(/\\w\\w/g).map((part) => parseInt(part, 16));
    const like = (i) => data[i + 3] > 60 && wanted.every((part, j) => Math.abs(part - data[i + j]) < 40);
    for (let i = 0; i < data.length; i += 4) if (like(i)) columns.add((i / 4) % canvas.width);
    return { columns: [...columns].sort((a, b) => a - b), width: canvas.width, seconds };
}"""


def test_the_docs_are_searched_and_read(lab: Lab) -> None:
    """A search finds sections by all or some of their words; a result opens its page there, and links stay within
    the docs view."""
    page = lab.page("docs")
    expect(page.get_by_role("heading", name="Trainyard's documentation")).to_be_visible()
    page.get_by_label("Search the docs").fill("idle time cluster")
    first = page.locator(".found li a").first
    expect(first).to_be_visible()
    heading = first.inner_text()
    first.click()
    expect(page.get_by_role("heading", name=heading).first).to_be_in_viewport()
    page.get_by_role("link", name="All pages").click()
    page.locator(".prose").get_by_role("link", name="command line").click()
    expect(page.get_by_role("heading", name="The command line", exact=True)).to_be_visible()
    page.get_by_label("Search the docs").fill("zzznothing")
    expect(page.get_by_text("0 sections")).to_be_visible()
    page.get_by_label("Search the docs").fill("TensorBoard zzznothing")
    expect(page.get_by_text("no section has all of these words")).to_be_visible()
    expect(page.locator(".found li a", has_text="TensorBoard").first).to_be_visible()
    page.close()
    assert lab.faults == []


def chart_alone() -> str:
    """The chart as its own module, built like the bundle."""
    esbuild = page_bundle.TOOLS / "node_modules" / ".bin" / "esbuild"
    if not esbuild.exists():
        pytest.skip("the tools that make the page are not here. `python3 trainyard.py test` installs them")
    argv = [str(esbuild), *page_bundle.COMMON, *page_bundle.JSX]
    names = 'export { Chart } from "./chart.jsx"; export { h, render } from "preact";'
    env = {**os.environ, "NODE_PATH": str(page_bundle.TOOLS / "node_modules")}
    done = subprocess.run(argv, cwd=page_bundle.PAGE, env=env, input=names, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_single_spike_is_seen(lab: Lab) -> None:
    """Among 20 curves of 100,000 points each, a single outlier is drawn, in the right place."""
    chart = chart_alone()
    page = lab.page("health")
    page.route("**/chart-alone.js", lambda route: route.fulfill(body=chart, content_type="text/javascript"))
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    found = page.evaluate(CHART, [20, 100_000, 61_803])
    assert found["columns"], "the outlier was not drawn"
    assert found["columns"][-1] - found["columns"][0] <= 4
    share = (found["columns"][0] - 58) / (found["width"] - 58 - 8)  # without the axis and the padding
    assert share == pytest.approx(0.618, abs=0.02)
    assert page.evaluate(CHART, [20, 100_000, -1])["columns"] == []
    page.close()


def test_who_zooms_sees_every_point(lab: Lab) -> None:
    """A long curve is thinned. Zooming in loads every point of the selected part in one request, and zooming out
    restores the curve."""
    rows = "".join(f'{{"step": {i}, "loss": {1 / (i + 1)}}}\n' for i in range(20_000))
    lab.archived(a_run("fine-1"), {"metrics/metrics.jsonl": rows.encode()})
    page = lab.page("run/fine-1")
    plot, over = page.locator(".plot"), page.locator(".u-over")
    expect(over).to_be_visible()
    assert int(plot.get_attribute("data-points") or 0) <= 2000
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box
    with page.expect_request(lambda request: "/curves?" in request.url) as asked:
        page.mouse.move(box["x"] + box["width"] * 0.50, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 50, steps=3)
        page.mouse.up()
    first, last = (float(re.findall(rf"{end}=([0-9.]+)", asked.value.url)[0]) for end in ("first", "last"))
    assert 9000 < first < last < 12_000
    expect(plot).to_have_attribute("data-points", str(int(last - first) + 1))
    over.dblclick()
    expect(plot).to_have_attribute("data-points", re.compile(r"^(1\d{3}|2000)$"))
    page.close()
    assert lab.faults == []


def test_a_long_log_is_searched_and_linked(lab: Lab) -> None:
    """Of 200,000 lines only a few are in the page; a link leads to one line and a search to another, with and
    without wrapping."""
    lines = "".join(
        f"step {i} loss {1 / (i + 1):.9f} {'needle' if i == 123_456 else 'straw'} {'x' * 30}\n" for i in range(200_000)
    )
    lab.archived(a_run("long-log"), {"logs/std_log_process_0.txt": lines.encode()})
    page = lab.page("run/long-log?line=199000")
    expect(page.locator(".log-line.here")).to_contain_text("step 198999 ")
    expect(page.locator(".log-line.here")).to_be_in_viewport()
    expect(page.locator(".log-size")).to_have_text("200,000 lines")
    assert page.locator(".log-line").count() < 150
    page.get_by_label("Wrap lines").check()
    page.get_by_label("Find in the log").fill("NEEDLE")
    expect(page.locator(".log-tools [role=status]")).to_have_text("1 line")
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".log-line.found mark")).to_be_in_viewport()
    assert "line=123457" in page.url
    page.close()


def test_a_list_longer_than_a_page_is_scrolled(lab: Lab) -> None:
    """Older runs load while scrolling, and visible rows are refreshed. Returning from a run restores the position
    in the list. Few rows are in the page at a time, and a filter queries the API."""
    for i in range(130):
        lab.system.runs.insert(a_run(f"old-{i:03}", experiment="many", created_at=NOW - timedelta(days=1, minutes=i)))
    page = lab.page("runs?experiment=many")
    expect(page.locator("table")).to_have_attribute("aria-rowcount", "101")
    page.locator(".scroll.tall").evaluate("(box) => { box.scrollTop = 3000; }")
    expect(page.locator("table")).to_have_attribute("aria-rowcount", "131")
    page.locator(".scroll.tall").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    page.get_by_role("link", name="old-129").click()
    expect(page.get_by_role("heading", name="old-129")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("link", name="old-129")).to_be_focused()
    expect(page.get_by_role("link", name="old-129")).to_be_in_viewport()
    lab.system.runs.update(
        old := lab.system.runs.get("old-128"), changed(old.value, best_metrics={"test_accuracy": 0.123})
    )
    expect(page.locator("[data-row=old-128]")).to_contain_text("12.30%", timeout=PATIENCE)
    told = {"rows": [], "gone": [], "changes": "m", "complete": False, "continue": None}
    marks: set[str] = set()

    def too_much_changed(route: Route) -> None:
        """Answer as after a long sleep: the changes since then are no longer known."""
        mark = route.request.url.partition("changes=")[2]
        if marks and mark not in marks:
            route.continue_()
            return
        marks.add(mark)
        route.fulfill(json=told)

    page.route("**/rows?*changes=*", too_much_changed)
    lab.system.runs.update(
        old := lab.system.runs.get("old-127"), changed(old.value, best_metrics={"test_accuracy": 0.456})
    )
    expect(page.locator("[data-row=old-127]")).to_contain_text("45.60%", timeout=PATIENCE)
    assert page.locator("tr[data-row]").count() < 60
    page.get_by_role("button", name="Made").click()
    expect(page.locator("tr[data-row]").first).to_contain_text("old-129")
    page.close()


def test_a_very_long_name_leaves_the_other_columns_in_sight(lab: Lab) -> None:
    """The list of drops is as wide as its container, whatever a drop's name is."""
    name = "a" * 700
    lab.system.drops.insert(Drop(DropKey("mnist", name), DropState.REJECTED, "t", NOW, why="No such route."))
    page = lab.page("drops")
    expect(page.get_by_role("link", name=f"mnist/{name}")).to_be_visible()
    assert page.locator(".scroll.tall").evaluate("(box) => box.scrollWidth <= box.clientWidth")
    expect(page.get_by_role("cell", name="No such route.")).to_be_in_viewport()
    page.close()


def test_files_that_cannot_be_had_say_why(lab: Lab) -> None:
    """For an archived run without a manifest, the page shows the API's error and not a message to wait."""
    lab.system.runs.insert(a_run("no-manifest", archived_at=NOW))
    (told := lab.page("run/no-manifest")).locator("#part-files .notice.bad").wait_for()
    expect(told.locator("#part-files")).to_contain_text("no-manifest")
    expect(told.locator("#part-files")).not_to_contain_text("once the run is archived")
    told.close()
