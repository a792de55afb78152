"""Parse an mpirun command line: number of processes, number of nodes, and the command of each process. Pure.

Azure ML starts the processes itself and does not support a custom launcher, so options for the launcher are dropped.
https://learn.microsoft.com/azure/machine-learning/how-to-train-distributed-gpu
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LAUNCHER = re.compile(r"(?:[\w./${}-]*/)?(?:mpirun|mpiexec(?:\.hydra)?|orterun|horovodrun)")
_WORD = re.compile(r"""(?:[^\s"'\\;&|]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+|[;&|]+|["'\\]""", re.DOTALL)
_COUNT = {"-np", "--np", "-n", "--n", "-c"}
_PER_NODE = {"-ppn", "--ppn", "-perhost", "-npernode", "--npernode", "-N", "-grr"}
_HOSTS = {"-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f", "-H", "-host", "--host", "-hosts", "-rf"}
_NONE = {
    "--allow-run-as-root", "-allow-run-as-root", "--oversubscribe", "-oversubscribe", "--tag-output", "-tag-output",
    "--report-bindings", "-report-bindings", "-v", "-q", "--quiet", "--verbose", "-verbose", "--display-map",
    "-display-map", "--nooversubscribe", "-genvall", "-envall", "-rr", "--bind-to-none", "-bind-to-none", "-l",
    "--display-allocation", "-prepend-rank", "-print-rank-map", "--bynode", "-bynode", "--byslot", "-byslot",
}  # fmt: skip
_TWO = {"-mca", "--mca", "-gmca", "--gmca"}
_ONE = {
    "-x", "-wdir", "--wdir", "-wd", "--bind-to", "-bind-to", "--map-by", "-map-by", "--rank-by", "-rank-by",
    "--prefix", "-prefix", "-genvlist", "-envlist", "-output-filename", "--output-filename", "-iface", "-rmk",
    "-launcher", "-bootstrap", "--timeout",
}  # fmt: skip


@dataclass
class ParsedCommand:
    """A parsed line. `count` and `per_node` are 0 if not given; `unsure` are parts that could not be parsed."""

    line: str
    count: int = 0
    per_node: int = 0
    dropped: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


def parse_command(line: str) -> ParsedCommand | None:
    """Parse the line; None if it starts no launcher. Text before and after the launcher's command is kept."""
    words = [_Word(match[0], match.start(), match.end()) for match in _WORD.finditer(line)]
    for index, word in enumerate(words):
        if _LAUNCHER.fullmatch(word.text) and _begins_a_command(words, index):
            return _without(line, words, index)
    return None


def _begins_a_command(words: list[_Word], index: int) -> bool:
    for word in reversed(words[:index]):
        if set(word.text) <= set(";&|"):
            return True
        if not re.match(r"\w+=", word.text) and word.text not in ("sudo", "-E", "exec", "time"):
            return False
    return True


def _without(line: str, words: list[_Word], index: int) -> ParsedCommand:
    taken, folder = ParsedCommand(""), ""
    environment: list[str] = []
    rest = iter(range(index + 1, len(words)))
    program = None
    for place in rest:
        text = words[place].text
        if not text.startswith("-"):
            program = words[place]
            break
        values = _values(words, place)
        for _ in values:
            next(rest, None)
        if text in _COUNT or text in _PER_NODE:
            _count(taken, text, values)
        elif text in ("-x", "-env", "-genv"):
            environment += _exported(text, values)
        elif text in ("-wdir", "--wdir", "-wd") and values:
            folder = f"cd {values[0]} && "
        else:
            if text not in _NONE | _TWO | _ONE | _HOSTS:
                taken.unsure.append(" ".join([text, *values]))
            taken.dropped.append(" ".join([text, *values]))
    if program is None or set(program.text) <= set(";&|"):
        taken.unsure.append("it starts no program")
        return taken
    tail = line[program.start :]
    if any(word.text == ":" for word in words[index:]):
        taken.unsure.append("it starts several programs, separated by a colon")
    taken.line = line[: words[index].start] + folder + "".join(f"{pair} " for pair in environment) + tail
    return taken


def _values(words: list[_Word], place: int) -> list[str]:
    """The words of the option at this position."""
    text, following = words[place].text, [word.text for word in words[place + 1 : place + 3]]
    if text in _NONE or "=" in text:
        return []
    if text in _TWO:
        return following
    if text in ("-env", "-genv"):
        return following[:1] if following and "=" in following[0] else following
    if text in _COUNT | _PER_NODE | _HOSTS | _ONE:
        return following[:1]
    plain = bool(following) and not re.match(r"-|python|bash|sh$|.*[/$]", following[0])
    return following[:1] if plain else []


def _count(taken: ParsedCommand, option: str, values: list[str]) -> None:
    if not values or not values[0].isdecimal() or int(values[0][:9]) < 1:
        taken.unsure.append(" ".join([option, *values]))
    elif option in _COUNT:
        taken.count = int(values[0][:9])
    else:
        taken.per_node = int(values[0][:9])


def _exported(option: str, values: list[str]) -> Iterator[str]:
    """The exported variables with values.

    `-x NAME` without a value is skipped: each process has the variable anyway.
    """
    if option != "-x" and len(values) == 2:
        values = [f"{values[0]}={values[1]}"]
    yield from (value for value in values if re.match(r"\w+=", value))
