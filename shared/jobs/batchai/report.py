"""What became of each field of a document: where it landed, or what was done instead. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.problem import Problem

SUMMARY = 1000  # characters
_SIGNATURE = re.compile(r"([?&](?:sig|signature|code|token|password|key)=)[^&\s\"'\\]+", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^/\s:@\"']*:)[^/\s@\"']+(?=@)")


def hidden(text: str) -> str:
    """The text with what is secret in its addresses replaced: signatures, keys and passwords."""
    return _PASSWORD.sub(r"\1...", _SIGNATURE.sub(r"\1...", text))


@dataclass(frozen=True)
class Finding:
    """A field that did not simply land in the job. `lossy`: the job does not do all that the document asked for."""

    field: str  # its path, properties.containerSettings.shmSize
    meant: str
    instead: str
    decide: str = ""
    lossy: bool = True

    def said(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "meant": self.meant,
            "instead": self.instead,
            "decide": self.decide,
            "lossy": self.lossy,
        }


@dataclass
class Report:
    """`landed` is for each path that was used, where. Problems keep a document from being translated."""

    findings: list[Finding] = field(default_factory=list)
    landed: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _told: set[Finding] = field(default_factory=set)

    def lost(self, path: str, meant: str, instead: str, decide: str = "") -> None:
        self._add(Finding(path, hidden(meant), hidden(instead), hidden(decide)))

    def told(self, path: str, meant: str, instead: str, decide: str = "") -> None:
        """For something that is done in another way, or that had no effect in Batch AI either."""
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
        """What was done otherwise, for a run's history."""
        if not self.lossy:
            return "Read as a Batch AI job; every field has its equivalent."
        done = " ".join(f"{each.field.removeprefix('properties.')}: {each.instead}" for each in self.lossy)
        return f"Read as a Batch AI job. {done}"[:SUMMARY]
