"""The report on a document's fields: the place of each value in the job, or the replacement. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shared.jobs.problem import Problem

SUMMARY = 1000  # characters
_SIGNATURE = re.compile(r"([?&](?:sig|signature|code|token|password|key)=)[^&\s\"'\\]+", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^/\s:@\"']*:)[^/\s@\"']+(?=@)")


def hidden(text: str) -> str:
    """The text with the secrets of addresses replaced: signatures, keys and passwords."""
    return _PASSWORD.sub(r"\1...", _SIGNATURE.sub(r"\1...", text))


@dataclass(frozen=True)
class Finding:
    """A field without a direct equivalent in the job. `lossy`: the job does less than the document requests."""

    field: str  # the field's path, such as properties.containerSettings.shmSize
    meant: str
    instead: str
    decide: str
    lossy: bool


@dataclass
class TranslationReport:
    """`landed` maps each used path to its place in the job. `problems` prevent the translation."""

    findings: list[Finding] = field(default_factory=list)
    landed: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _told: set[Finding] = field(default_factory=set)

    def lost(self, path: str, meant: str, instead: str, decide: str = "") -> None:
        self._add(Finding(path, hidden(meant), hidden(instead), hidden(decide), lossy=True))

    def changed(self, path: str, meant: str, instead: str, decide: str = "") -> None:
        """Report a field with a different effect than in Batch AI, or without effect in Batch AI too."""
        self._add(Finding(path, hidden(meant), hidden(instead), hidden(decide), lossy=False))

    def _add(self, finding: Finding) -> None:
        if finding not in self._told:
            self._told.add(finding)
            self.findings.append(finding)

    def land(self, path: str, where: str) -> None:
        self.landed[path] = where

    def refuse(self, path: str, why: str) -> None:
        self.problems.append(Problem(path, hidden(why), "bad_batchai"))

    @property
    def lossy(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.lossy]

    def summary(self) -> str:
        """The lossy findings in one text, for a run's history."""
        if not self.lossy:
            return "Read as a Batch AI job; every field has its equivalent."
        done = " ".join(f"{each.field.removeprefix('properties.')}: {each.instead}" for each in self.lossy)
        return f"Read as a Batch AI job. {done}"[:SUMMARY]
