"""The web page: the files of page/. The files hold no data, so anyone may read them; their API calls need a key or a
role like every other request. page/bundle holds the scripts, one for each view, and the style sheet. `python -m
local.page_bundle` builds page/bundle from the sources in page/.

A version in the path distinguishes the files of one deployment from those of another, so that browsers can cache them
forever: reloading the page costs one request, which is answered with 304.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import azure.functions as func

from functions import http
from shared.kernel.errors import NotFound
from shared.kernel.index_settings import ROOT
from shared.kernel.operation import ANYONE

blueprint = func.Blueprint()

FOLDER, MANUAL = ROOT / "page", ROOT / "docs"
INDEX = "index.html"
SERVED = ("bundle/index.html", "icon.svg", "bundle/*.js", "bundle/*.css", "bundle/LICENCES.txt")
DOCS, PICTURES = "docs.json", (".png", ".svg")  # docs.json holds every page of docs/ by name, for the search
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
}
FOR_GOOD = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


def page(req: func.HttpRequest) -> func.HttpResponse:
    """Return a file of the web page; index.html for the bare address."""
    version, _, name = req.route_params.get("path", "").rpartition("@/")
    body, kind, tag = _file(name or INDEX)
    headers = {
        "Cache-Control": FOR_GOOD if version == _version() else ASK_AGAIN,
        "ETag": tag,
        "Vary": "Accept-Encoding",
        **_safety(),
    }
    if tag in req.headers.get("if-none-match", ""):
        return func.HttpResponse(status_code=304, headers=headers)
    if "gzip" in req.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = _packed(name or INDEX), "gzip"
    return func.HttpResponse(body, headers={**headers, "Content-Type": kind})


blueprint.route("page/{*path}", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)(
    http.handler("page", ANYONE, page)
)


@cache
def _files() -> dict[str, Path]:
    """Return the files by their name in the URL. No other file is ever read."""
    own = {path.name: path for pattern in SERVED for path in sorted(FOLDER.glob(pattern))}
    return {path.name: path for path in sorted(MANUAL.glob("*")) if path.suffix in PICTURES} | own


@cache
def _manual() -> bytes:
    """Return every page by its name, in the order of docs/index.md, which the published site has, too."""
    pages = {path.stem: path.read_text("utf-8") for path in sorted(MANUAL.glob("*.md"))}
    listed = [name for name in re.findall(r"\]\(([\w-]+)\.md\)", pages["index"]) if name in pages]
    ordered = {name: pages[name] for name in dict.fromkeys(["index", *listed, *pages])}
    return json.dumps(ordered, ensure_ascii=False).encode()


@cache
def _version() -> str:
    """Return a hash of the files' contents, independent of their times."""
    contents = [*(path.read_bytes() for path in _files().values()), _manual()]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12]


@cache
def _file(name: str) -> tuple[bytes, str, str]:
    """Return bytes, type and tag of a file. URLs inside index.html contain the version."""
    body = _body(name)
    return body, KINDS[PurePosixPath(name).suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def _body(name: str) -> bytes:
    if name == DOCS:
        return _manual()
    if name not in _files():
        raise NotFound("The page has no such file. It begins at /api/page.")
    body = _files()[name].read_bytes()
    return body.replace(b"@/", _version().encode() + b"@/") if name == INDEX else body


@cache
def _packed(name: str) -> bytes:
    import gzip  # not at a cold start

    return gzip.compress(_file(name)[0], 9, mtime=0)


@cache
def _safety() -> dict[str, str]:
    """Return the Content-Security-Policy: only the page's own modules run, and reach only this API and the storage
    account.
    """
    from shared.kernel import settings

    address = urlsplit(settings.blob_endpoint(os.environ))
    storage = f"{address.scheme}://{address.netloc}"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: {storage}; "
        f"connect-src 'self' {storage}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
