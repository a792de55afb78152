"""Choose one cause from all signs of a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shared.diagnosis.advice import advice, summary
from shared.diagnosis.causes import Cause, Certainty, Diagnosis, QuotedLine
from shared.diagnosis.lines import LogLine, lines_of
from shared.diagnosis.progress import StepReports, of_metrics, progress_of
from shared.diagnosis.raised import Raised
from shared.diagnosis.sentences import TROUBLE, of_sentences, said_fine
from shared.diagnosis.signs import HARMLESS, Sign, of_exceptions, of_launchers, of_lines
from shared.diagnosis.steps import reports_step
from shared.diagnosis.tracebacks import raised_in
from shared.diagnosis.words import Weight, cause_of_message

QUOTES, LONGEST_QUOTE = 5, 300
LAST_LINES = 3  # of a process that failed, which may tell why
GOES_ON = 2  # with this many reports of steps after a line, the line did not end the training
LOST_OTHERS = (Cause.RENDEZVOUS_OR_RESET, Cause.NCCL_TIMEOUT)
STATED_BY_PLATFORMS = (Cause.PREEMPTION, Cause.TIME_LIMIT, Cause.QUOTA_OR_CAPACITY, Cause.ENV_BUILD, Cause.PERMISSION)
GOES_ON_SLOWLY = (Cause.DEADLOCK, Cause.STRAGGLER, Cause.INPUT_BOUND)
OF_METRICS = (Cause.NAN_LOSS, Cause.DIVERGING, Cause.INPUT_BOUND)  # their lines are the reports of steps themselves
ENDS_THE_JOB = (Cause.PREEMPTION, Cause.TIME_LIMIT, Cause.HOST_OOM)
CLOSED = re.compile(r"(?i)(?:closed|reset) by peer|broken pipe|socket closed")
KILLED, BUS, ARGUMENTS = (137, -9), (135, -7), 2


def diagnose_log(text: str, exit_code: int | None = None) -> Diagnosis:
    """Return the cause of a training's failure, from its log and its exit code.

    `text` is the log of one process or of several; prefixes such as `[rank0]:` tell the processes apart. `exit_code` is
    the exit code of the process, or minus the signal that ended the process. The result's cause is HEALTHY if the log
    shows no failure, and NOT_KNOWN if the log does not show the cause.
    """
    lines = lines_of(text)
    raised = raised_in(lines)
    covered = frozenset(number for one in raised for number in range(one.first, one.last + 1))
    reports = progress_of(lines, covered)
    signs = [
        *of_exceptions(raised),
        *of_lines(lines, covered),
        *of_launchers(lines),
        *of_metrics(lines),
        *of_sentences(lines, covered),
    ]
    ended = any(one.full and not one.ignored and one.short_type != "KeyboardInterrupt" for one in raised)
    fatal = [sign for sign in signs if not (_went_on(sign, reports) or (ended and _never_ends(sign)))]
    first = _decisive(fatal)
    if exit_code == 0 and first and first.weight < Weight.CAUSE:
        first = None
    if exit_code and (first is None or first.weight <= Weight.SUMMARY):
        first = _of_exit_code(exit_code, lines) or first or _of_last_lines(lines)
    return _diagnosis(first, fatal) if first else _none(lines, raised, reports, exit_code)


def diagnose_ranks(logs: Mapping[int, str], said: str = "", exit_code: int | None = None) -> Diagnosis:
    """Return the cause of a failure, from the log of each rank and from the platform's message `said` about the job.

    Nodes have different clocks, so ranks are not ordered by time. A cause of the table counts more than an exception of
    the user's code, which counts more than a lost connection, because a lost connection follows when another rank is
    gone.
    """
    platform = diagnose_log(said, exit_code)
    found = [(rank, diagnose_log(text, exit_code)) for rank, text in sorted(logs.items())]
    if platform.cause in STATED_BY_PLATFORMS or not found:
        return platform
    rank, best = min(found, key=lambda pair: (_order(pair[1].cause), pair[0]))
    if best.cause is Cause.HEALTHY:
        return replace(platform, cause=Cause.NOT_KNOWN) if platform.cause is Cause.HEALTHY else platform
    silent = [each for each, its in found if its.cause in (Cause.HEALTHY, Cause.NOT_KNOWN)]
    if best.cause in LOST_OTHERS and silent and any(CLOSED.search(quote.text) for quote in best.evidence):
        return _died(_on_rank(best, rank), silent[0])
    return best if len(found) == 1 else _on_rank(best, rank)


def _died(lost: Diagnosis, rank: int) -> Diagnosis:
    """Return the diagnosis of a rank whose log shows no error while another rank lost its connection to this rank."""
    cause = Cause.RANK_FIRST_FAILED
    return replace(
        lost,
        cause=cause,
        certainty=Certainty.LIKELY,
        summary=summary(cause, rank),
        where=None,
        rank=rank,
        advice=advice(cause),
    )


def _on_rank(found: Diagnosis, rank: int) -> Diagnosis:
    """Return the diagnosis with this rank, unless the log itself names a rank."""
    quotes = tuple(replace(quote, rank=rank if quote.rank is None else quote.rank) for quote in found.evidence)
    first = rank if found.rank is None else found.rank
    return replace(found, summary=summary(found.cause, first, found.where), evidence=quotes, rank=first)


def _order(cause: Cause) -> int:
    """Return the position of the cause in the order in which causes of different ranks count."""
    last = (Cause.USER_EXCEPTION, Cause.NETWORK, *LOST_OTHERS, Cause.RANK_FIRST_FAILED, Cause.NOT_KNOWN, Cause.HEALTHY)
    return last.index(cause) + 1 if cause in last else 0


def _went_on(sign: Sign, reports: StepReports) -> bool:
    """Return whether the training reported further steps, or its end, after the sign. Then the sign did not end the
    training.
    """
    ends_job = sign.weight is Weight.PLATFORM and sign.cause in ENDS_THE_JOB
    of_metrics = sign.cause in OF_METRICS and reports_step(sign.line.text)
    of_report = sign.cause is Cause.STRAGGLER and sign.weight is Weight.SUMMARY
    if ends_job or of_metrics or of_report or sign.line.prose:
        return False
    if sign.weight <= Weight.WORDS and reports.anywhere_after(sign.line):
        return True
    return reports.ended_well_after(sign.line, sign.last) or reports.after(sign.line, sign.last) >= GOES_ON


def _never_ends(sign: Sign) -> bool:
    """Return whether a person tells of a training that goes on too slowly or hangs, which no exception ends."""
    return sign.weight <= Weight.WORDS and sign.cause in GOES_ON_SLOWLY


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


def _of_last_lines(lines: Sequence[LogLine]) -> Sign | None:
    """Return the sign in the last lines of a process that failed: nothing else in its log looks like an error."""
    for line in [line for line in reversed(lines) if not line.blank][:LAST_LINES]:
        if (cause := cause_of_message(line.text)) and not HARMLESS.search(line.text):
            return Sign(cause, Weight.SUMMARY, line, line.number, certain=False)
    return None


def _diagnosis(first: Sign, signs: Sequence[Sign]) -> Diagnosis:
    same = [sign for sign in signs if sign.cause is first.cause and sign is not first]
    quotes = tuple(_quote(sign) for sign in [first, *same][:QUOTES] if not sign.line.blank)
    where = first.raised.where if first.raised else None
    return Diagnosis(
        first.cause,
        Certainty.CERTAIN if first.certain else Certainty.LIKELY,
        summary(first.cause, first.rank, where),
        quotes,
        where,
        first.rank,
        advice(first.cause, "\n".join(quote.text for quote in quotes)),
    )


def _quote(sign: Sign) -> QuotedLine:
    return QuotedLine(sign.line.number, sign.line.text.strip()[:LONGEST_QUOTE], sign.rank)


def _none(lines: Sequence[LogLine], raised: Sequence[Raised], reports: StepReports, exit_code: int | None) -> Diagnosis:
    broken = any(one.full and not one.ignored and not reports.after(one.line, one.last) for one in raised)
    complains = any(line.prose and TROUBLE.search(line.text) for line in lines) and not said_fine(lines)
    well = exit_code == 0 or (
        exit_code is None and not broken and not complains and bool(reports.steps or reports.done)
    )
    cause = Cause.HEALTHY if well else Cause.NOT_KNOWN
    to_read = [one.line for one in raised][:QUOTES] or [line for line in lines if not line.blank][-QUOTES:]
    quotes = (
        () if well else tuple(QuotedLine(line.number, line.text.strip()[:LONGEST_QUOTE], line.rank) for line in to_read)
    )
    said = summary(cause) if any(not line.blank for line in lines) or well else "The log is empty."
    return Diagnosis(cause, Certainty.NONE, said, quotes, advice=advice(cause) if quotes or well else ())
