"""`python -m local.page_bundle`: build page/bundle, the files that browsers load, from page/'s sources with esbuild.

esbuild splits the script by view: a browser loads the script of a view when somebody opens the view. The bundle is in
the repository, so that a plain clone serves the page without Node. Run this module after each change of page/. A test
builds the bundle again and compares, and checks Prettier's format, if the tools are installed. `check` needs no tools:
it compares the sources with those that the bundle was built from. page/package-lock.json pins libraries and tools.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "page"
BUNDLE = PAGE / "bundle"
TOOLS = ROOT / ".trainyard" / "page-tools"  # where trainyard.py installs them for `test` and `check`
LIBRARIES = ("marked", "preact", "uplot")
LICENCES, SOURCES = "LICENCES.txt", "sources.json"
KINDS = (".js", ".jsx", ".css")
COMMON = ["--bundle", "--minify", "--charset=utf8", "--target=es2022", "--legal-comments=none"]
COMMON += ["--log-level=warning", "--preserve-symlinks"]
JSX = ["--format=esm", "--jsx=automatic", "--jsx-import-source=preact"]
ENTRIES = {  # by the entry's name: the form in which a browser loads the entry
    "app.jsx": [
        "--splitting",
        "--chunk-names=[name]-[hash]",
        "--entry-names=page",
        *JSX,
    ],
    "early.js": ["--format=iife"],
}


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
        sources = Path(folder, "page")
        shutil.copytree(page, sources, ignore=shutil.ignore_patterns("node_modules", "bundle"))
        (sources / "node_modules").symlink_to(libraries.resolve())
        for entry, options in ENTRIES.items():
            argv = [str(libraries / ".bin" / "esbuild"), entry, *COMMON, *options, f"--outdir={out}"]
            subprocess.run(argv, cwd=sources, check=True)
    (out / LICENCES).write_text(f"\n{'-' * 80}\n\n".join(_licence(libraries / name) for name in LIBRARIES), "utf-8")
    (out / SOURCES).write_text(json.dumps(digests(page), indent=1) + "\n", "utf-8")


def _licence(package: Path) -> str:
    version = json.loads((package / "package.json").read_text("utf-8"))["version"]
    text = next(file for file in sorted(package.iterdir()) if file.name.lower().startswith("licen")).read_text("utf-8")
    return f"{package.name} {version}\n\n{text.strip()}\n"


def install(tools: Path = TOOLS) -> None:
    """Install the tools and libraries pinned in page/package-lock.json."""
    tools.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PAGE / name, tools / name)
    argv = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(argv, cwd=tools, check=True)


if __name__ == "__main__":
    install()
    make()
    sys.stdout.write(f"{BUNDLE} is made of {PAGE}.\n")
