"""The page in headless Chromium on a local cloud, compared with MLflow's own page with the same curves.

    python3 trainyard.py bench page [--quick] [--mlflow PYTHON] [--json]

`--mlflow` names a Python that has mlflow (`uv venv --seed X && X/bin/pip install mlflow`); without it only our page is
measured. Both pages run at the same time and are measured in turn, so that the machine's load affects both.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks._options import options
from emulators.process import wait_for
from functions import page as files
from local import digits
from local.cloud import Cloud, Options
from tests.page.lab import BROWSERS, NOW, Lab, a_run

TURNS, BESIDE = 7, 3
RUNS, POINTS = 10, 10_000  # of each curve that both pages show
FOLLOWED = 20.0  # seconds
LOG_LINES, LIST = 1_000_000, 10_000
FAR = 100  # milliseconds that a request to a distant deployment takes
VIEWS = (
    "runs",
    "run/curve-0",
    "compare?runs=curve-0,curve-1,curve-2",
    "drops",
    "clusters",
    "money",
    "schedules",
    "storage",
    "health",
)

LOGGER = """
import sys, time, math, mlflow
from mlflow.entities import Metric
mlflow.set_tracking_uri(sys.argv[1]); client = mlflow.MlflowClient(); names = []
for r in range(int(sys.argv[2])):
    run = client.create_run("0", run_name=f"curve-{r}"); names.append(run.info.run_id)
    points = [Metric("loss", math.sin(i / 1000 + r), 1_700_000_000_000 + i, i) for i in range(int(sys.argv[3]))]
    for at in range(0, len(points), 1000):
        client.log_batch(run.info.run_id, metrics=points[at:at + 1000])
    client.set_terminated(run.info.run_id)
print(" ".join(names))
"""


def main(argv: list[str]) -> int:
    parser = options(__doc__, "the bytes, the first row, one view, and the curves")
    parser.add_argument("--mlflow", type=Path, help="a Python that has mlflow")
    parser.add_argument("--beside", action="store_true", help="only what both have; needs --mlflow")
    asked = parser.parse_args(argv)
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("There is no Chromium here. On Debian: apt-get install chromium")
        return 1
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as home,
        Cloud.start(Path(home, ".trainyard", "cloud"), Options()) as cloud,
        sync_playwright() as playwright,
        peer(asked.mlflow, Path(home)) as mlflow,
    ):
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        lab = Lab(cloud, browser, digits_of(Path(home)))
        measured: dict[str, Any] = {} if asked.beside else weight()
        if asked.quick:
            lab.archived(a_run("curve-0"), {})
            measured |= {**first_row(lab), **requests_of(lab, VIEWS[:1]), **curves(lab, 1)}
        else:
            fill(lab)
            measured |= {} if asked.beside else ours(lab)
        measured |= theirs(lab, mlflow) if mlflow else {}
        browser.close()
    lines = "\n".join(f"{name:70} {value}" for name, value in measured.items())
    print(json.dumps(measured) if asked.json else lines)
    return 0


def digits_of(home: Path) -> Path:
    (home / "digits").mkdir()
    digits.write(home / "digits")
    return home / "digits"


def weight() -> dict[str, int]:
    """Return the transferred bytes of the first view's files, and of all files that a browser may ever load."""
    index = files._file(files.INDEX)[0].decode()
    scripts, left = set[str](), {"page.js"}
    while left:
        scripts.add(name := left.pop())
        left |= set(re.findall(r"""(?:from|import)"\./([\w.-]+\.js)\"""", files._file(name)[0].decode())) - scripts
    first = {files.INDEX, *re.findall(r'(?:src|href)="/api/page/\w+@/([^"]+)"', index), *scripts}
    every = first | {name for name in files._files() if name.endswith(".js")}
    return {
        "bytes of the first view's files, packed": sum(len(files._packed(name)) for name in first),
        "bytes of all files, packed": sum(len(files._packed(name)) for name in every),
    }


def fill(lab: Lab) -> None:
    """Add the same curves as in MLflow, a long log, and a long list."""
    import math

    for r in range(RUNS):
        rows = "".join(f'{{"step": {i}, "loss": {math.sin(i / 1000 + r)}}}\n' for i in range(POINTS))
        lab.archived(a_run(f"curve-{r}"), {"metrics/metrics.jsonl": rows.encode()})
    log = "".join(f"2026-03-01 step {i} loss {1 / (i + 1):.9f} images/s 1234\n" for i in range(LOG_LINES))
    lab.archived(a_run("long-log"), {"logs/std_log_process_0.txt": log.encode()})


def ours(lab: Lab) -> dict[str, Any]:
    found = {**first_row(lab), **requests_of(lab, VIEWS), "CPU while following a run, % of a core": following(lab)}
    return {**found, **curves(lab, TURNS), **long_log(lab), **long_list(lab)}


def first_row(lab: Lab) -> dict[str, Any]:
    address, sign = f"{lab.cloud.api}/page#/runs", "tr[data-row] a"
    near = [usable(lab, address, sign) for _ in range(TURNS)]
    far = [usable(lab, address, sign, latency=FAR) for _ in range(TURNS)]
    return {
        "usable, cold browser cache, median ms": round(1000 * statistics.median(near)),
        "the same, best ms": round(1000 * min(near)),
        f"the same with {FAR} ms for each request, median ms": round(1000 * statistics.median(far)),
    }


def requests_of(lab: Lab, views: Sequence[str]) -> dict[str, Any]:
    asked = {view: requests(lab, view) for view in views}
    name = "requests of {}, first and a refresh"
    return {name.format(view.partition("?")[0]): f"{first}, {again}" for view, (first, again) in asked.items()}


def usable(lab: Lab, address: str, sign: str, latency: int = 0) -> float:
    """Return the seconds from the address to the first clickable row, in a browser with an empty cache. `latency`:
    milliseconds that each request takes longer."""
    with lab.context() as context:
        page = context.new_page()
        if latency:
            session = context.new_cdp_session(page)
            slow = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
            session.send("Network.enable")
            session.send("Network.emulateNetworkConditions", slow)
        began = time.perf_counter()
        page.goto(address, wait_until="commit")
        page.locator(sign).first.wait_for()
        return time.perf_counter() - began


def requests(lab: Lab, view: str) -> tuple[int, int]:
    """Return the API requests of a view until it rests, and the most requests in one refresh (within 300 ms of each
    other)."""
    with lab.context() as context:
        page, asked = context.new_page(), list[float]()

        def note(request: Any) -> None:
            if "/api/" in request.url and "/api/page" not in request.url and not request.url.endswith("/me"):
                asked.append(time.perf_counter())

        page.on("request", note)
        page.goto(f"{lab.cloud.api}/page#/{view}")
        page.wait_for_timeout(1200)
        first = len(asked)
        page.wait_for_timeout(12_000)
        later = asked[first:]
        return first, max((sum(1 for other in later if 0 <= other - at < 0.3) for at in later), default=0)


def following(lab: Lab) -> float:
    """Return the CPU use of Chromium on the page of a running training, minus the CPU use of an empty tab."""
    lab.archived(a_run("warm"), {})
    lab_upload(lab)
    body = {"trainer": "mnist", "data": "drops/mnist/digits", "parameters": {"epochs": 1000}}
    name = lab.api("POST", "runs", body)["run"]
    wait_for(lambda: lab.api("GET", f"runs/{name}")["state"] == "running", 60, "the run to train", 0.5)
    with lab.context() as context:
        empty = context.new_page()
        idle = cpu(FOLLOWED / 2)
        empty.close()
        page = context.new_page()
        page.goto(f"{lab.cloud.api}/page#/run/{name}")
        page.locator(".chart canvas").first.wait_for(timeout=60_000)
        page.wait_for_timeout(3000)
        busy = cpu(FOLLOWED)
    lab.api("POST", f"runs/{name}/cancel")
    return round(100 * (busy - idle), 2)


def lab_upload(lab: Lab) -> None:
    for file in lab.data.iterdir():
        lab.system.blobs.write("drops", f"mnist/digits/{file.name}", file.read_bytes(), "application/octet-stream")


def cpu(seconds: float) -> float:
    """Return the share of one core that this process's Chromium used over some seconds."""

    def used() -> float:
        total = 0.0
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "chrom" in child.name():
                    times = child.cpu_times()
                    total += times.user + times.system
        return total

    before, began = used(), time.perf_counter()
    time.sleep(seconds)
    return (used() - before) / (time.perf_counter() - began)


def curves(lab: Lab, turns: int) -> dict[str, Any]:
    from tests.page.test_page_content import CHART, chart_alone

    chart = chart_alone()
    with lab.context() as context:
        page = context.new_page()
        page.route("**/chart-alone.js", lambda route: route.fulfill(body=chart, content_type="text/javascript"))
        page.goto(f"{lab.cloud.api}/page#/health")
        page.get_by_role("heading", name="Health").wait_for()
        seconds = [float(page.evaluate(CHART, [20, 100_000, 61_803])["seconds"]) for _ in range(turns)]
    return {"20 curves of 100,000 points, median ms": round(1000 * statistics.median(seconds))}


def long_log(lab: Lab) -> dict[str, Any]:
    opened, searched = [], []
    for _ in range(3):
        with lab.context() as context:
            page = context.new_page()
            page.goto(f"{lab.cloud.api}/page#/runs")
            page.locator("tr[data-row] a").first.wait_for()
            began = time.perf_counter()
            page.evaluate("location.hash = '#/run/long-log'")
            page.locator(".log-line").first.wait_for()
            opened.append(time.perf_counter() - began)
            began = time.perf_counter()
            page.get_by_label("Find in the log").fill("step 987654 ")
            page.get_by_text("1 line", exact=True).wait_for(timeout=60_000)
            searched.append(time.perf_counter() - began)
    return {
        "log of 1,000,000 lines, first lines, median ms": round(1000 * statistics.median(opened)),
        "all of it read and searched, median s": round(statistics.median(searched), 1),
    }


SCROLL = """async () => {
    const box = document.querySelector(".scroll.tall"), frames = [];
    let last = performance.now();
    for (let i = 0; i < 120; i++) {
        box.scrollTop = (box.scrollHeight * (i * 37 % 120)) / 120;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last = performance.now();
    }
    frames.sort((a, b) => a - b);
    return { median: frames[60], slowest: frames[119] };
}"""


def long_list(lab: Lab) -> dict[str, Any]:
    rows = [
        a_run(f"many-{i:05}", experiment="many", created_at=NOW - timedelta(days=1, minutes=i)) for i in range(LIST)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda run: lab.archived(run, {}), rows))  # ended runs, which the app does not check
    with lab.context() as context:
        page = context.new_page()
        page.goto(f"{lab.cloud.api}/page#/runs")
        page.locator("tr[data-row] a").first.wait_for()

        def all_there() -> bool:
            return int(page.locator("table").get_attribute("aria-rowcount") or 0) >= LIST

        began = time.perf_counter()
        page.locator(".scroll.tall").evaluate("(box) => { box.scrollTop = 3000; }")
        wait_for(all_there, 120, "all rows", 0.05)
        loaded, frames = time.perf_counter() - began, page.evaluate(SCROLL)
    return {
        "10,000 runs all there after one begins to scroll, s": round(loaded, 1),
        "frames while jumping through them, median and slowest ms": f"{frames['median']:.0f}, {frames['slowest']:.0f}",
    }


@contextlib.contextmanager
def peer(python: Path | None, home: Path) -> Iterator[tuple[str, list[str]] | None]:
    """Yield the address of MLflow's server with the same curves and the ids of its runs; None without a Python that
    has mlflow."""
    if python is None:
        yield None
        return
    store, address = f"sqlite:///{home}/mlflow.db", "http://127.0.0.1:5933"
    argv = [str(python), "-m", "mlflow", "server", "--backend-store-uri", store, "--port", "5933", "--workers", "1"]
    with (home / "mlflow.log").open("w") as log:
        server = subprocess.Popen([*argv, "--default-artifact-root", str(home)], stdout=log, stderr=log)
        try:
            wait_for(lambda: answers(f"{address}/health"), 300, "MLflow", 0.5)
            done = subprocess.run(
                [str(python), "-c", LOGGER, address, str(RUNS), str(POINTS)], capture_output=True, text=True, check=True
            )
            yield address, done.stdout.split()[-RUNS:]
        finally:
            server.terminate()
            server.wait()


def answers(address: str) -> bool:
    import httpx

    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(address, timeout=2).status_code == 200
    return False


def theirs(lab: Lab, mlflow: tuple[str, list[str]]) -> dict[str, Any]:
    """Measure both pages in turn, in the same minutes: the list of runs, the drawing of the same curves, idling,
    bytes."""
    address, runs = mlflow
    listing = f"{address}/#/experiments/0/runs"
    names = json.dumps(runs)
    chart = f"{address}/#/metric?runs={names}&metric=%22loss%22&experiments=[%220%22]&plot_metric_keys=[%22loss%22]"
    mine = f"{lab.cloud.api}/page#/compare?runs={','.join(f'curve-{r}' for r in range(RUNS))}"
    lists, charts = [], []
    for _ in range(BESIDE):
        lists.append(
            (usable(lab, f"{lab.cloud.api}/page#/runs", "tr[data-row] a"), usable(lab, listing, "text=curve-0"))
        )
        charts.append((usable(lab, mine, ".chart canvas"), usable(lab, chart, ".js-plotly-plot .scatterlayer path")))
    here, there = idling(lab, f"{lab.cloud.api}/page#/runs", "tr[data-row] a"), idling(lab, listing, "text=curve-0")
    return {
        "list usable, ours and MLflow's, median ms": both(lists),
        f"{RUNS} curves of {POINTS:,} points drawn, ours and MLflow's, median ms": both(charts),
        "kB fetched for the list, ours and MLflow's": f"{here[0]}, {there[0]}",
        "CPU with the list open, ours and MLflow's, % of a core": f"{here[1]}, {there[1]}",
    }


def both(pairs: list[tuple[float, float]]) -> str:
    return ", ".join(str(round(1000 * statistics.median(side))) for side in zip(*pairs, strict=True))


def idling(lab: Lab, address: str, sign: str) -> tuple[int, float]:
    """Return the kB loaded until the view rests, and the share of a core that the resting view uses."""
    with lab.context() as context:
        page, sizes = context.new_page(), list[int]()
        page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
        page.goto(address)
        page.locator(sign).first.wait_for()
        page.wait_for_timeout(3000)
        return round(sum(sizes) / 1000), round(100 * cpu(FOLLOWED / 2), 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
