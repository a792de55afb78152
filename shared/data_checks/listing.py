"""The dry run of a check: the result for a drop with these files, from their list alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.data_checks.rule import declared_for, judged, settings_of
from shared.jobs.data_rule import CheckMode
from shared.jobs.ports import WorkspacePorts
from shared.jobs.route import Route
from shared.runs.features import CheckedDrop
from trainers.data_checks.check import Task, check
from trainers.data_checks.source import File

Json = dict[str, Any]


@dataclass(frozen=True)
class Listed:
    """Files of which only the list exists."""

    files: Sequence[File]
    whole: bool = False

    def read(self, path: str, _offset: int, _size: int) -> bytes:
        raise AssertionError(f"{path} was to be read, of which only the name is known")


def check_files(ports: WorkspacePorts, route: Route, drop: CheckedDrop) -> Json:
    """Return how drops of the route are checked, and the result for the files of the request, if there are any."""
    rule = route.data
    declared = declared_for(route, ports.trainers, drop.own_job, drop.declared)
    told: Json = {"mode": str(rule.mode), "declared": declared, "bounds": dict(rule.bounds)}
    if drop.files is None or rule.mode is CheckMode.OFF:
        return told
    files = [File(file.name, int(file.size), file.md5) for file in drop.files]
    said = judged(check(Listed(files), Task(declared, settings_of(rule), only_list=True)), rule.mode)
    return {**told, **msgspec.to_builtins(said)}
