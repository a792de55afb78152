"""Tell logs and a person's text apart in an issue's Markdown.

Lines of a log follow each other in time. A person's text before or after a log does not: a title that quotes the
exception comes before the steps that the training still made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.diagnosis.steps import SENTENCE

FENCE = re.compile(r"^\s{0,3}(?:> ?)*(?:`{3,}|~{3,})\s*(?P<language>\w*)\s*$")
TITLE = re.compile(r"^#{1,6} +(?:\W{0,3}[^\W\d_]|\[)")
SPEAKER = re.compile(r"^\S+ · (?:description|comment|review|review thread) · \d{4}-\d\d-\d\d|^\[turn \d+ by ")
PROGRAM = re.compile(r"^\s*(?:import |from [\w.]+ import |def |class |@\w|if __name__)", re.MULTILINE)
LOG = re.compile(r'Traceback \(most recent call last\)|^\s*File "|Error: |\d%\|', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a text that a line belongs to: its number, whether a person wrote it, and whether it is a
    program.
    """

    number: int
    prose: bool = False
    source: bool = False


def parts_of(rows: Sequence[str]) -> list[Part]:
    """Return one part for each line. A text without fences is one part, except for its titles and its speakers."""
    fences = [index for index, row in enumerate(rows) if FENCE.match(row)]
    parts: list[Part] = []
    number, begin, inside = 0, 0, False
    for index in [*fences, len(rows)]:
        block = rows[begin:index]
        told = not fences and any(SPEAKER.match(row) for row in block)
        prose = bool(fences) and not inside
        source = inside and _is_program(block)
        parts += _of_block(block, number, prose, source, told)
        if index < len(rows):
            number += 1
            parts.append(Part(number, prose=True))
        begin, inside = index + 1, not inside
    return parts


def _of_block(block: Sequence[str], number: int, prose: bool, source: bool, told: bool) -> Iterator[Part]:
    """Return the parts of a block's lines. `told`: the block contains speakers, so its sentences are a person's
    words.
    """
    plain, person_line = Part(number, prose, source), Part(number, prose=True)
    for row in block:
        by_person = TITLE.match(row) or SPEAKER.match(row) or (told and SENTENCE.search(row))
        yield person_line if by_person and not source else plain


def _is_program(block: Sequence[str]) -> bool:
    text = "\n".join(block[:200])
    return len(PROGRAM.findall(text)) > 1 and LOG.search(text) is None
