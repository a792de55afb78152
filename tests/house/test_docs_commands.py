"""Every documented command is valid, and every block of commands is run or gives a reason why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import typer
import yaml

import trainyard
from cli import commands
from tests.e2e.docs_blocks import LANGUAGES, PAGES, ROOT, Block, blocks, inline_commands
from tests.e2e.test_docs_pages import EXECUTED

TOP: Any = typer.main.get_command(commands.load())
ALL = [block for page in PAGES for block in blocks(page)]
FOLLOWED = {"docs/trainers.md": "tests/e2e/test_trainers_page.py"}  # followed literally by its own test
WHY_NOT = ("needs Azure", "needs a package index")
OWN = {*trainyard.COMMANDS}  # commands of trainyard.py itself
SYNOPSIS = re.compile(r"[A-Z<>.…\[\]|]{2,}|^\.\.\.$")


def parse(words: list[str]) -> None:
    """Parse the words as the command line does, without running anything. Raises click.UsageError."""
    command, context = TOP, click.Context(TOP)
    while isinstance(command, click.Group):
        name, resolved, words = command.resolve_command(context, words)
        assert resolved is not None
        command = resolved
        context = click.Context(command, parent=context, info_name=name)
    if "--help" not in words and words != ["..."]:
        command.make_parser(context).parse_args(list(words))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_is_one(page: Path) -> None:
    """Commands in sentences, tables and blocks name an existing command and its options."""
    shell = [block for block in blocks(page) if block.language == "sh"]
    fenced = [words[2:] for block in shell for words in block.commands if "trainyard.py" in words[:2]]
    wrong = []
    for words in [*inline_commands(page), *fenced]:
        if not words or words[0] in OWN or words[0].startswith(("-", "<")):
            continue
        try:
            parse(words)
        except click.UsageError as error:
            wrong.append((" ".join(words), error.format_message()))
    assert wrong == []


def test_every_block_has_a_language() -> None:
    """A block declares its content: commands as sh, output as text, a picture, or code."""
    assert [(b.page, b.content[:60]) for b in ALL if b.language not in LANGUAGES] == []


@pytest.mark.parametrize("block", [b for b in ALL if b.language == "yaml" and not b.where], ids=lambda b: b.page)
def test_yaml_is_yaml(block: Block) -> None:
    """YAML to be copied into a file can be parsed."""
    assert isinstance(yaml.safe_load(block.content), dict | list)


def test_every_block_is_run_or_says_why_not() -> None:
    """A block of commands is on a page that a test runs, or has a reason: Azure, an index, its own test."""
    for block in (b for b in ALL if b.language == "sh"):
        if block.page in FOLLOWED:
            assert (ROOT / FOLLOWED[block.page]).is_file()
        elif block.why_not:
            check_reason(block)
        else:
            assert block.page in EXECUTED, f"{block.page}: no test runs {block.commands[0]}"


def check_reason(block: Block) -> None:
    if block.why_not == "needs Azure":
        assert {words[0] for words in block.commands} <= {"az", "azd"}, block.page
    elif block.why_not not in WHY_NOT:
        files = re.findall(r"tests/\S+\.py", block.why_not)
        assert files, f"{block.page}: {block.why_not!r} is no reason; choose {WHY_NOT} or name a test"
        tests = "".join((ROOT / file).read_text("utf-8") for file in files)
        typed = " ".join(word for words in block.commands for word in words if not word.startswith("-"))
        named = set(re.findall(r"(?<![\w-])(?:[a-z_-]{4,}|up)(?![\w-])", typed)) - {"python", "torchrun", "train"}
        named |= set(re.findall(r"\b[A-Z_]{8,}(?==)", block.content))
        assert any(re.search(rf"\b{word}\b", tests) for word in named), f"{block.page}: {files} have none of {named}"
