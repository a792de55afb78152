"""The outcome of one published job file: its row, its sentence, and the part responsible for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

WORDS = 400  # of a sentence
# The part responsible for a refusal, by its words. The first match counts; without a match it is Trainyard.
WHOSE = (
    (
        "the workspace",
        r"No version \S+ of .* among the workspace's|among components of registry|is not in the (workspace|registry)|"
        r"there is nothing at azureml:",
    ),
    (
        "the file",
        r"not a valid job file|is missing|is empty|does not have among|asks for no package|is neither an ARM id|"
        r"optional Input binding|has no value or path|is not a path in a datastore|must be (text|a mapping)|"
        r"Unknown field|Clone it|does not exist|No such file",
    ),
    (
        "this machine",
        r"this machine|from there only a single file|can be a file only|no network|can't be reached|"
        r"answers for it, and has no",
    ),
)
# The part responsible for a failure, by the start of the diagnosed cause; for any other cause it is the job's code.
OF_CAUSE = (("network", "this machine"), ("gpu", "this machine"), ("missing_module", "its environment"))
NOTHING_SHOWN = ("healthy", "not_known")  # diagnoses of a log without a cause: the run's own reason is its sentence
# The words of a job that ended before its command began: the check before the run should have found the cause.
NEVER_BEGAN = re.compile(r"there is nothing at |can't be (made|built|installed|reached)|No version \S+ of ")


@dataclass(frozen=True)
class Outcome:
    """The result of one file. `state` is refused, could start, completed, failed or unfinished; `why` and `whose`
    give the reason for an unwanted state, and the part that is responsible."""

    file: str
    state: str
    why: str = ""
    whose: str = ""
    run: str = ""
    registered: tuple[str, ...] = ()  # assets of the checkout that the job names
    copies: tuple[str, ...] = ()  # tables that scikit-learn has, in place of those of the web

    @property
    def could_start(self) -> bool:
        return self.state != "refused"

    @property
    def row(self) -> str:
        limit = f" [{self.whose}]" if self.whose else ""
        first = f" (registered: {', '.join(self.registered)})" if self.registered else ""
        copies = f" ({' and '.join(self.copies)} from scikit-learn)" if self.copies else ""
        return f"{self.state:11} {self.file}{limit} {self.why}".rstrip() + first + copies


def whose_limit(why: str) -> str:
    """Return the part responsible for a refusal: the workspace, the file, this machine, or Trainyard."""
    return next((whose for whose, words in WHOSE if re.search(words, why, re.IGNORECASE)), "Trainyard")


def one_sentence(reasons: Iterable[str]) -> str:
    """Return the reasons as one sentence. Steps that lack the same thing are named together."""
    steps: dict[str, list[str]] = {}
    for reason in reasons:
        found = re.fullmatch(r"Step '([^']+)': (.*?)\.?", reason, re.DOTALL)
        step, what = found.groups() if found else ("", reason.rstrip("."))
        steps.setdefault(what, []).extend([step] if step else [])
    said = "; ".join(what + (f" (steps {', '.join(names)})" if names else "") for what, names in steps.items())
    return said if said.endswith("?") else f"{said}."


def refused(name: str, why: str) -> Outcome:
    return Outcome(name, "refused", " ".join(why.split())[:WORDS], whose_limit(why))


def unsuccessful(name: str, run: str, found: dict[str, Any]) -> Outcome:
    """Return the outcome of a run that failed or was canceled: the summary of the diagnosis, with the first line that
    shows it. A job that never began is a broken promise of the dry run."""
    reason = " ".join((found["reason"] or "").split())
    if found["state"] == "failed" and (not found["job"] or NEVER_BEGAN.search(reason[:WORDS])):
        return Outcome(name, "failed", reason[:WORDS], "Trainyard: it never began", run)
    diagnosis = found.get("diagnosis")
    if not diagnosis or diagnosis["cause"] in NOTHING_SHOWN:
        return Outcome(name, found["state"], reason[:WORDS], run=run)
    shown = diagnosis["evidence"][0]["text"] if diagnosis["evidence"] else ""
    whose = next((whose for cause, whose in OF_CAUSE if diagnosis["cause"].startswith(cause)), "its code")
    why = diagnosis["summary"].rstrip(".") + (f": {' '.join(shown.split())}" if shown else ".")
    return Outcome(name, found["state"], why[:WORDS], whose, run)


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the counts: files, files that could start, completed files, and the others by responsible part."""
    return {
        "files": len(outcomes),
        "could_start": sum(each.could_start for each in outcomes),
        "completed": sum(each.state == "completed" for each in outcomes),
        "with_copies": sum(each.state == "completed" and bool(each.copies) for each in outcomes),
        "broken_promises": sum(each.whose.startswith("Trainyard:") for each in outcomes),
        "refused": dict(Counter(each.whose for each in outcomes if each.state == "refused")),
        "failed": dict(Counter(each.whose for each in outcomes if each.state in ("failed", "canceled", "unfinished"))),
    }
