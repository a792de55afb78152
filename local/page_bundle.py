"""`python -m local.page_bundle`: build page/bundle, the files that browsers load, from page/'s sources with esbuild.

esbuild splits the script by view: a browser loads the script of a view when somebody opens the view. index.html and
early.js name the scripts that the page and its first view need, so a browser loads all of them at once. The bundle is
in the repository, so that a plain clone serves the page without Node. Run this module after each change of page/. A
test builds the bundle again and compares, and checks Prettier's format, if the tools are installed. `check` needs no
tools: it compares the sources with those that the bundle was built from. page/package-lock.json pins libraries and
tools.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "page"
BUNDLE = PAGE / "bundle"
TOOLS = ROOT / ".trainyard" / "page-tools"  # where trainyard.py installs them for `test` and `check`
LIBRARIES = ("marked", "preact", "uplot")
LICENCES, SOURCES = "LICENCES.txt", "sources.json"
KINDS = (".js", ".jsx", ".css", ".html")
COMMON = ["--bundle", "--minify", "--charset=utf8", "--target=es2022", "--legal-comments=none"]
COMMON += ["--log-level=warning", "--preserve-symlinks"]
JSX = ["--format=esm", "--jsx=automatic", "--jsx-import-source=preact"]
PAGE_FORM = ["--splitting", "--chunk-names=[name]-[hash]", "--entry-names=page", "--inject:./common.js", *JSX]
INDEX, FIRST = "index.html", '    <script type="module"'  # the line of index.html before which the preloads stand


class BundleFault(Exception):
    """The bundle does not match the sources. The message says what to do."""


def check(page: Path = PAGE) -> None:
    """Raise BundleFault unless the bundle was built from the current sources and is unchanged."""
    try:
        made = json.loads((page / "bundle" / SOURCES).read_text("utf-8"))
    except (OSError, ValueError):
        made = {}
    if made != digests(page):
        raise BundleFault(f"{page / 'bundle'} is not made of what {page} holds. Run: python -m local.page_bundle")


def digests(page: Path = PAGE) -> dict[str, str]:
    """Return the SHA-256 of each source, of the lock file, and of each file of the bundle."""
    sources = [p for p in page.rglob("*") if p.suffix in KINDS and "node_modules" not in p.parts]
    files = [*sources, page / "package-lock.json", page / "bundle" / LICENCES]
    return {
        file.relative_to(page).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(files)
        if file.exists()
    }


def make(page: Path = PAGE, tools: Path = TOOLS) -> None:
    """Build the bundle. Raises subprocess.CalledProcessError if esbuild finds an error in the sources.

    esbuild builds in a temporary folder with the libraries beside the sources: the names of the scripts contain a hash
    of the paths, which must be the same in every checkout.
    """
    libraries, out = tools / "node_modules", page / "bundle"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        sources, listing = Path(folder, "page"), Path(folder, "outputs.json")
        shutil.copytree(page, sources, ignore=shutil.ignore_patterns("node_modules", "bundle"))
        (sources / "node_modules").symlink_to(libraries.resolve())
        build = [str(libraries / ".bin" / "esbuild"), *COMMON, f"--outdir={out}"]
        subprocess.run([*build, "app.jsx", *PAGE_FORM, f"--metafile={listing}"], cwd=sources, check=True)
        first, later = preloads(json.loads(listing.read_text("utf-8"))["outputs"])
        define = f"--define:globalThis.SCRIPTS={json.dumps(later)}"
        subprocess.run([*build, "early.js", "--format=iife", define], cwd=sources, check=True)
    links = "".join(f'    <link rel="modulepreload" href="/api/page/@/{name}" />\n' for name in first)
    index = (page / INDEX).read_text("utf-8").replace(FIRST, links + FIRST)
    (out / INDEX).write_text(index, "utf-8")
    (out / LICENCES).write_text(f"\n{'-' * 80}\n\n".join(_licence(libraries / name) for name in LIBRARIES), "utf-8")
    (out / SOURCES).write_text(json.dumps(digests(page), indent=1) + "\n", "utf-8")


def preloads(outputs: Mapping[str, Any]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the scripts that page.js imports, and by view the further scripts of each view that has its own.

    `outputs` are those of esbuild's metafile: by path, the entry point of the script and its imports.
    """
    scripts = {Path(path).name: output for path, output in outputs.items()}

    def imported(name: str) -> list[str]:
        paths = [item["path"] for item in scripts[name]["imports"] if item["kind"] == "import-statement"]
        return [Path(path).name for path in paths]

    first = imported("page.js")
    views = {Path(output.get("entryPoint", "")).stem: name for name, output in scripts.items() if name != "page.js"}
    later = {view: [name, *imported(name)] for view, name in sorted(views.items()) if view}
    return first, {view: [name for name in names if name not in first] for view, names in later.items()}


def _licence(package: Path) -> str:
    version = json.loads((package / "package.json").read_text("utf-8"))["version"]
    text = next(file for file in sorted(package.iterdir()) if file.name.lower().startswith("licen")).read_text("utf-8")
    return f"{package.name} {version}\n\n{text.strip()}\n"


def install(tools: Path = TOOLS) -> None:
    """Install the tools and libraries that page/package-lock.json pins, unless they are installed. trainyard.py leaves
    the same stamp."""
    stamp, pinned = tools / "stamp", hashlib.sha256((PAGE / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == pinned:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PAGE / name, tools / name)
    argv = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(argv, cwd=tools, check=True)
    stamp.write_text(pinned)


if __name__ == "__main__":
    TOOLS.mkdir(parents=True, exist_ok=True)
    with FileLock(TOOLS / "lock"):  # of two at once, npm would remove what the other installs
        install()
        make()
    sys.stdout.write(f"{BUNDLE} is made of {PAGE}.\n")
