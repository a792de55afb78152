"""How the drops of a route are checked: the kind of their data, the bounds, and the meaning of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from shared.data_checks.model import CheckVerdict, DataCheck, shortened
from shared.jobs.data_rule import CheckMode, DataRule
from shared.jobs.route import Route
from trainers.data_checks.check import Result
from trainers.data_checks.data import Settings
from trainers.data_checks.findings import Severity
from trainers.data_checks.kinds import declared_by, problem

Json = dict[str, Any]


def declared_for(route: Route, trainers: Path, own_job: bool, own_data: Mapping[str, Any]) -> Json:
    """Return the declaration of a drop's data: from its job file (`own_data`), the route, or the trainer.

    The trainer's declaration does not apply to a drop with its own job.
    """
    if own_data:
        return dict(own_data)
    if route.data.declared or own_job or not route.trainer:
        return dict(route.data.declared)
    declared = declared_by(trainers / route.trainer)
    return {} if problem(declared) else declared


def settings_of(rule: DataRule) -> Settings:
    whole = {key: int(value) for key, value in rule.bounds.items() if key in ("sample", "few")}
    return replace(Settings(), **{**rule.bounds, **whole})


def judged(result: Result, mode: CheckMode) -> DataCheck:
    """Return the meaning of the result on a route of this mode."""
    refusals, warnings, notes = (
        shortened([str(finding) for finding in result.of(severity)])
        for severity in (Severity.REFUSE, Severity.WARN, Severity.NOTE)
    )
    verdict = CheckVerdict.WARNED if refusals or warnings else CheckVerdict.FINE
    if refusals and mode is CheckMode.REFUSE:
        verdict = CheckVerdict.REFUSED
    return DataCheck(verdict, refusals, warnings, notes, asdict(result.card))
