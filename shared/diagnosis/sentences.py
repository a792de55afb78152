"""What a person's sentences tell beside a log, by the terms and rules of sentences.yaml."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from shared.diagnosis.causes import Cause
from shared.diagnosis.lines import LogLine
from shared.diagnosis.signs import DIGITS, HARMLESS, OTHER_CASE, WARNING, Sign, is_request
from shared.diagnosis.steps import reports_step
from shared.diagnosis.words import Weight, cause_of_message

FILE = Path(__file__).with_name("sentences.yaml")
REPEATED = 3  # a line that a text contains more often is a program's
ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。；！？])")
HEDGED = re.compile(
    r"(?i)\b(?:(?:can|could|would) (?:\w+ )?(?:be|have|cause|lead|happen|hang|make|result|become|get|stay)|may|might"
    r"|to avoid|avoids?|prevents?|potential(?:ly)?|if (?:not|this|it)|in case|otherwise|skip\w*|ignor(?:ing|ed)"
    r"|if (?:an?|the|one|my) \w+ (?:is|was|gets?|becomes?)|want to"
    r"|(?:what|how|wonder(?:ing)?) (?:would|if|whether|can|to)"
    r"|(?:we|i) (?:have )?fixed|is solved|all is well"
    r"|(?:earlier|previous|older|last|other|colleague['’]s) (?:run|job|version|attempt|time|week)|used to)\b"
    r"|\b(?:no|not|never|n['’]t)(?: a| any| been)? (?:pre-?empt\w*|evicted|hangs?|dead-?locks?|explod\w+"
    r"|diverg(?:e[sd]?|ing)|out of)\b"
)
TROUBLE = re.compile(
    r"(?i)(?:n['’]t|\b(?:no|not|cannot|never|fails?|failed|failing|failure|errors?|missing|mismatch\w*|crash\w*|kill\w*"
    r"|wrong|denied|forbidden|refused|reset|conflict\w*|empty|broken|damaged|corrupt\w*|truncated|invalid|unrecognized"
    r"|full|fills?|too|says|complains|blocked|contradict\w*|had to|times? out|timeout|False|raises?|although)\b)"
)
ASKS = re.compile(r"(?i)^(?:could|can|would|should|is|are|does|do|may)\b.*\?$")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PLAIN = re.compile(
    r"(?i)\b(?:the|an?|is|are|was|it|to|this|after|of|in|with|when|but|for|that|on|and|at|my|i|does|do|until|every|very)\b"
)
FINE = re.compile(
    r"(?i)\b(?:works? (?:fine|well|now|normally)|is fine|(?:training|run|it)(?: itself)? (?:continues|works)|goes on"
    r"|(?:is (?:it|this)|completely) (?:normal|right|ok|expected)|ignore|harmless|no effect|not an error"
    r"|(?:runs?|ran|trains?) (?:\w+ ){0,2}(?:to the end|through)|finished (?:well|successfully)|works again)\b"
)


@dataclass(frozen=True)
class _Rule:
    """A cause, the terms that a sentence must contain, and the terms that it must not."""

    cause: Cause
    says: tuple[re.Pattern[str], ...]
    unless: tuple[re.Pattern[str], ...]

    def fits(self, text: str) -> bool:
        """Return whether the text contains each term of `says` and none of `unless`."""
        return all(term.search(text) for term in self.says) and not any(t.search(text) for t in self.unless)


@cache
def _rules() -> tuple[_Rule, ...]:
    found = yaml.safe_load(FILE.read_text("utf-8"))
    terms = {name: re.compile("|".join(words), re.IGNORECASE) for name, words in found["terms"].items()}
    return tuple(
        _Rule(Cause(row["cause"]), _named(terms, row["says"]), _named(terms, row.get("unless", ())))
        for row in found["rules"]
    )


def _named(terms: dict[str, re.Pattern[str]], names: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(terms[name] for name in names)


def _is_said(line: LogLine) -> bool:
    """Return whether a person wrote the line, or the line reads like a sentence and not like one of a log."""
    if reports_step(line.text) or line.level or WARNING.search(line.text):
        return False
    return line.prose or CHINESE.search(line.text) is not None or PLAIN.search(line.text) is not None


def _states(text: str) -> bool:
    """Return whether the sentence tells what is, and not what may be, would be, or is asked."""
    return not (HEDGED.search(text) or OTHER_CASE.search(text) or ASKS.match(text))


def _cause_by_terms(text: str) -> Cause | None:
    return next((rule.cause for rule in _rules() if rule.fits(text)), None)


def _of_trouble(text: str) -> Cause | None:
    """Return the cause whose words are in a sentence that tells of trouble."""
    states = TROUBLE.search(text) is not None and not HARMLESS.search(text)
    return cause_of_message(text) if states else None


def said_fine(lines: Sequence[LogLine]) -> bool:
    """Return whether a person says that the training works."""
    return any(line.prose and FINE.search(line.text) for line in lines)


def of_sentences(lines: Sequence[LogLine], covered: frozenset[int]) -> Iterator[Sign]:
    """Yield signs in a person's text beside the log. `covered`: the numbers of the lines of exceptions.

    Terms of one sentence weigh more than terms of one paragraph.
    """
    by_person = any(line.prose for line in lines) and not said_fine(lines)
    shapes = Counter(DIGITS.sub("0", line.text) for line in lines if not line.prose)
    for line in lines:
        repeated = shapes[DIGITS.sub("0", line.text)] > REPEATED
        if line.number in covered or repeated or is_request(line) or not _is_said(line):
            continue
        said = [part for part in ENDS.split(line.text) if _states(part)]
        if cause := next(filter(None, map(_cause_by_terms, said)), None):
            yield Sign(cause, Weight.WORDS, line, line.number, certain=False)
        if by_person and (cause := next(filter(None, map(_of_trouble, said)), None) or _cause_by_terms(" ".join(said))):
            yield Sign(cause, Weight.TOLD, line, line.number, certain=False)
