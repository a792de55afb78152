"""The fenced blocks of the documentation, and their commands.

A block in `sh` has commands, which tests run unchanged. A block that can't be run has a comment with the reason:

    <!-- not run: needs Azure -->
    <!-- not run: tests/e2e/test_demo.py does -->
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "trainers").glob("*/README.md")),
    *sorted((ROOT / "agents").glob("*/SKILL.md")),
]
LANGUAGES = {"sh", "text", "python", "yaml", "json", "mermaid"}
_BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:python3 trainyard\.py|trainyard) [^`]+)`")


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    where: str  # the rest of its first line: the file or folder of the block
    content: str
    why_not: str  # the reason why its commands are not run

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command, as a shell splits them."""
        lines = self.content.replace("\\\n", " ").splitlines()
        return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in their order."""
    name, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
    return [Block(name, *_head(head), content, why) for why, head, content in _BLOCK.findall(text)]


def _head(head: str) -> tuple[str, str]:
    language, _, where = head.partition(" ")
    return language, where


def inline_commands(page: Path) -> list[list[str]]:
    """The words of each Trainyard command in a sentence or a table."""
    text = _BLOCK.sub("", page.read_text("utf-8")).replace("\\|", "|").replace("\\<", "<")
    found = (re.sub(r"\s+", " ", command) for command in _INLINE.findall(text))
    return [shlex.split(command.replace("python3 trainyard.py", "trainyard", 1))[1:] for command in found]
