"""What features add to runs, as each declares it in its `feature.py`. shared/features.py lists the features.

Whoever asks reads the declarations, so that no other module names a feature. They are imported on first use, because
features are built on runs, and not the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from shared.features import modules
from shared.jobs.limits import Limits
from shared.jobs.route import Route
from shared.kernel.facts import Fact
from shared.kernel.parts import FeaturePart
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from shared.runs.progress.workload import Workload

Reaction = Callable[[Any, Any], None]  # to a fact; takes the system's ports and the fact
Json = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """Where a new run comes from. `request` is None for the run of a drop, `route` for one without a route."""

    request: RunRequest | None
    route: Route | None
    limits: Limits


@dataclass(frozen=True)
class BeforeStart:
    """What is said of a run that has not started: under which name, as which model, None for a run without it."""

    name: str
    model: type
    say: Callable[[Run], Json | None]


@dataclass(frozen=True)
class Feature:
    """What a feature adds.

    - `parts`: its values of a run, a column each
    - `workloads`: kinds of runs
    - `begin`: gives a new run its part; raises Impossible for one that can't have it
    - `check`: raises Impossible for a run that was asked for and can never be
    - `before_start`: what dry runs and answers to requests say of a run
    - `reactions`: what follows from facts, after what every run has (shared/reactions.py)
    - `price_on`: what an hour of a node costs on one of the run's clusters; None where the feature does not know
    - `instead_of`: the runs that are compared where this run alone is named
    - `mend`: completes a run whose row the version before wrote
    """

    parts: tuple[FeaturePart[Any], ...] = ()
    workloads: tuple[Workload, ...] = ()
    begin: Callable[[Any, Run, Origin], Run] | None = None
    check: Callable[[Any, Run], None] | None = None
    before_start: tuple[BeforeStart, ...] = ()
    reactions: Mapping[type[Fact], tuple[Reaction, ...]] = field(default_factory=dict)
    price_on: Callable[[Run, str], float | None] | None = None
    instead_of: Callable[[Any, str], list[str]] | None = None
    mend: Callable[[Run], Run] | None = None


@cache
def features() -> tuple[Feature, ...]:
    """The declarations, in the order of the list."""
    return tuple(module.FEATURE for module in modules("feature"))


def parts() -> tuple[FeaturePart[Any], ...]:
    """What all features add to a run."""
    return tuple(part for feature in features() for part in feature.parts)


def begun(ports: Any, run: Run, origin: Origin) -> Run:
    """A new run with what the features add to it. Raises Impossible for one that a feature refuses."""
    for feature in features():
        run = feature.begin(ports, run, origin) if feature.begin else run
    return run


def check(ports: Any, run: Run) -> None:
    """Raise Impossible for a run that was asked for and can never be."""
    for feature in features():
        if feature.check:
            feature.check(ports, run)


def instead_of(ports: Any, name: str) -> list[str]:
    """The runs that are compared where this one alone is named."""
    return [run for feature in features() if feature.instead_of for run in feature.instead_of(ports, name)]


def before_start(run: Run) -> Json:
    """What the features say of a run that has not started."""
    return {said.name: said.say(run) for feature in features() for said in feature.before_start}


def said_before_start() -> list[tuple[str, Any, Any]]:
    """The fields of answers that say it, with their types and defaults."""
    return [(said.name, said.model | None, None) for feature in features() for said in feature.before_start]


def price_on(run: Run, cluster: str) -> float | None:
    """What an hour of a node on this cluster costs the run, where a feature knows it."""
    asked = (feature.price_on(run, cluster) for feature in features() if feature.price_on)
    return next((price for price in asked if price is not None), None)


def mended(run: Run) -> Run:
    """The run with what its row lacks that the version before wrote."""
    for feature in features():
        run = feature.mend(run) if feature.mend else run
    return run
