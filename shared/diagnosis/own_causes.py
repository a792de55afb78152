"""Causes that a trainer, or a kind of run, adds in its own folder, in causes.yaml (decision 107):

- name: no_boxes
  cause: data_not_found       # of the closed list in causes.py
  words: ["no box in \\d+ pictures"]
  summary: No picture of the data has a box.
  advice: ["Check the annotations: python3 trainyard.py data show DROP"]  # RUN and DROP become the names
  live: true                  # also look for it while a run is running
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import getfile
from pathlib import Path
from typing import Any

from shared.diagnosis.causes import Cause, Certainty, Diagnosis, QuotedLine
from shared.diagnosis.lines import LogLine, lines_of
from shared.diagnosis.progress import progress_of
from shared.jobs.readers.trainer import has_command, trainer_template
from shared.jobs.spec import JobSpec
from shared.kernel.errors import BadSetting
from shared.runs.progress.workload import Workload
from shared.runs.pulse import Ailment

FILE = "causes.yaml"
KEYS = {"name", "cause", "words", "summary", "advice", "live"}
YIELD = (Cause.USER_EXCEPTION, Cause.RANK_FIRST_FAILED, Cause.NOT_KNOWN, Cause.HEALTHY)  # to an own cause
GOES_ON = 2  # with this many reports of steps after a line, the line did not end the training


@dataclass(frozen=True)
class OwnCause:
    """A cause of one trainer or one kind of run, which refines `cause`. `live`: a running run may have it, too."""

    name: str
    cause: Cause
    words: re.Pattern[str]
    summary: str
    advice: tuple[str, ...] = ()
    live: bool = False


def own_causes(trainers: Path, trainer: str) -> tuple[OwnCause, ...]:
    """Return the causes in the trainer's folder. Raises BadSetting, which names the file and the mistake."""
    return _read(trainers / trainer / FILE) if trainer else ()


def causes_of_kind(kind: Workload) -> tuple[OwnCause, ...]:
    """Return the causes in the folder of the kind's module. Raises BadSetting like own_causes."""
    return _read(Path(getfile(type(kind))).parent / FILE)


def trainer_of(trainers: Path, job: JobSpec) -> str:
    """Return the trainer with causes of its own whose command the job has; '' if there is none.

    A run of `submit TRAINER` has no route, so only its command shows the trainer.
    """
    names = sorted(file.parent.name for file in trainers.glob(f"*/{FILE}"))
    return next((name for name in names if has_command(job, trainer_template(trainers, name)[0])), "")


@cache
def _read(file: Path) -> tuple[OwnCause, ...]:
    if not file.is_file():
        return ()
    import yaml

    try:
        rows = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, ValueError) as exc:
        raise BadSetting(f"{file} is not YAML: {exc}") from exc
    if not isinstance(rows, list):
        raise BadSetting(f"{file}: expected a list of causes.")
    return tuple(_cause(f"{file}: cause {number}", row) for number, row in enumerate(rows, 1))


def _cause(where: str, row: Any) -> OwnCause:
    if not isinstance(row, dict) or not {"name", "cause", "words", "summary"} <= row.keys() <= KEYS:
        raise BadSetting(f"{where} must have name, cause, words and summary, and at most advice and live beside them.")
    if row["cause"] not in [*Cause]:
        raise BadSetting(f"{where}: cause is {row['cause']!r}; choose from {', '.join(Cause)}.")
    for key in ("words", "advice"):
        if not isinstance(row.get(key, []), list):
            raise BadSetting(f"{where}: {key} is {row[key]!r:.80}; expected a list.")
    try:
        words = re.compile("|".join(row["words"]))
    except (re.error, TypeError) as exc:
        raise BadSetting(f"{where}: words is not a list of regular expressions: {exc}.") from exc
    advice = tuple(map(str, row.get("advice", ())))
    return OwnCause(str(row["name"]), Cause(row["cause"]), words, str(row["summary"]), advice, bool(row.get("live")))


def refined(found: Diagnosis, causes: Sequence[OwnCause], logs: dict[int, str]) -> Diagnosis:
    """Return the diagnosis with an own cause of the trainer or the kind of run.

    A log must show this cause, and the general rules must know no better one.
    """
    for rank, text in logs.items():
        for own, line in _shown(causes, text):
            if found.cause in YIELD or found.cause is own.cause:
                quote = QuotedLine(line.number, line.text.strip()[:300], rank)
                return Diagnosis(
                    own.cause, Certainty.CERTAIN, own.summary, (quote, *found.evidence), found.where, rank, own.advice
                )
    return found


def live_ailments(causes: Sequence[OwnCause], text: str) -> Iterator[Ailment]:
    """Return the own causes that a running run's log shows."""
    for own, line in _shown([each for each in causes if each.live], text):
        yield Ailment(own.cause.value, own.summary, (line.text.strip()[:300],), own.advice, own.name)


def _shown(causes: Sequence[OwnCause], text: str) -> Iterator[tuple[OwnCause, LogLine]]:
    """Yield each cause that the log shows, with the last line that shows it.

    Unless the cause is `live`, it is left out if the training continued after this line.
    """
    if not causes:
        return
    lines = lines_of(text)
    reports = progress_of(lines, frozenset())
    for own in causes:
        line = next((line for line in reversed(lines) if own.words.search(line.text)), None)
        if line and (own.live or reports.after(line, line.number) < GOES_ON):
            yield own, line
