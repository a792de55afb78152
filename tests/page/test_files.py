"""The page's files: how they are served, what they weigh, that each leads only to others; without a browser."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from functions import http, page
from functions.modules import joined
from local import vendor
from tests.functions.test_access import ENDPOINTS

MOST = 100_000  # bytes of all files together, as they travel


@pytest.fixture(autouse=True)
def storage(monkeypatch: pytest.MonkeyPatch) -> None:
    page._safety.cache_clear()
    monkeypatch.setenv("AzureWebJobsStorage__accountName", "yard")
    monkeypatch.delenv("AzureWebJobsStorage", raising=False)


def get(path: str = "", **headers: str) -> func.HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = func.HttpRequest("GET", "/api/page", headers=named, route_params={"path": path}, body=b"")
    answered: Any = ENDPOINTS["GET", "page/{*path}"].call(request)
    response: func.HttpResponse = asyncio.run(answered)
    return response


def test_the_page_runs_nothing_but_its_own_files() -> None:
    """The policy names the app and its storage account alone, and allows no inline script or style; no file has one."""
    response = get()
    policy = response.headers["Content-Security-Policy"]
    assert set(re.findall(r"https?://[^ ;]+", policy)) == {"https://yard.blob.core.windows.net"}
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self';")
    text = response.get_body().decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)
    assert not re.search(
        r"""["'(]https?://(?!www\.w3\.org)""", "".join(p.read_text() for p in page.FOLDER.glob("**/*.js"))
    )


def test_files_stay_in_the_browser_and_the_entrance_does_not() -> None:
    """A file under the present version is kept for good, index.html is asked for anew, and is 304 if it is the same."""
    index = get()
    version = re.search(r"/api/page/(\w+)@/page\.js", index.get_body().decode())
    assert version
    assert "immutable" in get(f"{version[1]}@/page.js").headers["Cache-Control"]
    assert get("old@/page.js").headers["Cache-Control"] == index.headers["Cache-Control"] == "no-cache"
    assert get(if_none_match=index.headers["ETag"]).status_code == 304


@pytest.mark.parametrize(
    "path", ["../host.json", "vendor/../app.js", "nothing.js", "x@/../../function_app.py", "vendor/lock.json"]
)
def test_nothing_else_is_served(path: str) -> None:
    """What is no file of the page is 404, wherever it lies."""
    assert get(path).status_code == 404


def test_all_files_together_stay_light() -> None:
    """Everything that a browser may ever load weighs at most 100 kB as it travels."""
    index = get().get_body().decode()
    names = ["", *re.findall(r'(?:src|href)="/api/page/\w+@/([^"]+)"', index)]
    assert set(names) == {"", "early.js", "page.css", "page.js", "icon.svg"}
    bodies = {name: get(name, accept_encoding="gzip").get_body() for name in names}
    assert {name for name, body in bodies.items() if gzip.decompress(body) != get(name).get_body()} == set()
    assert sum(map(len, bodies.values())) < MOST


def test_all_modules_travel_as_one() -> None:
    """The joined module has every module once, each after those that it imports, and asks for no further file."""
    text = get("page.js").get_body().decode()
    order = re.findall(r'^modules\["([^"]+)"\] = ', text, re.MULTILINE)
    assert sorted(order) == sorted(name for name in page._files() if name.endswith(".js") and name != "early.js")
    for name in order:
        imported = re.findall(
            r"""(?m)^(?:import|export)\b[^"';]*["'](\./|\.\./)([^"']+)["']""", (page.FOLDER / name).read_text()
        )
        for up, path in imported:
            wanted = (page.FOLDER / name).parent.joinpath(up, path).resolve().relative_to(page.FOLDER).as_posix()
            assert order.index(wanted) < order.index(name)
    assert not re.search(r"(?m)^(?:import|export)\b|\bimport\(", text)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [('import * as x from "./b.js";', "import"), ("export let x = 1;", "export"), ("import(name);", "import")],
)
def test_a_module_that_cannot_be_joined_is_refused(source: str, wrong: str) -> None:
    """What the joiner does not know is an error that names the module and the place, and never half a page."""
    with pytest.raises(ValueError, match=rf"a\.js has '{wrong}"):
        joined({"a.js": source, "b.js": ""}, "a.js")


def test_names_pass_through_the_joined_module() -> None:
    """Names and defaults, renamed and passed on, are the same values as between modules of their own."""
    sources = {
        "a.js": 'import d, { x } from "./b.js";',
        "main.js": 'import d from "./lib/d.js";\nimport { x as y } from "./b.js";\nexport { x } from "./b.js";',
        "b.js": "export const x = 1;\nexport async function f() {}\n",
        "lib/d.js": "var t=2;export default t;",
    }
    text = joined(sources, "main.js")
    assert 'const { default: d } = modules["lib/d.js"];' in text
    assert 'const { x: y } = modules["b.js"];' in text
    assert 'return { x: modules["b.js"].x };' in text
    assert "return { x, f };" in text
    assert "const itsDefault = t;" in text
    assert "a.js" not in text  # nothing leads there


def test_the_libraries_are_those_of_the_lock(tmp_path: Path) -> None:
    """Each vendored file has the lock's checksum, and one changed byte is refused."""
    vendor.check()
    for file in vendor.FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "htm.js").write_bytes((tmp_path / "htm.js").read_bytes() + b" ")
    with pytest.raises(vendor.VendorFault, match=r"htm\.js is not the file"):
        vendor.check(tmp_path)


def test_an_answer_without_news_is_304() -> None:
    """The same JSON has the same tag, which is answered without a body; larger ones are packed for who takes it."""
    response = http.answer({"rows": ["x"] * 1000})
    plain = http.conditional(_asks(), response)
    packed = http.conditional(_asks(accept_encoding="gzip, br"), response)
    assert json.loads(gzip.decompress(packed.get_body())) == json.loads(plain.get_body())
    again = http.conditional(_asks(if_none_match=plain.headers["ETag"]), response)
    assert (again.status_code, again.get_body()) == (304, b"")
    other = http.conditional(_asks(if_none_match=plain.headers["ETag"]), http.answer({"rows": ["y"] * 1000}))
    assert other.status_code == 200


def _asks(**headers: str) -> func.HttpRequest:
    return func.HttpRequest("GET", "/", headers={k.replace("_", "-"): v for k, v in headers.items()}, body=b"")
