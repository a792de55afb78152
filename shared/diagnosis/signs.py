"""The signs of a cause in a log: exceptions, and lines of launchers, schedulers, platforms and frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shared.diagnosis.causes import Cause
from shared.diagnosis.lines import LogLine
from shared.diagnosis.raised import Raised
from shared.diagnosis.steps import reports_step
from shared.diagnosis.words import (
    Weight,
    cause_of,
    cause_of_beginning,
    cause_of_message,
    cause_of_place,
    in_shared_memory,
    of_log_lines,
)


@dataclass(frozen=True)
class Sign:
    """One sign: its cause, its weight, its line, its last line, and the exception if the sign is an exception."""

    cause: Cause
    weight: Weight
    line: LogLine
    last: int
    certain: bool = True
    raised: Raised | None = None

    @property
    def rank(self) -> int | None:
        """The rank that shows the sign, if the log names the rank."""
        return self.raised.rank if self.raised else self.line.rank


CONSEQUENCES = (Cause.NCCL_TIMEOUT, Cause.RENDEZVOUS_OR_RESET, Cause.USER_EXCEPTION)

FIRST_FAILED = re.compile(
    r"failed \(exitcode: (?P<exit1>-?\d+)\) local_rank: (?P<rank>\d+)|exitcode +: (?P<exit2>-?\d+)"
    r"|failed with status code `?(?P<exit4>\d+)"
    r"|(?<!unexpectedly with )\b(?:exit(?:s|ed)?\b.{0,12}?|return(?:s|ed)? (?:an? )?(?:non-?zero )?(?:exit )?)\bcode\b"
    r"[ =:`'\"]{1,4}(?P<exit3>-?\d+)"
    r"|(?:错误|返回|退出)码 ?(?P<exit5>-?\d+)"
    r"|[Pp]rocess (?P<rank4>\d+) terminated with(?: signal (?P<signal>SIG\w+))?"
    r"|Child process with PID \d+ terminated with code (?P<exit6>-?\d+)"
    r"|died with <Signals\.(?P<signal2>SIG\w+)"
    r"|The first process to do so was.{0,20}"
    r"|Horovod has been shut down.{0,60}exception on one of the ranks"
)
SIGNALS = {"SIGKILL": -9, "SIGBUS": -7, "SIGSEGV": -11, "SIGABRT": -6, "SIGTERM": -15}
KILLS = (-9, 137, -7, 135)
OF_SHELL = {126: Cause.PERMISSION, 127: Cause.MISSING_MODULE}  # a shell could not run, or did not find, a command
REQUEST = re.compile(
    r"(?i)^#{1,6} +\W{0,2}(?:(?:feat|fix|docs?|chore|refactor|ci|test)\b[(: /]"
    r"|(?:add|allow|asked|avoid|bump|catch|deal|detect|document|enable|expand|expose|give|handle|implement|improve"
    r"|investigate|leave|make|prevent|provide|remove|replace|report|show|skip|support|update|use)\b)"
)  # the title of a change or a wish, not of a failure
MESSAGE = re.compile(
    r".*\[(?:Errno|WinError) (?!32\])\d+\]"  # 32, a broken pipe, follows when another process has ended
    r"|^(?:/\S+/)?(?:(?:ba)?sh|awk|cat|cp|curl|docker|gzip|mkdir|mpirun|mv|sbatch|sed|srun|tar|unzip|wget): "
    r"|^ +what\(\): |^\S+\.(?:sh|py): |^#{1,6} |^(?:\[[^\]]*\] ?)?\[?(?:ERROR|Error|error|FATAL|Fatal|fatal|!!!)\b"
    r"|^!!! |^[A-Z][\w ]{3,40} (?:failed|error)\b"
)
HARMLESS = re.compile(
    r"Corrupt JPEG data|libpng warning|newly initialized|not used when initializing|Exception ignored|No plugin found"
    r"|No module named '(?:triton|tensorrt)'"
)
ANNOUNCES = re.compile(r"(?i)^(?!.*(?:error|fail|n't|\bnot\b|cannot)).*\.\.\.$")  # what a program is about to do
INFORMS = ("I", "D")  # levels of lines that are no errors
ROOT_RANK = re.compile(r"rank +: (?P<rank>\d+) \(local_rank: \d+\)")
WARNING = re.compile(
    r"[Ww]arning\b|\bWARN(?:ING)?\b|\bINFO\b|^W[ :]|: [WI] tensorflow|huggingface/tokenizers|DEPRECAT"
    r"|Ignore above|\bDEBUG\b"
)
DIGITS = re.compile(r"\d+")
OTHER_CASE = re.compile(
    r"(?i)\b(?:otherwise|what (?:would|if)|used to|to avoid|avoids?|prevents?|in case"
    r"|with(?:out| no) (?:it|this|that)|if (?:not|this|it|i|we))\b"
)
RESOLVED = re.compile(r"(?i)\b(?:resolved|resuming normal|recovered|retry succeeded)\b")
FATAL_WARNING = re.compile(
    r"Error reported to Coordinator|CUDA initialization|too old|not compatible with the current PyTorch"
    r"|client socket has|NCCL WARN|still waiting for|Cannot dlopen some GPU|[Ll]oss is nan|Minimum loss scale|NaN|nan"
)


def of_exceptions(raised: Sequence[Raised]) -> Iterator[Sign]:
    """Yield one sign for each chain of exceptions: the first exception of the chain with a cause of the table.

    Exceptions that Python ignored, and exceptions of launchers, are not signs.
    """
    chains: dict[int, list[Raised]] = {}
    for one in raised:
        told = not one.full and (is_request(one.line) or _is_other_case(one.line))
        if not (
            told or one.ignored or one.by_queue or one.by_launcher or FIRST_FAILED.search(one.text.partition("\n")[0])
        ):
            chains.setdefault(one.chain if one.full else -one.line.number, []).append(one)
    for chain in chains.values():
        if all(one.cut for one in chain):
            last = chain[-1]
            cause = cause_of_place(last)
            weight = Weight.CUT if cause is Cause.USER_EXCEPTION else Weight.SUMMARY
            weight = Weight.CAUSE if last.of_dead_worker else weight
            yield Sign(cause, weight, last.line, last.last, certain=False, raised=last)
            continue
        known = [(one, cause) for one in chain if (cause := cause_of(one)) is not Cause.USER_EXCEPTION]
        if not known and (not chain[0].named_as_error or chain[0].by_platform):
            if chain[0].of_dead_process:
                yield Sign(Cause.RANK_FIRST_FAILED, Weight.SUMMARY, chain[0].line, chain[-1].last, certain=False)
            continue
        one, cause = known[0] if known else (chain[0], Cause.USER_EXCEPTION)
        if one.short_type == "KeyboardInterrupt":
            yield from _interrupted(one)
        elif one.type_of_head and cause is Cause.USER_EXCEPTION:
            yield Sign(cause, Weight.SUMMARY, one.line, one.last, certain=False, raised=one)
        else:
            weight = Weight.CONSEQUENCE if cause in CONSEQUENCES else Weight.CAUSE
            yield _as_prose(Sign(cause, weight, one.line, chain[-1].last, raised=one))


def is_request(line: LogLine) -> bool:
    """Return whether the line is the title of a change or a wish."""
    return line.prose and REQUEST.match(line.text) is not None


def _is_other_case(line: LogLine) -> bool:
    """Return whether a person tells of a failure of another run, or of one that does not happen."""
    return line.prose and not line.title and OTHER_CASE.search(line.text) is not None


def _as_prose(sign: Sign) -> Sign:
    """Return the sign with less weight and certainty if it is in a person's text beside the log."""
    return replace(sign, weight=min(sign.weight, Weight.PROSE), certain=False) if sign.line.prose else sign


def _interrupted(one: Raised) -> Iterator[Sign]:
    """Yield a deadlock if a person ended the run while it waited for another thread or process."""
    if one.frames and re.search(
        r"wait|acquire|poll|select|recv|join|barrier|all_?reduce|synchronize|get\b|read", one.frames[-1].name
    ):
        yield Sign(Cause.DEADLOCK, Weight.SUMMARY, one.line, one.last, certain=False, raised=one)


def of_lines(lines: Sequence[LogLine], covered: frozenset[int]) -> Iterator[Sign]:
    """Yield signs in lines that belong to no exception. `covered`: the numbers of the lines of exceptions.

    A log has many reports of steps that differ only in their figures. Each such line is examined once.
    """
    seen: dict[str, tuple[Cause, Weight] | None] = {}
    for line in lines:
        if line.blank or RESOLVED.search(line.text) or is_request(line) or _is_other_case(line):
            continue
        if reports_step(line.text):
            key = DIGITS.sub("0", line.text)
            found = seen[key] if key in seen else seen.setdefault(key, _of_line(line, covered))
        else:
            found = _of_line(line, covered)
        if found:
            yield _as_prose(Sign(found[0], found[1], line, line.number, certain=found[1] is not Weight.PROSE))


def _of_line(line: LogLine, covered: frozenset[int]) -> tuple[Cause, Weight] | None:
    if HARMLESS.search(line.text):
        return None
    informs = line.level in INFORMS or WARNING.search(line.text) is not None
    plain = not informs or FATAL_WARNING.search(line.text) is not None
    inside = line.number in covered
    for cause, weight, pattern in of_log_lines():
        if (weight >= Weight.ASSERTION or (plain and not inside)) and pattern.search(line.text):
            return in_shared_memory(cause, line.text), weight
    return _of_message(line) if plain and not inside else None


def _of_message(line: LogLine) -> tuple[Cause, Weight] | None:
    """Return the cause in a line that reports a failure without an exception's type: a title, or `Error: ...`."""
    if FIRST_FAILED.search(line.text):
        return None
    if ANNOUNCES.search(line.text) and not line.title:
        return None
    anywhere = line.title or line.level == "F" or MESSAGE.match(line.text) is not None
    cause = cause_of_message(line.text) if anywhere else cause_of_beginning(line.text)
    return (cause, Weight.PROSE) if cause else None


def of_launchers(lines: Sequence[LogLine]) -> Iterator[Sign]:
    """Yield signs in summaries of torchrun, torch.multiprocessing and mpirun: the rank that failed first, and its
    exit code.
    """
    root: int | None = None
    for line in lines:
        if named := ROOT_RANK.search(line.text):
            root = int(named["rank"])
        if found := FIRST_FAILED.search(line.text):
            if line.prose and _code(found) not in KILLS:
                continue
            rank = found["rank"] or found["rank4"]
            at = replace(line, rank=int(rank) if rank else root)
            alone = bool(found["exit3"] or found["exit4"] or found["exit5"]) and at.rank is None
            yield from _of_code(at, _code(found), alone)


def _code(found: re.Match[str]) -> int:
    code = next((found[name] for name in ("exit1", "exit2", "exit3", "exit4", "exit5", "exit6") if found[name]), None)
    signal = found["signal"] or found["signal2"]
    return SIGNALS.get(signal, 1) if signal else int(code) if code else 1


def _of_code(line: LogLine, code: int, alone: bool) -> Iterator[Sign]:
    """Yield the sign of a process that ended with this code. `alone`: the job had only this process, so there is no
    rank.
    """
    if code in (-9, 137):
        yield Sign(Cause.HOST_OOM, Weight.SUMMARY, line, line.number, certain=False)
    elif code in (-7, 135):
        yield Sign(Cause.SHM_BUS_ERROR, Weight.SUMMARY, line, line.number, certain=False)
    elif code in OF_SHELL:
        yield Sign(OF_SHELL[code], Weight.SUMMARY, line, line.number, certain=False)
    elif code not in (0, -15, 143):
        cause = Cause.USER_EXCEPTION if alone else Cause.RANK_FIRST_FAILED
        yield Sign(cause, Weight.SUMMARY, line, line.number, certain=False)
