"""The sweep that each drop of a route becomes, read from the routes file. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.jobs.parameters import Parameters, bad_values, unknown_names, unquoted
from shared.jobs.spec import COMMAND, JobSpec
from shared.kernel.errors import BadSetting

if TYPE_CHECKING:
    from shared.jobs.search import Sweep

_SPACE = "sweep.search_space"


def read_sweep(section: Any, described: Parameters, where: str) -> Sweep | None:
    """The `sweep` of a route, or None. Raises BadSetting for a search that the trainer does not support."""
    if section is None:
        return None
    from shared.jobs.readers.sweep import read_short

    _, sweep, problems = read_short(section, {})
    faults = list(problems)
    for name, parameter in sweep.space.items() if sweep else ():
        values = [{name: value} for value in parameter.ends]
        faults += unknown_names(described, {name: 0}, _SPACE)
        faults += [problem for value in values for problem in bad_values(described, value, _SPACE)]
        faults += [problem for value in values for problem in unquoted(value)]
    if faults:
        raise BadSetting(f"{where}: {faults[0].path} {faults[0].message}")
    return sweep


def for_drop(sweep: Sweep | None, own: JobSpec | None) -> Sweep | None:
    """The route's sweep for a drop with this job file, over the parameters that the file does not set.

    None if the drop has its own complete job.
    """
    if sweep is None or own is None:
        return sweep
    space = {name: parameter for name, parameter in sweep.space.items() if name not in own.values}
    whole = own.command or own.kind != COMMAND
    return None if whole or not space else replace(sweep, space=space)
