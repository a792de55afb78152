"""The documentation matches the code."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import trainyard
from cli import commands
from shared.drops.model import DropState
from shared.kernel.settings import SETTINGS
from shared.runs.model import RunState
from tests.gate.scripts import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ALL = "\n".join(page.read_text("utf-8") for page in PAGES)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+\s+(.*)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    """Every relative link leads to an existing file and, with an anchor, to an existing heading."""
    broken = []
    for link in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached() -> None:
    """Every page of docs/ is linked from the index or the list of decisions."""
    index = (ROOT / "docs" / "index.md").read_text() + (ROOT / "docs" / "adr" / "README.md").read_text()
    assert [p.name for p in (ROOT / "docs").rglob("*.md") if p.name != "index.md" and p.name not in index] == []


def test_every_command_is_described() -> None:
    """Each command of trainyard.py and of the CLI is in the docs as one types it."""
    names = [
        *trainyard.COMMANDS,
        *(c.name or c.callback.__name__ for c in commands.load().registered_commands if c.callback),
    ]
    assert [c for c in names if f"python3 trainyard.py {c}" not in ALL] == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_is_described(setting: str) -> None:
    """docs/settings.md has a row for each setting, with the same words as the code."""
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert f"`{setting}`" in page
    assert SETTINGS[setting] in page


MADE = load("generate").made()


@pytest.mark.parametrize("path", MADE, ids=lambda p: p.name)
def test_what_is_made_of_declarations_is_current(path: Path) -> None:
    """Each generated file equals what the declarations generate: after a change, run .ci/generate.py."""
    assert path.read_text("utf-8") == MADE[path], "run .trainyard/venv/bin/python .ci/generate.py, and commit"


@pytest.mark.parametrize("state", [*RunState, *DropState])
def test_every_state_is_described(state: str) -> None:
    """docs/api.md explains each state of a run and of a drop."""
    assert f"| {state} |" in (ROOT / "docs" / "api.md").read_text("utf-8")


def test_the_readme_has_the_picture_and_the_commands() -> None:
    """The README shows the path of the data as a Mermaid diagram, and the two commands to start with."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "```mermaid" in readme
    assert all(f"python3 trainyard.py {command}" in readme for command in ("demo", "up"))


def test_the_house_names_every_package() -> None:
    """docs/architecture.md names each folder under shared/, in its picture, and each package beside shared/."""
    picture = (
        (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## The house")[2].partition("## One walk")[0]
    )
    rooms = [f"{folder.parent.name}[" for folder in sorted((ROOT / "shared").glob("*/__init__.py"))]
    beside = [f"`{name}/`" for name in ("functions", "cli", "page", "trainers", "emulators", "local")]
    assert [name for name in [*rooms, *beside] if name not in picture] == []
