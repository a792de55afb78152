"""The emulators' pages: every link has a target in this folder, and every command is run by a test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest

from emulator_tests.places import PROJECT
from emulators.__main__ import parser

PAGES = [*sorted(PROJECT.glob("*.md")), *sorted((PROJECT / "docs").rglob("*.md"))]
README = PROJECT / "README.md"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^(?:<!-- not run: (.*?) does -->\n)?```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+\s+(.*)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(PROJECT)))
def test_links_stay_in_the_folder(page: Path) -> None:
    """Every relative link leads to an existing file and heading in this folder."""
    broken = []
    for link in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        there = target.exists() and target.is_relative_to(PROJECT)
        if not there or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_each_command_is_run_by_a_test() -> None:
    """A shell block names the test that runs it, and the test uses the same program."""
    found = SHELL.findall(README.read_text("utf-8"))
    assert found
    for test, _ in found:
        assert (PROJECT / test).is_file(), test


def test_the_command_takes_the_words_of_the_readme() -> None:
    """Each `azure-emulators` command in the README exists, also in a command substitution."""
    blocks = [block for _, block in SHELL.findall(README.read_text("utf-8"))]
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    commands = [words[1:] for words in lines if words and words[0] == "azure-emulators"]
    commands += [text.split()[1:] for text in re.findall(r"\$\((azure-emulators [^)]*)\)", "".join(blocks))]
    assert {parser().parse_args(command).command for command in commands} == {"env", "up"}
