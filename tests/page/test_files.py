"""The page's files, without a browser: how they are served, their size, and their links to each other."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

import trainyard
from functions import http, page
from local import page_bundle
from tests.functions.test_access import ENDPOINTS

MOST_FIRST, MOST_OF_A_VIEW = 60_000, 90_000  # compressed bytes of the first view, and of any other view with it


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
    """The policy allows only the app and its storage account, and no inline script or style; no file has one."""
    response = get()
    policy = response.headers["Content-Security-Policy"]
    assert set(re.findall(r"https?://[^ ;]+", policy)) == {"https://yard.blob.core.windows.net"}
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self';")
    text = response.get_body().decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)
    assert not re.search(
        r"""["'(]https?://(?!www\.w3\.org)\w""",
        "".join(p.read_text() for p in page.FOLDER.rglob("*.js*") if p.suffix != ".json"),
    )


def test_files_stay_in_the_browser_and_the_entrance_does_not() -> None:
    """A file under the current version is cached for good; index.html is revalidated, with 304 if it is unchanged."""
    index = get()
    version = re.search(r"/api/page/(\w+)@/page\.js", index.get_body().decode())
    assert version
    assert "immutable" in get(f"{version[1]}@/page.js").headers["Cache-Control"]
    assert get("old@/page.js").headers["Cache-Control"] == index.headers["Cache-Control"] == "no-cache"
    assert get(if_none_match=index.headers["ETag"]).status_code == 304


@pytest.mark.parametrize(
    "path", ["../host.json", "bundle/../app.jsx", "nothing.js", "x@/../../function_app.py", "sources.json", "app.jsx"]
)
def test_nothing_else_is_served(path: str) -> None:
    """A path that is no file of the page gets 404, wherever it points."""
    assert get(path).status_code == 404


def imports(name: str) -> set[str]:
    """The script and the scripts that it imports at once, directly or indirectly."""
    found, left = set[str](), {name}
    while left:
        found.add(one := left.pop())
        text = get(one).get_body().decode()
        left |= set(re.findall(r"""(?:from|import)"\./([\w.-]+\.js)\"""", text)) - found
    return found


def packed(names: set[str]) -> int:
    bodies = {name: get(name, accept_encoding="gzip").get_body() for name in names}
    assert {name for name, body in bodies.items() if gzip.decompress(body) != get(name).get_body()} == set()
    return sum(map(len, bodies.values()))


def test_the_first_view_stays_light_and_so_does_each_other() -> None:
    """The compressed size of the files for the first view, and for the heaviest view, is bounded."""
    index = get().get_body().decode()
    names = {"", *re.findall(r'(?:src|href)="/api/page/\w+@/([^"]+)"', index)}
    assert {name for name in names if not name.startswith("chunk-")} == {
        *("", "early.js", "page.css", "page.js", "icon.svg")
    }
    first = names | imports("page.js")
    assert packed(first) < MOST_FIRST
    views = set(re.findall(r'import\("\./([\w.-]+\.js)"\)', get("page.js").get_body().decode()))
    assert len(views) > 8
    assert {view: size for view in views if (size := packed(first | imports(view))) >= MOST_OF_A_VIEW} == {}


def test_no_script_waits_for_another() -> None:
    """index.html names every script that page.js imports, which are at most two, and early.js every further script of
    each view: a browser loads them at once."""
    index, early = get().get_body().decode(), get("early.js").get_body().decode()
    first = set(re.findall(r'rel="modulepreload" href="/api/page/\w+@/([^"]+)"', index))
    assert first == imports("page.js") - {"page.js"}
    assert 1 <= len(first) <= 2
    views = set(re.findall(r'import\("\./([\w.-]+\.js)"\)', get("page.js").get_body().decode()))
    named = {
        view: re.findall(r'"([^"]+)"', names) for view, names in re.findall(r"(\w+):\[((?:\"[^\"]+\.js\",?)+)\]", early)
    }
    assert {names[0] for names in named.values()} == views
    assert {view: set(names) for view, names in named.items()} == {
        view: imports(names[0]) - first for view, names in named.items()
    }


def test_tools_are_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build installs nothing where trainyard.py installed the tools of this lock file, and installs them again for
    another lock file."""
    trainyard.once(tmp_path / "stamp", ("page/package-lock.json",), lambda: None)
    monkeypatch.setenv("PATH", "")
    page_bundle.install(tmp_path)
    (tmp_path / "stamp").write_text("another lock file")
    with pytest.raises(FileNotFoundError, match="npm"):
        page_bundle.install(tmp_path)


def test_the_bundle_is_made_of_these_sources(tmp_path: Path) -> None:
    """A source that changed without a new bundle fails this test, also without Node."""
    page_bundle.check()
    shutil.copytree(page.FOLDER, tmp_path / "page", ignore=shutil.ignore_patterns("node_modules"))
    for name in ("app.jsx", "bundle/page.js"):
        (tmp_path / "page" / name).write_text((page.FOLDER / name).read_text("utf-8") + " ", "utf-8")
        with pytest.raises(page_bundle.BundleFault, match=r"Run: python -m local\.page_bundle"):
            page_bundle.check(tmp_path / "page")
        shutil.copyfile(page.FOLDER / name, tmp_path / "page" / name)


@pytest.fixture
def tools() -> Path:
    binaries = page_bundle.TOOLS / "node_modules" / ".bin"
    if not (binaries / "esbuild").exists():
        pytest.skip("THE PAGE'S FORM IS NOT CHECKED: its tools are not here. `python3 trainyard.py test` installs them")
    return binaries


def test_the_sources_make_this_very_bundle(tools: Path, tmp_path: Path) -> None:
    """The files in page/bundle equal, byte by byte, what the pinned esbuild and libraries build from the sources."""
    shutil.copytree(page.FOLDER, tmp_path / "page", ignore=shutil.ignore_patterns("node_modules", "bundle"))
    page_bundle.make(tmp_path / "page", tools.parents[1])
    made = {path.name: path.read_bytes() for path in (tmp_path / "page" / "bundle").iterdir()}
    assert made == {path.name: path.read_bytes() for path in page_bundle.BUNDLE.iterdir()}


def test_the_sources_have_prettiers_form(tools: Path) -> None:
    """Prettier would change no file of page/."""
    done = subprocess.run([str(tools / "prettier"), "--check", "."], cwd=page.FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_line_of_the_sources_is_long() -> None:
    """Lines of markup, script and style have at most 120 characters."""
    sources = [
        p for p in page.FOLDER.rglob("*") if p.suffix in (".js", ".jsx", ".css", ".html") and "bundle" not in p.parts
    ]
    lines = [
        (path.name, number)
        for path in sources
        for number, line in enumerate(path.read_text().split("\n"))
        if len(line) > 120
    ]
    assert lines == []


def test_an_answer_without_news_is_304() -> None:
    """The same JSON has the same etag and gets 304 without a body; larger answers are compressed for clients that
    accept that."""
    response = http.response({"rows": ["x"] * 1000})
    plain = http.conditional(_asks(), response)
    packed = http.conditional(_asks(accept_encoding="gzip, br"), response)
    assert json.loads(gzip.decompress(packed.get_body())) == json.loads(plain.get_body())
    again = http.conditional(_asks(if_none_match=plain.headers["ETag"]), response)
    assert (again.status_code, again.get_body()) == (304, b"")
    other = http.conditional(_asks(if_none_match=plain.headers["ETag"]), http.response({"rows": ["y"] * 1000}))
    assert other.status_code == 200


def _asks(**headers: str) -> func.HttpRequest:
    return func.HttpRequest("GET", "/", headers={k.replace("_", "-"): v for k, v in headers.items()}, body=b"")


def test_the_docs_are_served_for_the_search() -> None:
    """Every page of docs/ is served unchanged under its name, and so are its pictures, but not the decision
    records."""
    version = re.search(r"/api/page/(\w+)@/page\.js", get().get_body().decode())
    assert version
    response = get(f"{version[1]}@/docs.json")
    pages = json.loads(response.get_body())
    assert pages == {path.stem: path.read_text("utf-8") for path in page.MANUAL.glob("*.md")}
    assert "immutable" in response.headers["Cache-Control"]
    assert get("page-run.png").headers["Content-Type"] == "image/png"
    assert get("adr/README.md").status_code == 404
