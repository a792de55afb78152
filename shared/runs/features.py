"""The additions of features to runs.

Each feature declares its additions in `feature.py`; shared/features.py lists the features.

Callers read these declarations, so no other module names a feature. Features are imported on first use because features
depend on runs, and runs must not depend on features.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from shared.features import modules
from shared.jobs.limits import Limits
from shared.jobs.route import Route
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import TrainyardError
from shared.kernel.facts import Fact
from shared.kernel.guest import Guest
from shared.kernel.parts import FeaturePart
from shared.kernel.person import NOBODY, Person
from shared.kernel.storage import Blob
from shared.runs.codes import CancelCode
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run
from shared.runs.ports import Refusal
from shared.runs.progress.workload import Workload
from shared.runs.pulse import Ailment, NodePulse, Pulse

log = logging.getLogger(__name__)

Reaction = Callable[[Any, Any], None]  # a reaction to a fact: a function of the system's ports and the fact
Json = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """The origin of a new run. `request` is None for the run of a drop; `route` is None for a run without a route."""

    request: RunRequest | None
    route: Route | None
    limits: Limits


@dataclass(frozen=True)
class BeforeStart:
    """A field about a run that has not started: the field's name, its model, and a function for its value.

    The function returns None for a run that lacks the value.
    """

    name: str
    model: type
    say: Callable[[Run], Json | None]


@dataclass(frozen=True)
class RunOutline:
    """The features' facts about a run for a list or an overview. None and '' mean that no feature has the fact.

    `cause` is why the run failed, `dollars` the cost of the run with its parts, and `parts` the number of parts that
    have begun. A run with a date has `done_by`, and the time since which it is known to be late. `done_share` is the
    completed share, from 0 to 1.
    """

    cause: str = ""
    dollars: float | None = None
    parts: int | None = None
    done_by: datetime | None = None
    done_share: float | None = None
    late_since: datetime | None = None


@dataclass(frozen=True)
class RunFinding:
    """A problem of a running run, in a sentence and in one or two words.

    If `cancels` is set, the run is canceled for this reason.
    """

    words: str
    cancels: CancelCode | None = None
    word: str = ""


@dataclass(frozen=True)
class Closing:
    """A complete drop just before sealing.

    `folder` will have the generation's list of blobs. `files` yields the blobs of the closing listing; it is None for a
    drop of too many blobs. `own_job`: the drop's job file has its own job instead of the route's. `declared` is the
    declaration of the drop's data in this job file, {} without a declaration. `checking` is the folder of a check that
    an earlier message began, '' without such a check.
    """

    drop: DropKey
    route: Route
    folder: str
    files: Callable[[], Iterator[Blob]] | None
    own_job: bool
    declared: Mapping[str, Any] = field(default_factory=dict)
    checking: str = ""


@dataclass(frozen=True)
class CheckedDrop:
    """A drop before its upload: the facts from its job file (see Closing), and its files, None if unknown."""

    own_job: bool
    declared: Mapping[str, Any]
    files: Sequence[Any] | None


@dataclass(frozen=True)
class Opinion:
    """A feature's opinion on sealing a drop: `refused` is a reason against sealing, `note` a sentence for the drop's
    owner.

    `later` is the feature's progress if it needs another message to form its opinion. The feature finds its own
    progress again.
    """

    refused: str = ""
    note: str = ""
    later: str = ""


@dataclass(frozen=True)
class Feature:
    """The additions of one feature.

    - `parts`: the feature's parts of a run, one column each
    - `workloads`: kinds of runs
    - `begin`: adds the feature's part to a new run; raises Impossible for a run that can't have the part
    - `of_data`: adds facts about the data that a new run reads, also to a run that repeats or continues another
    - `check`: raises Impossible for a requested run that can never start
    - `before_start`: fields of dry runs and of responses to requests for runs
    - `reactions`: reactions to facts, which run after the reactions common to all runs (shared/reactions.py)
    - `in_the_same_write`: changes of the run that belong in the same write as a fact (IN_THE_SAME_WRITE there)
    - `price_on`: the price of a node-hour on one of the run's clusters; None if the feature has no price
    - `part_of`: the name of the run that this run is a part of, such as the sweep of a trial; '' if there is none
    - `outline`: facts about a run for lists and overviews; only fields that no other feature fills
    - `instead_of`: the runs to compare if a request names this run alone
    - `watch`: finds the problems of running runs, by their names; called every five minutes
    - `node_pulses`: the current use of a running run's nodes; may send a request for the measurements
    - `viewed`: the unfinished run as a viewer of its record gets it; called for each answer
    - `ailments`: the feature's own causes why a running run makes no progress; pure
    - `before_sealing`: checks a complete drop before it is sealed
    - `check_files`: the result for a drop of this route with these files, {} without a result
    - `data_facts`: facts about a run's data that the provenance of its model states
    - `guest_of`: the program behind a bearer token; None for a text that is not a token of this feature; raises Unknown
    - `reserve`: reserves the run's greatest cost in a limit of the feature's own, before the run is recorded and again
      before it is submitted; raises Conflict. `release` releases the reservation of a run that does not start, and
      `refusal` returns why `reserve` would raise
    - `keep_books`: records the costs of runs, with the books; called every five minutes
    - `owner_of_drop`: the only owner who gets upload addresses for a drop; NOBODY for another drop
    - `notice_facts`: facts that the feature adds to a notice of a run
    - `mend`: completes a run whose row the previous version wrote
    """

    parts: tuple[FeaturePart[Any], ...] = ()
    workloads: tuple[Workload, ...] = ()
    begin: Callable[[Any, Run, Origin], Run] | None = None
    of_data: Callable[[Any, Run], Run] | None = None
    check: Callable[[Any, Run], None] | None = None
    before_start: tuple[BeforeStart, ...] = ()
    reactions: Mapping[type[Fact], tuple[Reaction, ...]] = field(default_factory=dict)
    in_the_same_write: Mapping[type[Fact], tuple[Callable[[Any, Any], Run], ...]] = field(default_factory=dict)
    price_on: Callable[[Run, str], float | None] | None = None
    part_of: Callable[[Run], str] | None = None
    outline: Callable[[Run], RunOutline] | None = None
    instead_of: Callable[[Any, str], list[str]] | None = None
    watch: Callable[[Any, Sequence[Run]], Mapping[str, RunFinding]] | None = None
    node_pulses: Callable[[Any, Run], Sequence[NodePulse]] | None = None
    viewed: Callable[[Any, Run], Run] | None = None
    ailments: Callable[[Run, Pulse], Iterable[Ailment]] | None = None
    before_sealing: Callable[[Any, Closing], Opinion] | None = None
    check_files: Callable[[Any, Route, CheckedDrop], Json] | None = None
    data_facts: Callable[[Run], Json] | None = None
    guest_of: Callable[[Any, str], Guest | None] | None = None
    reserve: Callable[[Any, Run], None] | None = None
    release: Callable[[Any, Run], None] | None = None
    refusal: Callable[[Any, Run], Refusal | None] | None = None
    keep_books: Callable[[Any], None] | None = None
    owner_of_drop: Callable[[DropKey], Person] | None = None
    notice_facts: Callable[[Run], dict[str, str]] | None = None
    mend: Callable[[Run], Run] | None = None


@cache
def features() -> tuple[Feature, ...]:
    """The features' declarations, in the order of shared/features.py."""
    return tuple(module.FEATURE for module in modules("feature"))


def parts() -> tuple[FeaturePart[Any], ...]:
    """The run parts of all features."""
    return tuple(part for feature in features() for part in feature.parts)


def begun(ports: Any, run: Run, origin: Origin) -> Run:
    """The new run with the parts of all features. Raises Impossible if a feature rejects the run."""
    for feature in features():
        run = feature.begin(ports, run, origin) if feature.begin else run
    return with_data(ports, run)


def with_data(ports: Any, run: Run) -> Run:
    """The new run with all features' facts about the data that the run reads."""
    for feature in features():
        run = feature.of_data(ports, run) if feature.of_data else run
    return run


def check(ports: Any, run: Run) -> None:
    """Raise Impossible for a requested run that can never start."""
    for feature in features():
        if feature.check:
            feature.check(ports, run)


def instead_of(ports: Any, name: str) -> list[str]:
    """The runs to compare if a request names this run alone."""
    return [run for feature in features() if feature.instead_of for run in feature.instead_of(ports, name)]


def part_of(run: Run) -> str:
    """The name of the run that this run is a part of, such as the sweep of a trial; '' if there is none."""
    names = (feature.part_of(run) for feature in features() if feature.part_of)
    return next(filter(None, names), "")


def outline(run: Run) -> RunOutline:
    """All features' facts about a run for lists and overviews."""
    said = [asdict(feature.outline(run)) for feature in features() if feature.outline]
    return RunOutline(**{name: value for each in said for name, value in each.items() if value not in (None, "")})


def before_start(run: Run) -> Json:
    """The features' fields about a run that has not started, by name."""
    return {said.name: said.say(run) for feature in features() for said in feature.before_start}


def said_before_start() -> list[tuple[str, Any, Any]]:
    """The names, types and defaults of the response fields that `before_start` fills."""
    return [(said.name, said.model | None, None) for feature in features() for said in feature.before_start]


def before_sealing(ports: Any, closing: Closing) -> Opinion:
    """The opinion of the first feature that refuses the drop or needs more time; otherwise their notes together."""
    notes = []
    for feature in features():
        if feature.before_sealing:
            opinion = feature.before_sealing(ports, closing)
            if opinion.refused or opinion.later:
                return opinion
            notes.append(opinion.note)
    return Opinion(note=" ".join(filter(None, notes)))


def check_files(ports: Any, route: Route, drop: CheckedDrop) -> Json:
    """The features' results for such a drop of this route."""
    answers = (feature.check_files(ports, route, drop) for feature in features() if feature.check_files)
    return {key: value for answer in answers for key, value in answer.items()}


def data_facts(run: Run) -> Json:
    """The features' facts about the run's data, for the provenance of its model."""
    return {key: value for each in features() if each.data_facts for key, value in each.data_facts(run).items()}


def price_on(run: Run, cluster: str) -> float | None:
    """The price of a node-hour for this run on this cluster; None if no feature has a price."""
    asked = (feature.price_on(run, cluster) for feature in features() if feature.price_on)
    return next((price for price in asked if price is not None), None)


def guest_of(ports: Any, token: str) -> Guest | None:
    """The program behind a bearer token; None if no feature knows such tokens. Raises Unknown."""
    found = (feature.guest_of(ports, token) for feature in features() if feature.guest_of)
    return next(filter(None, found), None)


def reserve(ports: Any, run: Run) -> None:
    """Reserve the run's greatest cost in the features' own limits. Raises Conflict if one of them does not allow it."""
    for feature in features():
        if feature.reserve:
            feature.reserve(ports, run)


def release(ports: Any, run: Run) -> None:
    """Release the reservation of `reserve` for a run that will not start."""
    for feature in features():
        if feature.release:
            feature.release(ports, run)


def refusal(ports: Any, run: Run) -> Refusal | None:
    """Why a feature's own limit would not let the run start now; None if every limit would."""
    asked = (feature.refusal(ports, run) for feature in features() if feature.refusal)
    return next(filter(None, asked), None)


def keep_books(ports: Any) -> None:
    """Let the features record the costs of runs."""
    for feature in features():
        if feature.keep_books:
            feature.keep_books(ports)


def owner_of_drop(drop: DropKey) -> Person:
    """The only owner who gets upload addresses for this drop; NOBODY for a drop that is open to anyone."""
    owners = (feature.owner_of_drop(drop) for feature in features() if feature.owner_of_drop)
    return next((owner for owner in owners if owner.id), NOBODY)


def findings(ports: Any, runs: Sequence[Run]) -> dict[str, RunFinding]:
    """The features' findings about these runs, by name. A feature that can't ask now has no findings."""
    found: dict[str, RunFinding] = {}
    for feature in features():
        try:
            found |= feature.watch(ports, runs) if feature.watch else {}
        except TrainyardError as exc:
            log.warning("runs are not watched for now: %s", exc)
    return found


def node_pulses(ports: Any, run: Run) -> tuple[NodePulse, ...]:
    """The current use of the nodes of a running run; empty without measurements, or if they can't be read."""
    try:
        return tuple(node for feature in features() if feature.node_pulses for node in feature.node_pulses(ports, run))
    except TrainyardError as exc:
        log.warning("the nodes of run %s are not known for now: %s", run.name, exc)
        return ()


def viewed(ports: Any, run: Run) -> Run:
    """The unfinished run as a viewer of its record gets it."""
    for feature in features():
        run = feature.viewed(ports, run) if feature.viewed else run
    return run


def ailments(run: Run, pulse: Pulse) -> list[Ailment]:
    """The features' findings about the health of a running run."""
    return [found for feature in features() if feature.ailments for found in feature.ailments(run, pulse)]


def mended(run: Run) -> Run:
    """The run completed with the values that are missing from a row of the previous version."""
    for feature in features():
        run = feature.mend(run) if feature.mend else run
    return run
