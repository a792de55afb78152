"""The page in a real browser, against the real local cloud."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from emulators.process import wait_for
from shared.runs.model import Elastic, Member, RunState, Size
from tests.batchai.documents import practitioner
from tests.page.lab import NOW, PATIENCE, TRAINING, Lab, a_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Request, Response, Route

expect = pytest.importorskip("playwright.sync_api").expect
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
expect.set_options(timeout=PATIENCE)


@pytest.fixture(autouse=True)
def without_faults(lab: Lab) -> None:
    """Every test begins without complaints of the console."""
    lab.faults.clear()


def drag(page: Page, folder: Path) -> None:
    """A folder from the machine's own files, dragged over the page and dropped on it."""
    box = page.locator(".zone").bounding_box()
    assert box
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    with_devtools = page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        with_devtools.send("Input.dispatchDragEvent", {"type": step, "data": data, **at})


@pytest.fixture(scope="module")
def trained(lab: Lab) -> str:
    """The run that a folder dropped on the page became, archived."""
    page = lab.page("drops")
    expect(page.get_by_label("Choose a folder")).to_be_attached()
    drag(page, lab.data)
    expect(page.get_by_label("Name of the drop")).to_have_value(lab.data.name)
    page.locator(".zone select").select_option("mnist")
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
    """Dropped on the page, uploaded straight to storage, trained: curves, log of every rank and files are there."""
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
    assert lab.faults == []
    page.close()


VIEWS = {  # and what is there once a view has its data
    "runs": "tr[data-row] .spark",
    "run": ".chart canvas",
    "members": ".timeline .life",
    "compare": ".parallel text",
    "drops": "tr[data-row]",
    "drop": ".notice.good a",
    "clusters": ".timeline",
    "money": ".big",
    "schedules": ".scroll tr",
    "storage": ".lines li, .scroll tr",
    "health": ".scroll tr",
}


PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def elastic() -> Elastic:
    """Three members, of which one was lost and came back."""
    at = [NOW + timedelta(seconds=10 + 4 * i) for i in range(5)]
    members = [Member(i, 2 if i == 1 else 1, RunState.COMPLETED, at[2] if i == 1 else at[0]) for i in range(3)]
    return Elastic(1, 4, NOW + timedelta(hours=1), tuple(members), (Size(at[0], 3), Size(at[1], 2), Size(at[3], 3)))


@pytest.fixture(scope="module")
def lived_in(lab: Lab, trained: str) -> None:
    """A cloud with something in every view: a schedule, who is told, something that was removed."""
    run = {"trainer": "mnist", "data": "drops/mnist/from-the-page"}
    schedule = lab.api("POST", "schedules", {"run": run, "cron": "0 6 * * 1", "timezone": "Europe/Berlin"})
    lab.api("POST", f"schedules/{schedule['id']}/pause")
    lab.api("POST", "schedules", {"run": run, "route": "mnist", "new_files": 1_000_000})
    lab.api("POST", "notices", {"on": ["failed", "completed"], "to": "ada@example.org", "route": "mnist"})
    lab.archived(a_run("gone-1"), {"models/model.pt": b"x" * 5000})
    lab.api("POST", "runs/gone-1/remove")


def test_a_batch_ai_document_is_explained(lab: Lab) -> None:
    """Each field that has no full equivalent is listed with what it becomes; what is no JSON is said to be none."""
    page = lab.page("batchai")
    page.get_by_label("Document").fill("{no")
    page.get_by_role("button", name="Show what it becomes").click()
    expect(page.get_by_role("alert")).to_contain_text("This is no JSON")
    page.get_by_label("Document").fill(json.dumps(practitioner()))
    with page.expect_response(re.compile("/imports$")) as told:
        page.get_by_role("button", name="Show what it becomes").click()
    assert told.value.json()["report"]
    expect(page.locator("tbody tr")).to_have_count(len(told.value.json()["report"]))
    page.close()
    assert lab.faults == []


def test_schedules_notices_and_storage_are_shown_and_changed(lab: Lab, lived_in: None) -> None:
    """A schedule is paused and goes on, what was removed and what takes the space are told; all as the API has it."""
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_breaks_a_rule_of_accessibility(lab: Lab, trained: str, lived_in: None, theme: str) -> None:
    """axe finds nothing on any view, in both themes; a picture of each is kept, also as narrow as a phone."""
    for i, name in enumerate((f"cifar-{theme}", f"mnist-{theme}")):
        points = [
            (step, 0.95 - i / 20 - 0.7 / (1 + step / 20), 0.1 + i / 9 + 2 / (1 + step / 9)) for step in range(230)
        ]
        rows = "".join(f'{{"step": {s}, "test_accuracy": {a}, "train_loss": {b}}}\n' for s, a, b in points)
        tried = a_run(
            name,
            elastic=elastic() if i == 0 else None,
            parameters={"epochs": 5 * (i + 1), "batch_size": 64, "lr": 0.1 / (i + 1)},
            best_metrics={"test_accuracy": points[-1][1], "train_loss": points[-1][2]},
        )
        lab.archived(tried, {"metrics/metrics.jsonl": rows.encode(), "models/examples.png": PICTURE})
    places = {
        "run": f"run/{trained}",
        "members": f"run/cifar-{theme}",
        "compare": f"compare?runs={trained},mnist-{theme},cifar-{theme}",
        "drop": "drops/mnist/from-the-page",
    }
    page = lab.page(color_scheme=theme)
    found = []
    for view in VIEWS:
        page.goto(f"{lab.cloud.api}/page#/{places.get(view, view)}")
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator(VIEWS[view]).first).to_be_visible()
        for width, height in ((1280, 900), (380, 800)):
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator("main .notice", has_text="Loading")).to_have_count(0)
            lab.shot(page, f"{view}-{theme}-{width}")
            if view == "members":
                expect(page.locator(".timeline .end")).to_have_count(1)
                expect(page.locator(".pictures img")).to_have_js_property("naturalWidth", 1)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} is too wide"
        found += [
            (view, rule["id"], [n["html"][:200] for n in rule["nodes"]][:3])
            for rule in Axe().run(page).response["violations"]
        ]
        if view == "compare":
            expect(page.locator(".parallel path")).to_have_count(3)
    assert found == []
    assert lab.faults == []
    page.close()


EVIL = "<img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
LOG = (
    b"\x1b[31mred\x1b[0m plain \x1b]52;c;cm0gLXJm\x07 \x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x1b[2J\x00\n"
    + EVIL.encode()
    + "\nno \u202edirection\n".encode()
    + b"x" * 10_000_000
    + b"\nlast \xff\xfe line\r\n"
)


def test_hostile_names_logs_and_metrics_do_nothing(lab: Lab) -> None:
    """Script tags, escapes, a line of 10 MB, text that turns around, infinities: all is shown as text, or left out."""
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


def news_with(status: int) -> Callable[[Response], bool]:
    """An answer to the question what changed in the list."""
    return lambda response: "rows?changes" in response.url and response.status == status


def test_a_refresh_asks_only_for_what_changed(lab: Lab, trained: str) -> None:
    """The list is asked for once; then one request a look is answered with 304, or with the rows that are new."""
    page, later = lab.page("runs"), list[str]()
    expect(page.get_by_role("link", name=trained)).to_be_visible()
    page.on("request", lambda request: later.append(request.url.partition("/api/")[2]))
    for status in (200, 304):
        with page.expect_response(news_with(status)):
            page.evaluate("dispatchEvent(new Event('online'))")  # looks at once
    new = f"new-{len(later)}"
    with page.expect_response(news_with(200)) as news:
        lab.system.runs.insert(a_run(new, created_at=datetime.now(UTC)))
        page.evaluate("dispatchEvent(new Event('online'))")
    told = [row["run"] for row in news.value.json()["rows"]]
    assert told[0] == new
    assert len(told) <= 3  # the books may have written a cost
    expect(page.locator("tr[data-row]").first).to_contain_text(new)
    assert [url for url in later if not url.startswith(("rows?changes=", "curves?"))] == []
    page.close()


def is_block_after(sent: list[str], before: int, request: Request) -> bool:
    """A block, of which so many were sent before."""
    return "comp=block&" in request.url and len(sent) == before


def test_an_upload_that_broke_off_goes_on_with_what_is_missing(lab: Lab, tmp_path: Path) -> None:
    """After the page was loaded anew in the middle, the same folder again sends only blocks that storage lacks."""
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "data.bin").write_bytes(bytes(range(256)) * (20 << 12))  # 20 MiB are three blocks
    page, sent = lab.page("drops"), list[str]()

    def pass_on(route: Route) -> None:
        """The first block arrives, the second never does; the marker is kept back, so that no run is made."""
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
        with page.expect_request(partial(is_block_after, sent, before)):
            page.get_by_role("button", name="Upload").click()
    whole = (tmp_path / "large" / "data.bin").read_bytes()
    name = "mnist/large/data.bin"
    page.wait_for_event("response", lambda got: "comp=blocklist" in got.url and got.request.method == "PUT")
    assert lab.system.blobs.read_from("drops", name, 0, 1 << 25) == whole
    page.close()
    assert len(sent) == 4
    assert sent[2:] == [f"again {sent[1]}", sent[3]]  # the block that never arrived, and the third
    assert sent[0] not in sent[3]
    lab.system.blobs.remove("drops", [name])


def test_a_message_that_was_set_aside_goes_back_by_its_button(lab: Lab, trained: str) -> None:
    """The page shows what was set aside, gives it back when asked, and then shows that nothing is left."""
    lab.system.queues.send("archives-poison", {"run": trained})
    page = lab.page("health")
    expect(page.locator("pre.reason")).to_contain_text(trained)
    page.get_by_role("button", name="Give back").click()
    expect(page.locator(".notice.good")).to_have_text("1 went back")
    expect(page.get_by_text("Nothing was set aside.")).to_be_visible()
    wait_for(lambda: lab.api("GET", "status")["queues"]["archives"] == {"messages": 0, "poison": 0}, 30, "its handling")
    page.close()
    assert lab.faults == []


def test_two_tabs_agree(lab: Lab, trained: str) -> None:
    """What one tab does the other shows by itself; a run that was ended can be tried again."""
    body = {"trainer": "mnist", "data": "drops/mnist/from-the-page", "parameters": {"epochs": 500}}
    name = lab.api("POST", "runs", body)["run"]
    context = lab.context()
    one, two = lab.page(f"run/{name}", context), lab.page("runs", context)
    expect(two.locator(f"[data-row={name}] .state")).to_have_text("running", timeout=TRAINING)
    one.get_by_role("button", name="Cancel", exact=True).click()
    one.get_by_role("button", name="Yes, end it").click()
    expect(two.locator(f"[data-row={name}] .state")).to_have_text("canceled", timeout=TRAINING)
    expect(one.locator(".head .state")).to_have_text("canceled")
    one.get_by_role("button", name="Try again").click()
    expect(one.locator("h1")).not_to_have_text(name)
    again = one.locator("h1").inner_text()
    expect(two.locator(f"[data-row={again}]")).to_be_visible()
    lab.api("POST", f"runs/{again}/cancel")
    context.close()
    assert lab.faults == []


def test_the_page_outlives_the_api(lab: Lab, trained: str) -> None:
    """While the API is away the page says so and keeps what it shows; once it is back the page goes on by itself."""
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
    """What App Service tells the app of a signed-in caller."""
    claims = [{"typ": "roles", "val": role}, {"typ": "preferred_username", "val": "ada@example.org"}]
    told = {"auth_typ": "aad", "claims": claims, "name_typ": "name", "role_typ": "roles"}
    return {"X-MS-CLIENT-PRINCIPAL": base64.b64encode(json.dumps(told).encode()).decode()}


def test_a_reader_has_no_button_that_would_fail(lab: Lab, trained: str, lived_in: None) -> None:
    """With Entra ID a reader sees everything and can change nothing; nobody gets a page that says how to sign in."""
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
            expect(page.locator("main button")).to_have_count(6 * buttons)
            page.context.close()
        page = lab.page("runs", api=api)
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        expect(page.get_by_role("link", name="Sign in with Microsoft Entra ID")).to_be_visible()
        page.context.close()


def test_a_key_is_asked_for_and_stands_in_no_address(lab: Lab) -> None:
    """With keys the page shows nothing without one, refuses a wrong one, and sends the right one as a header alone."""
    asked: list[str] = []
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
    const { Chart } = await import("/api/page/chart.js"), { html, render } = await import("/api/page/html.js");
    const series = Array.from({ length: runs }, (_, r) => {
        const x = Float64Array.from({ length: points }, (_, i) => i), y = x.map((i) => Math.sin(i / 1000 + r) + r / 50);
        if (r === 3) y[0] = 100; // so that the scale is the same with the outlier and without
        if (r === 7) y[outlier] = 100;
        return { name: `run-${r}`, label: `run-${r}`, x, y };
    });
    const place = document.createElement("div");
    document.querySelector("main").replaceChildren(place);
    const began = performance.now();
    render(html`<${Chart} title="loss" series=${series} />`, place);
    while (!place.querySelector("canvas")) await new Promise((go) => setTimeout(go));
    await new Promise(requestAnimationFrame);
    const seconds = (performance.now() - began) / 1000, canvas = place.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 20, canvas.width, 60), columns = new Set();
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--curve-7");
    const wanted = colour.match(/\\w\\w/g).map((part) => parseInt(part, 16));
    const like = (i) => data[i + 3] > 60 && wanted.every((part, j) => Math.abs(part - data[i + j]) < 40);
    for (let i = 0; i < data.length; i += 4) if (like(i)) columns.add((i / 4) % canvas.width);
    return { seconds, columns: [...columns].sort((a, b) => a - b), width: canvas.width };
}"""


def test_a_single_spike_is_seen(lab: Lab) -> None:
    """Of 20 curves of 100,000 points each, the one point that leaves the crowd has its pixels, where it belongs."""
    page = lab.page("health")
    expect(page.get_by_role("heading", name="Health")).to_be_visible()
    found = page.evaluate(CHART, [20, 100_000, 61_803])
    assert found["columns"], "the outlier was not drawn"
    assert found["columns"][-1] - found["columns"][0] <= 4
    share = (found["columns"][0] - 58) / (found["width"] - 58 - 8)  # beside the axis and the padding
    assert share == pytest.approx(0.618, abs=0.02)
    assert found["seconds"] < 3
    assert page.evaluate(CHART, [20, 100_000, -1])["columns"] == []
    page.close()


def test_who_zooms_sees_every_point(lab: Lab) -> None:
    """A long curve comes thinned; of the part that one drags over all points come, in one request, and back again."""
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
    """Of 200,000 lines a few are in the page; a link leads to one of them, a search to another, wrapped or not."""
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
    """Older runs come by themselves once one scrolls, few rows are in the page at a time, and a filter asks the API."""
    for i in range(130):
        lab.system.runs.insert(a_run(f"old-{i:03}", experiment="many", created_at=NOW - timedelta(days=1, minutes=i)))
    page = lab.page("runs?experiment=many")
    expect(page.locator("table")).to_have_attribute("aria-rowcount", "101")
    page.locator(".scroll.tall").evaluate("(box) => { box.scrollTop = 3000; }")
    expect(page.locator("table")).to_have_attribute("aria-rowcount", "131")
    page.locator(".scroll.tall").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    expect(page.get_by_role("link", name="old-129")).to_be_visible()
    assert page.locator("tr[data-row]").count() < 60
    page.get_by_role("button", name="Made").click()
    expect(page.locator("tr[data-row]").first).to_contain_text("old-129")
    page.close()


def test_a_view_asks_for_little(lab: Lab, trained: str, lived_in: None) -> None:
    """Besides the one that asks who one is, a view begins with at most three requests, none of them twice."""
    page, urls, of_run = (
        lab.page("health"),
        list[str](),
        {"run": f"run/{trained}", "compare": f"compare?runs={trained}"},
    )
    page.on("request", lambda request: urls.append(request.url.partition("/api/")[2]))
    for view, sign in VIEWS.items():
        if view in ("members", "drop"):  # as run, and the drops
            continue
        page.goto("about:blank")
        urls.clear()
        page.goto(f"{lab.cloud.api}/page#/{of_run.get(view, view)}")
        expect(page.locator(sign.replace(".parallel text", ".chart canvas")).first).to_be_visible()
        first = [url for url in urls if url and url != "me" and not url.startswith("page")]
        assert 1 <= len(set(first)) <= 3, (view, first)
        assert len(first) <= len(set(first)) + 1, (view, first)  # one may be the next look at the same
    page.close()


def test_everything_goes_by_keyboard(lab: Lab, trained: str) -> None:
    """Keys lead through views, rows and dialogs, what has the focus is seen, and state changes are spoken."""
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
    page.close()
    assert lab.faults == []
