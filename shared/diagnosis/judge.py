"""One cause from all signs of a log."""

from __future__ import annotations

from collections.abc import Sequence

from shared.diagnosis.advice import advice, summary
from shared.diagnosis.causes import Cause, Certainty, Diagnosis, QuotedLine
from shared.diagnosis.lines import LogLine, lines_of
from shared.diagnosis.progress import StepReports, of_metrics, progress_of
from shared.diagnosis.signs import Sign, of_exceptions, of_launchers, of_lines, of_words
from shared.diagnosis.tracebacks import Raised, raised_in
from shared.diagnosis.words import Weight

QUOTES, LONGEST_QUOTE = 5, 300
GOES_ON = 2  # reports of steps after a line, from which on the line ended nothing
KILLED, BUS, ARGUMENTS = (137, -9), (135, -7), 2


def diagnose_log(text: str, exit_code: int | None = None) -> Diagnosis:
    """The cause of a training's failure, from its log and its exit code.

    `text` is the log of one process or of several; prefixes such as `[rank0]:` tell them apart. `exit_code` is that of
    the process, or minus the signal that ended it. The result's cause is HEALTHY if the log shows no failure, and
    NOT_KNOWN if the log does not show the cause.
    """
    lines = lines_of(text)
    raised = raised_in(lines)
    covered = frozenset(number for one in raised for number in range(one.first, one.last + 1))
    progress = progress_of(lines, covered)
    signs = [
        *of_exceptions(raised),
        *of_lines(lines, covered),
        *of_launchers(lines),
        *of_metrics(lines),
        *of_words(lines, covered),
    ]
    fatal = [sign for sign in signs if not _went_on(sign, progress)]
    first = _decisive(fatal)
    if exit_code and (first is None or first.weight <= Weight.SUMMARY):
        first = _of_exit_code(exit_code, lines) or first
    return _diagnosis(first, fatal) if first else _none(lines, raised, progress, exit_code)


def _went_on(sign: Sign, progress: StepReports) -> bool:
    """Whether the training reported further steps, or its end, after the sign, so that the sign ended nothing."""
    if sign.weight in (Weight.PLATFORM, Weight.SUMMARY, Weight.WORDS) or sign.cause is Cause.NAN_LOSS:
        return False
    ended_well = progress.done is not None and progress.done > sign.last
    return ended_well or progress.after(sign.last) >= GOES_ON


def _decisive(signs: Sequence[Sign]) -> Sign | None:
    return min(signs, key=lambda sign: (-sign.weight, sign.line.number), default=None)


def _of_exit_code(code: int, lines: Sequence[LogLine]) -> Sign | None:
    last = next((line for line in reversed(lines) if not line.blank), LogLine(1, ""))
    if code in KILLED:
        return Sign(Cause.HOST_OOM, Weight.SUMMARY, last, last.number, certain=False)
    if code in BUS:
        return Sign(Cause.SHM_BUS_ERROR, Weight.SUMMARY, last, last.number, certain=False)
    if code == ARGUMENTS and any(line.text.startswith("usage:") for line in lines):
        return Sign(Cause.ARGUMENT_ERROR, Weight.SUMMARY, last, last.number)
    return None


def _diagnosis(first: Sign, signs: Sequence[Sign]) -> Diagnosis:
    same = [sign for sign in signs if sign.cause is first.cause and sign is not first]
    quotes = tuple(_quote(sign) for sign in [first, *same][:QUOTES])
    where = first.raised.where if first.raised else None
    return Diagnosis(
        first.cause,
        Certainty.CERTAIN if first.certain else Certainty.LIKELY,
        summary(first.cause, first.line.text.strip(), first.rank, where),
        quotes,
        where,
        first.rank,
        advice(first.cause),
    )


def _quote(sign: Sign) -> QuotedLine:
    return QuotedLine(sign.line.number, sign.line.text.strip()[:LONGEST_QUOTE], sign.rank)


def _none(
    lines: Sequence[LogLine], raised: Sequence[Raised], progress: StepReports, exit_code: int | None
) -> Diagnosis:
    well = exit_code == 0 or (exit_code is None and bool(progress.steps or progress.done))
    cause = Cause.HEALTHY if well else Cause.NOT_KNOWN
    to_read = [one.line for one in raised][:QUOTES] or [line for line in lines if not line.blank][-QUOTES:]
    quotes = (
        () if well else tuple(QuotedLine(line.number, line.text.strip()[:LONGEST_QUOTE], line.rank) for line in to_read)
    )
    return Diagnosis(cause, Certainty.NONE, summary(cause, "", None, None), quotes, advice=advice(cause))
