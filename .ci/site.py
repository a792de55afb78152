"""`python3 trainyard.py site`: build the documentation as a website with search, from the pages in the repository.

docs/index.md declares the pages, their groups and their order; the navigation follows it, as do the docs on the web
page. The pages are copied to a folder of their own, where links to other pages lead to those pages, and links to files
of the repository lead to --source, or become plain text without it. Zensical then builds the site
(docs/adr/0112-the-site-is-built-with-zensical.md). It refuses dead links, and the site loads nothing from elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".trainyard" / "site"
INDEX = "docs/index.md"
PICTURES = (".png", ".svg")
GROUP = re.compile(r"^\*\*(.+)\*\*$")
ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```([a-z]+)(.*)$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SLUGIFY = "!!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}"
OUTSIDE = re.compile(r"[a-z]+:")


class SiteFault(Exception):
    """The site can't be built. The message says why."""


class NoRegistry(SiteFault):
    """The generator could not be installed."""


@dataclass(frozen=True)
class Group:
    """A group of pages under one heading of the navigation. `pages` are (title, path in the repository)."""

    title: str
    pages: tuple[tuple[str, str], ...]


def groups(root: Path = ROOT) -> list[Group]:
    """Return the groups that docs/index.md lists, in their order."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in (root / INDEX).read_text("utf-8").splitlines():
        if heading := GROUP.match(line):
            found.append((heading[1], []))
        elif found and (entry := ENTRY.match(line)):
            found[-1][1].append((entry[1][0].upper() + entry[1][1:], posixpath.normpath(f"docs/{entry[2]}")))
    return [Group(title, tuple(pages)) for title, pages in found]


def places(root: Path = ROOT) -> dict[str, str]:
    """Return each page's path in the site by its path in the repository."""
    listed = [path for group in groups(root) for _, path in group.pages]
    decisions = (path.relative_to(root).as_posix() for path in (root / "docs" / "adr").glob("*.md"))
    trainers = (path.relative_to(root).as_posix() for path in (root / "trainers").glob("*/README.md"))
    return {path: _place(path) for path in dict.fromkeys([INDEX, "README.md", *listed, *sorted(decisions), *trainers])}


def _place(path: str) -> str:
    name = path.removeprefix("docs/").lower()
    return name.replace("readme.md", "overview.md") if not path.startswith("docs/") else name


def navigation(root: Path = ROOT) -> list[dict[str, object]]:
    """Return the navigation: the overview, then the groups of docs/index.md; decisions are reached from their list."""
    where = places(root)
    first: list[dict[str, object]] = [{"Documentation": where[INDEX]}, {"What Trainyard is": where["README.md"]}]
    trainers = [{path.split("/")[1]: where[path]} for path in sorted(where) if path.startswith("trainers/")]
    listed: list[dict[str, object]] = [
        {group.title: [{title: where[path]} for title, path in group.pages]} for group in groups(root)
    ]
    return [*first, *listed, {"Trainers": trainers}]


def page_of(path: str, source: str, where: dict[str, str], root: Path = ROOT) -> str:
    """Return the text of a page for the site, with its links as the site has them. Raises SiteFault for a dead link."""
    pieces = CODE.split((root / path).read_text("utf-8"))

    def linked(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        file, _, anchor = target.partition("#")
        if OUTSIDE.match(target) or not file:
            return match[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        to = _address(there, where, path, source, root)
        return f"{picture}[{text}]({to}{'#' + anchor if anchor else ''})" if to else text

    text = "".join(piece if number % 2 else LINK.sub(linked, piece) for number, piece in enumerate(pieces))
    return FENCE.sub(lambda fence: f"```{fence[1].replace('mermaid', 'text')}{_title(fence[2])}", text)


def _title(where: str) -> str:
    """Return the file or folder of a block, in the form of Zensical."""
    return f' title="{where.strip()}"' if where.strip() else ""


def _address(there: str, where: dict[str, str], path: str, source: str, root: Path) -> str:
    """Return the address of a file of the repository as seen from a page; '' for a file that the site lacks."""
    if not (root / there).exists():
        raise SiteFault(f"{path} links to {there}, which does not exist.")
    here = posixpath.dirname(where[path])
    if there in where:
        return posixpath.relpath(where[there], here or ".")
    if there.endswith(PICTURES):
        return posixpath.relpath(f"pictures/{posixpath.basename(there)}", here or ".")
    return f"{source.rstrip('/')}/{there}" if source else ""


def write_sources(folder: Path, source: str, root: Path = ROOT) -> None:
    """Write the pages, and the pictures that they show, to the folder."""
    where = places(root)
    for path, place in where.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_without_comments(page_of(path, source, where, root)), "utf-8")
    (folder / "pictures").mkdir()
    for picture in (each for each in (root / "docs").iterdir() if each.suffix in PICTURES):
        shutil.copy(picture, folder / "pictures")


def _without_comments(text: str) -> str:
    """Return the text without the comments that tell our tests which blocks they run."""
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)


def config(version: str, root: Path = ROOT) -> dict[str, object]:
    """Return the configuration of Zensical. No font, script or picture comes from another server."""
    scheme = [
        {"media": "(prefers-color-scheme: light)", "scheme": "default", "toggle": _toggle("sunny", "dark")},
        {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "toggle": _toggle("night", "light")},
    ]
    features = ["navigation.indexes", "navigation.footer", "navigation.top", "search.highlight", "content.code.copy"]
    extensions: dict[str, object] = {"toc": {"permalink": True, "slugify": SLUGIFY}, "tables": {}}
    extensions |= {"pymdownx.superfences": {}, "pymdownx.highlight": {}, "attr_list": {}, "md_in_html": {}}
    return {
        "site_name": "Trainyard",
        "site_description": tomllib.loads((root / "pyproject.toml").read_text())["project"]["description"],
        "docs_dir": "pages",
        "site_dir": "built",
        "use_directory_urls": False,
        "nav": navigation(root),
        "theme": {"font": False, "palette": scheme, "features": features},
        "plugins": [{"search": {}}],
        "markdown_extensions": [{name: options} for name, options in extensions.items()],
        **({"extra": {"version": {"provider": "mike"}}} if version else {}),
    }


def _yaml(settings: dict[str, object]) -> str:
    """Return the configuration as JSON, which is YAML, with the function that names anchors as GitHub does."""
    return json.dumps(settings, indent=2).replace(json.dumps(SLUGIFY), SLUGIFY)


def _toggle(icon: str, other: str) -> dict[str, str]:
    return {"icon": f"material/weather-{icon}", "name": f"Switch to {other} mode"}


def add_version(out: Path, version: str) -> None:
    """List the version in OUT/versions.json, from which each page's selector reads the versions, newest first."""
    file = out / "versions.json"
    out.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else []
    kept = [each for each in known if each["version"] != version]
    file.write_text(json.dumps([{"version": version, "title": version, "aliases": []}, *kept], indent=2) + "\n")


def generator(work: Path = WORK) -> list[str]:
    """Return the command that starts the pinned Zensical. It has an environment of its own, so that its packages do not
    change those of the app or the gate. Raises NoRegistry if it can't be installed."""
    venv, stamp, pins = work / "venv", work / "venv.stamp", ROOT / "requirements-site.txt"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    content = hashlib.sha256(pins.read_bytes()).hexdigest()
    if not (python.exists() and stamp.exists() and stamp.read_text() == content):
        uv = Path(sys.executable).with_name("uv")
        work.mkdir(parents=True, exist_ok=True)
        _install([str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(venv)])
        _install([str(uv), "pip", "install", "--quiet", "--python", str(python), "--require-hashes", "-r", str(pins)])
        stamp.write_text(content)
    return [str(python), "-m", "zensical"]


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoRegistry(f"Zensical can't be installed. It needs the package registry.\n{done.stderr.strip()}")


def build(out: Path, source: str, version: str, work: Path = WORK) -> Path:
    """Build the site, and return its folder. Raises SiteFault for a dead link or another warning."""
    command, folder = generator(work), work / "src"
    shutil.rmtree(folder, ignore_errors=True)
    write_sources(folder / "pages", source)
    (folder / "mkdocs.yml").write_text(_yaml(config(version)), "utf-8")
    done = subprocess.run([*command, "build", "--strict"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SiteFault(COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0].strip())
    target = out / version if version else out
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "built", target)
    if version:
        add_version(out, version)
    return target


def loaded_from_elsewhere(folder: Path) -> Iterator[str]:
    """Yield the addresses on other servers from which a page loads something. A link loads nothing."""
    loads = re.compile(r"""<(?:script|img|iframe|link|source|video)\b[^>]*?\b(?:src|href)=["']?(https?://[^"'\s>]+)""")
    for page in sorted(folder.rglob("*.html")):
        for tag in re.finditer(r"<[^>]+>", page.read_text("utf-8")):
            if (found := loads.match(tag[0])) and 'rel="canonical"' not in tag[0]:
                yield f"{page.relative_to(folder)}: {found[1]}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 trainyard.py site", description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=WORK / "html", help="folder of the site; default %(default)s")
    parser.add_argument("--source", default="", metavar="URL", help="address of the files of the repository")
    parser.add_argument("--version", default="", help="build this version into a folder of its own, and list it")
    asked = parser.parse_args(argv)
    try:
        folder = build(asked.out.resolve(), asked.source, asked.version)
    except SiteFault as fault:
        sys.stdout.write(f"{fault}\nThe site was not built.\n")
        return 1
    sys.stdout.write(f"The site is in {folder}. To read it: python3 -m http.server -d {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
