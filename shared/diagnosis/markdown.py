"""Tell logs and a person's text apart in an issue's Markdown.

Lines of a log follow each other in time. A person's text before or after a log does not: a title that quotes the
exception comes before the steps that the training still made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.diagnosis.steps import SENTENCE, reports_step

FENCE = re.compile(r"^\s{0,3}(?:> ?)*(?:`{3,}|~{3,})\s*(?P<language>\w*)\s*$")
TITLE = re.compile(r"^#{1,6} +(?:\W{0,3}[^\W\d_]|\[)")
TAG = r"\[(?i:bug|question|help|feature|issue)\]"  # people put it before a title
PERSON = re.compile(
    rf"^{TAG}|\bI\b(?![/.:)]| tensorflow)|\b(?:[Mm]y|[Ww]e|[Oo]ur|us|me)\b"
    r"|(?i:\b(?:thanks|thank you|hello|hi|hey|anyone|anybody)\b)|\?\s*$"
)
SAYS = re.compile(
    r"(?i)^(?=.*\b(?:the|a|an|is|it|to|this|these|after|of|in|with|when|but|for|then|here|so)\b)[a-z'][a-z',;() -]+:$"
)
LOGGED = re.compile(
    rf"^\s|^(?!{TAG})[\[{{(<>│╭#$%@|+*=~-]|^\d|^\S*(?:Error|Exception|Warning|INFO|WARN|Traceback)|^\S+: "
    r"|^\S+[@/\\]\S+|^[IWEFD] ?\d\d|File \"|\bWe (?:couldn|could not|assume)"
)
SENTENCES = re.compile(
    r"(?i)^(?=(?:.*\b(?:the|a|an|is|it|to|this|after|of|in|with|when|but|for|that|on|and|are)\b){3})[a-z].{30,}[.?!]$"
)
TITLED, LONGEST_TITLE = 2, 160  # lines of a text with a title, and characters of a title
SPEAKER = re.compile(r"^\S+ · (?:description|comment|review|review thread) · \d{4}-\d\d-\d\d|^\[turn \d+ by ")
PROGRAM = re.compile(r"^\s*(?:import |from [\w.]+ import |def |class |@\w|if __name__)", re.MULTILINE)
LOG = re.compile(r'Traceback \(most recent call last\)|^\s*File "|Error: |\d%\|', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a text that a line belongs to: its number, whether a person wrote it, whether it is a program, and
    whether it is a title, which often quotes the error.
    """

    number: int
    prose: bool = False
    source: bool = False
    title: bool = False


def parts_of(rows: Sequence[str]) -> list[Part]:
    """Return one part for each line. A text without fences is one part, except for its titles and its speakers."""
    if not any(FENCE.match(row) or SPEAKER.match(row) for row in rows):
        return list(_without_fences(rows))
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


def _without_fences(rows: Sequence[str]) -> Iterator[Part]:
    """Return the parts of a text without Markdown's fences: a person's lines divide it into parts."""
    number, after_person, blank_before = 0, False, True
    report = _is_report(rows)
    for index, row in enumerate(rows):
        title = bool(TITLE.match(row)) or (index == 0 and _is_title(rows))
        person = (
            report
            or title
            or (not LOGGED.match(row) and bool(PERSON.search(row) or (blank_before and SAYS.match(row))))
        )
        if after_person and row.strip() and not person:
            number += 1
        after_person = person or (after_person and not row.strip())
        blank_before = not row.strip()
        yield Part(number, person, title=title)


def _is_report(rows: Sequence[str]) -> bool:
    """Return whether a person's sentences are the whole text, without a line of a log."""
    said = [row for row in rows if row.strip()]
    return any(SENTENCES.search(row) for row in said) and not any(
        LOGGED.match(row) or reports_step(row) for row in said
    )


def _is_title(rows: Sequence[str]) -> bool:
    """Return whether the first line stands alone before a blank line and more text, as an issue's title does."""
    first = rows[0].rstrip() if len(rows) > TITLED and not rows[1].strip() else ""
    return bool(first) and first[0] not in " [{(<>" and first[-1] not in ".:?" and len(first) < LONGEST_TITLE


def _of_block(block: Sequence[str], number: int, prose: bool, source: bool, told: bool) -> Iterator[Part]:
    """Return the parts of a block's lines. `told`: the block contains speakers, so its sentences are a person's
    words.
    """
    plain, person_line = Part(number, prose, source), Part(number, prose=True)
    for row in block:
        if TITLE.match(row) and not source:
            yield Part(number, prose=True, title=True)
            continue
        by_person = SPEAKER.match(row) or (told and SENTENCE.search(row))
        yield person_line if by_person and not source else plain


def _is_program(block: Sequence[str]) -> bool:
    text = "\n".join(block[:200])
    return len(PROGRAM.findall(text)) > 1 and LOG.search(text) is None
