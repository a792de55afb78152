"""The web page: its files of page/. They hold no data, so anyone may read them; what they ask the API for needs a key
or a role like every other request. page/bundle has the script and the style sheet, made of page/'s sources by
`python -m local.page_bundle`.

The files are told apart from those of another deployment by a version in their path, so that browsers keep them for
good: loading the page again costs one request that is answered with 304.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
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
SERVED = (INDEX, "icon.svg", "bundle/early.js", "bundle/page.css", "bundle/page.js", "bundle/LICENCES.txt")
DOCS, PICTURES = "docs.json", (".png", ".svg")  # every page of docs/ by its name, for the page's search
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
    """A file of the web page; index.html for the bare address."""
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
    """The files by their names in an address. Only what is listed here is ever read."""
    own = {PurePosixPath(name).name: FOLDER / name for name in SERVED}
    return {path.name: path for path in sorted(MANUAL.glob("*")) if path.suffix in PICTURES} | own


@cache
def _manual() -> bytes:
    pages = {path.stem: path.read_text("utf-8") for path in sorted(MANUAL.glob("*.md"))}
    return json.dumps(pages, ensure_ascii=False).encode()


@cache
def _version() -> str:
    """The same for the same files, whatever their times."""
    contents = [*(path.read_bytes() for path in _files().values()), _manual()]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12]


@cache
def _file(name: str) -> tuple[bytes, str, str]:
    """Bytes, type and tag. Addresses inside index.html carry the version."""
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
    return gzip.compress(_file(name)[0], 9, mtime=0)


@cache
def _safety() -> dict[str, str]:
    """Nothing runs but the page's own modules; it talks to this API and to the storage account that files lie in."""
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
