"""What data checks add: the check of a drop before it is sealed, and its result as a part of the run."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.data_checks.model import DataCheck
from shared.jobs.route import Route
from shared.kernel.parts import FeaturePart
from shared.runs.features import CheckedDrop, Closing, Feature, Opinion, Origin
from shared.runs.model import Run


def before_sealing(ports: Any, closing: Closing) -> Opinion:
    from shared.data_checks import at_sealing  # the rules are imported with the first drop, not at the start of the app

    return at_sealing.before_sealing(ports, closing)


def with_check(ports: Any, run: Run, origin: Origin) -> Run:
    """Return the run of a drop with what the check of its data said."""
    if origin.request is not None or not run.asked.drop:
        return run
    from shared.data_checks.at_sealing import kept

    said = kept(ports.blobs, f"{run.asked.experiment}/{run.name}")
    return run.having(said) if said else run


def check_files(ports: Any, route: Route, drop: CheckedDrop) -> dict[str, Any]:
    from shared.data_checks.listing import check_files

    return {"data": check_files(ports, route, drop)}


def data_facts(run: Run) -> dict[str, Any]:
    said = run.feature(DataCheck)
    return {"check": msgspec.to_builtins(said)} if said else {}


FEATURE = Feature(
    parts=(FeaturePart("data_check", DataCheck),),
    begin=with_check,
    before_sealing=before_sealing,
    check_files=check_files,
    data_facts=data_facts,
)
