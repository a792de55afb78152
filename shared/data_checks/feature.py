"""The parts that data checks add: the check of a drop before it is sealed, and its result as a part of the run."""

from __future__ import annotations

from typing import Any

import msgspec

from shared.data_checks.model import DataCheck
from shared.jobs.route import Route
from shared.kernel.parts import FeaturePart
from shared.runs.features import CheckedDrop, Closing, Feature, Opinion
from shared.runs.model import Run


def before_sealing(ports: Any, closing: Closing) -> Opinion:
    from shared.data_checks import at_sealing  # the rules are imported with the first drop, not at the start of the app

    return at_sealing.before_sealing(ports, closing)


def with_check(ports: Any, run: Run) -> Run:
    """Return the run with the result of the check of the drop that the run reads."""
    if not run.asked.drop and not run.asked.reads:
        return run
    from shared.data_checks.of_run import check_read_by

    said = check_read_by(ports.datasets, ports.blobs, run)
    return run.having(said) if said else run


def check_files(ports: Any, route: Route, drop: CheckedDrop) -> dict[str, Any]:
    from shared.data_checks.listing import check_files

    return {"data": check_files(ports, route, drop)}


def data_facts(run: Run) -> dict[str, Any]:
    said = run.feature(DataCheck)
    return {"check": msgspec.to_builtins(said)} if said else {}


FEATURE = Feature(
    parts=(FeaturePart("data_check", DataCheck),),
    of_data=with_check,
    before_sealing=before_sealing,
    check_files=check_files,
    data_facts=data_facts,
)
