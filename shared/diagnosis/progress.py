"""The progress of a training in its log: its steps, its losses, and the time that it waits for data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from shared.diagnosis.causes import Cause
from shared.diagnosis.lines import LogLine
from shared.diagnosis.signs import Sign
from shared.diagnosis.steps import NUMBER, reports_step
from shared.diagnosis.words import Weight

SECOND = r" (?!at|after|in|on|for|of|over|from|to|scale|is)[a-z]\w*"  # of the name of a loss, as in `loss sum`
LOSS = re.compile(
    rf"(?i)(?P<name>\b(?:[a-z]\w*[_ /-])?(?:loss|ppl|perplexity|xent|nll|cross[_ ]entropy)(?:_\w+|{SECOND})?)['\"]?"
    rf"\s*(?:[:=]|is|\s)\s*(?:tensor\()?(?P<value>{NUMBER})\b"
)
GRADIENT = re.compile(rf"(?i)\bgrad(?:ient)?[_ ]?norm['\"]?\s*[:=]?\s*(?P<value>{NUMBER})\b")
ROW = re.compile(rf"(?i)^\W*\d+(?:/\d+)?\b(?:[\s|,]+{NUMBER}[GM%]?(?![\w.])){{3,}}|^.*?(?:\|\s*{NUMBER}\s*){{3,}}\|")
NOT_A_NUMBER = re.compile(r"(?i)[\s|,-]nan\b")
DATA_TIME = re.compile(
    r"(?i)\bdata(?:_time|[ _]?load(?:ing)?(?:_time)?)?\s*[:=]?\s*(?P<value>\d+\.\d+)(?:\s*\((?P<mean>\d+\.\d+)\))?"
)
STEP_TIME = re.compile(
    r"(?i)(?:^|[\s,\t|])(?:iter_|batch_|step_)?time\s*[:=]?\s*(?P<value>\d+\.\d+)(?:\s*\((?P<mean>\d+\.\d+)\))?"
)
WAIT_SHARE = re.compile(r"\bdata_wait_share\W{1,3}(?P<share>[01](?:\.\d+)?)\b|\bData (?P<percent>\d{1,3}(?:\.\d+)?) ?%")
DONE = re.compile(
    r"(?i)^\W*(?:done|finished|training (?:is )?(?:complete|done|finished)"
    r"|train(?:ing)? (?:has )?(?:completed|finished|ended)|the experiment completed successfully"
    r"|completed successfully|all done|saved? (?:the )?(?:final )?model|model saved"
    r"|(?:the )?\w+ is (?:now )?trained|successfully installed)\b"
    r"|exit(?:ed)? (?:with )?(?:code|status)[: ]*0\b|Run completed|job (?:completed|succeeded)"
)
GUARD = re.compile(
    r"(?i)\bloss\b.{0,20}\b(?:is|was|became)\b.{0,40}\b(?:skip|ignor)\w*"
)  # the training goes on without this batch
CRASHED = re.compile(r"(?i)\b(?:training|run|job) (?:has )?(?:crashed|aborted|failed)|\brestarting training")
NO_STEP = re.compile(r"\b0it \[|\b0/0\b|[Mm]ean of empty slice")
OVERFLOW = re.compile(r"(?i)overflow.{0,80}loss scale(?: to)?:? (?P<scale>\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
ADVERSARIAL = re.compile(
    r"(?:d|g|gen|disc|adv|gan|kl|gp)\w{0,12}[_ /-]?loss|loss_(?:d|g|gen|disc|adv|kl)\b"
)  # they rise and fall
LEAP, ENOUGH, MOSTLY = 10.0, 6, 0.5
GRADIENTS = 2  # norms that are not numbers, up to the last
LEAST_SCALE, OVERFLOWS_IN_A_ROW = 1e-3, 10  # NVIDIA/apex#318, #493: a few overflows are how a dynamic loss scale works


@dataclass(frozen=True)
class StepReports:
    """The lines that report a step of the training, and the lines that report a successful end, by part of the
    text.
    """

    steps: dict[int, list[LogLine]]
    done: dict[int, int]

    def after(self, line: LogLine, last: int) -> int:
        """Return the number of reports after the line `last` in the same part of the text and of the same rank."""
        steps = self.steps.get(line.part, [])
        of_rank = [step for step in steps if step.rank == line.rank] or steps
        return sum(1 for step in of_rank if step.number > last)

    def anywhere_after(self, line: LogLine) -> bool:
        """Return whether any part of the text reports a step after the line."""
        return any(step.number > line.number for steps in self.steps.values() for step in steps)

    def ended_well_after(self, line: LogLine, last: int) -> bool:
        """Return whether the same part of the text reports a successful end after the line with the number `last`."""
        return self.done.get(line.part, 0) > last


def progress_of(lines: Sequence[LogLine], covered: frozenset[int]) -> StepReports:
    """Return the training's reports, without lines of exceptions."""
    reports, crashed = StepReports({}, {}), set[int]()
    for line in lines:
        if line.number in covered or line.prose:
            continue
        if reports_step(line.text):
            reports.steps.setdefault(line.part, []).append(line)
            crashed.discard(line.part)
        elif CRASHED.search(line.text):
            crashed.add(line.part)
        if DONE.search(line.text) and line.part not in crashed:
            reports.done[line.part] = line.number
    return reports


def of_metrics(lines: Sequence[LogLine], least: int = 1) -> Iterator[Sign]:
    """Find signs in the training's metrics: losses that are not numbers or leap, and steps that wait for data.

    `least` is the required number of losses that are not numbers.
    """
    series: dict[str, list[tuple[LogLine, float]]] = {}
    for line in lines:
        for found in LOSS.finditer(line.text) if reports_step(line.text) or not GUARD.search(line.text) else ():
            series.setdefault(found["name"].lower(), []).append((line, float(found["value"])))
    for name, values in series.items():
        yield from _not_numbers(values, lines, least)
        if not ADVERSARIAL.match(name):
            yield from _leaps(values)
    yield from _gradients(lines)
    yield from _rows(lines)
    yield from _overflows(lines)
    yield from _waits_for_data(lines)


def _overflows(lines: Sequence[LogLine]) -> Iterator[Sign]:
    """Find a loss scale that falls without end: each step has a gradient that is not a number."""
    in_a_row = 0
    for line in lines:
        found = OVERFLOW.search(line.text)
        in_a_row = in_a_row + 1 if found else in_a_row if line.blank else 0
        if found and (float(found["scale"]) < LEAST_SCALE or in_a_row > OVERFLOWS_IN_A_ROW):
            yield Sign(Cause.NAN_LOSS, Weight.CAUSE, line, line.number)
            return


def _gradients(lines: Sequence[LogLine]) -> Iterator[Sign]:
    """Find gradient norms that are not numbers: the last one, and more than half of all."""
    norms = [(line, float(found["value"])) for line in lines if (found := GRADIENT.search(line.text))]
    bad = [line for line, value in norms if math.isnan(value)]
    if len(bad) >= GRADIENTS and math.isnan(norms[-1][1]) and len(bad) > len(norms) / 2:
        yield Sign(Cause.NAN_LOSS, Weight.SUMMARY, bad[0], bad[0].number, certain=False)


def _rows(lines: Sequence[LogLine]) -> Iterator[Sign]:
    """Find a table of steps whose last rows, unlike earlier ones, lack numbers."""
    rows = [(line, NOT_A_NUMBER.search(line.text) is not None) for line in lines if ROW.match(line.text)]
    bad = [line for line, is_bad in rows if is_bad]
    if GRADIENTS <= len(bad) < len(rows) and all(is_bad for _, is_bad in rows[-GRADIENTS:]):
        yield Sign(Cause.NAN_LOSS, Weight.CAUSE, bad[0], bad[0].number)


def _not_numbers(values: list[tuple[LogLine, float]], lines: Sequence[LogLine], least: int) -> Iterator[Sign]:
    bad = [line for line, value in values if not math.isfinite(value)]
    if len(bad) < least or math.isfinite(values[-1][1]):
        return
    empty = any(NO_STEP.search(line.text) for line in lines if line.number <= bad[0].number)
    cause = Cause.DATA_NOT_FOUND if empty else Cause.NAN_LOSS
    yield Sign(cause, Weight.CAUSE, bad[0], bad[0].number, certain=len(bad) > 1)


def _leaps(values: list[tuple[LogLine, float]]) -> Iterator[Sign]:
    finite = [(line, value) for line, value in values if math.isfinite(value)]
    if len(finite) < ENOUGH:
        return
    best = min(value for _, value in finite)
    end = median(value for _, value in finite[-3:])
    first = median(value for _, value in finite[:3])
    if best > 0 and end > LEAP * best and end > 2 * first:
        leap = next(line for line, value in finite if value > LEAP * best and line.number >= finite[0][0].number)
        yield Sign(Cause.DIVERGING, Weight.SUMMARY, leap, leap.number, certain=False)


def wait_shares(lines: Sequence[LogLine]) -> list[tuple[LogLine, float]]:
    """Return the lines that report how long the training waited for data, each with the share of the time (0 to 1)."""
    shares: list[tuple[LogLine, float]] = []
    for line in lines:
        waited, step = DATA_TIME.search(line.text), STEP_TIME.search(line.text)
        if told := WAIT_SHARE.search(line.text):
            shares.append((line, float(told["percent"]) / 100 if told["percent"] else float(told["share"])))
        elif waited and step and (whole := float(step["mean"] or step["value"])) > 0:
            shares.append((line, float(waited["mean"] or waited["value"]) / whole))
    return shares


def _waits_for_data(lines: Sequence[LogLine]) -> Iterator[Sign]:
    shares = wait_shares(lines)
    if shares and median(share for _, share in shares[len(shares) // 2 :]) > MOSTLY:
        worst = max(shares, key=lambda pair: pair[1])[0]
        yield Sign(Cause.INPUT_BOUND, Weight.SUMMARY, worst, worst.number, certain=len(shares) > 2)
