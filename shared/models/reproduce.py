"""Train a version again from the recorded parts, and compare the results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from math import sqrt
from statistics import mean, stdev
from typing import Any

from shared.jobs.ports import Jobs
from shared.jobs.readers.place_text import read_asset
from shared.jobs.spec import JobSpec, again, uses_own_code, uses_own_environment
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.models import why
from shared.models.evidence import model_digests, node_facts
from shared.models.find import chosen_by, model_named
from shared.models.goal import value_of
from shared.models.model import Version
from shared.models.ports import ModelPorts
from shared.models.promote import PROOF_LIMIT
from shared.models.signature import SIGNATURE, read_signature
from shared.models.sources import packages
from shared.runs.find_run import find_run
from shared.runs.intake.from_job import run_of
from shared.runs.intake.insert_run import record
from shared.runs.intake.warm_start import model_of
from shared.runs.model import FINAL, Moment, Run, RunState
from shared.runs.names import asked_run_name
from shared.runs.ports import Runs
from shared.runs.progress.workloads import workload
from shared.runs.views.summary import best_metric, first_line

DESCRIBING = (".json", ".txt", ".md", ".yaml", ".yml", ".csv", ".html", ".png", ".jpg", ".jpeg", ".svg")  # no weights
NAMED = 5
MOST_REPETITIONS = 20
ROUNDING = 1e-9  # of equal values
FEWEST_REPETITIONS = 3  # needed to estimate the scatter of a metric
# 0.975 quantile of Student's t by degrees of freedom, https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
STUDENT_BEYOND = 2.1
REPRODUCES = "trainyard.reproduces"  # the tag of a job that reproduces another run's model


@dataclass(frozen=True)
class Comparison:
    """The comparison with a reproduction's model: whether the weights are equal, different files, and other
    differences.

    `metric` is the metric by which versions of the model are compared, or the run's first metric, with its value in the
    version and in each completed repetition. `within` says whether the version's value lies in the range that the
    repetitions predict (a 95 % prediction interval); None for fewer than three repetitions, or without a metric.
    """

    equal: bool
    weights: dict[str, bool]  # per file of weights: whether it is equal
    others: list[str]  # other files of the model that differ
    differs: list[str]  # sentences: packages, processor, metrics
    metric: str = ""
    value: float | None = None
    repetitions: dict[str, float] = field(default_factory=dict)  # the metric by run
    within: bool | None = None


def reproduce(ports: ModelPorts, version: Version, by: Person, repetition: int = 1) -> Run:
    """Return a run with the version's job, code and environment, on the version's data.

    A repeat returns the same run, or a new one if that run failed or was canceled; each `repetition` is a run of its
    own. Raises Conflict for data that are gone or have changed, and Impossible for a parent model that no longer
    exists.
    """
    old = ports.runs.get(version.run).value
    if changes := why.data_changes(ports, old):
        raise Conflict(f"{version} was trained on other data than drop {old.asked.drop} has now: {changes}.", "altered")
    if old.asked.continues:
        raise Impossible(
            f"{version} continued run {old.asked.continues} from its checkpoints, which have changed since. Training "
            "from the beginning would give a different model.",
            "continued",
        )
    if changes := why.input_changes(ports, version, old):
        raise Conflict(f"{version} was trained on data that have changed: {changes}.", "altered")
    if old.asked.from_run:
        model_of(ports, old.asked.from_run)
    name = _next_name(ports.runs, version, repetition)
    job = as_it_ran(ports.jobs, old, again(old.asked.request, old.name, name, REPRODUCES))
    now = ports.clock()
    run = run_of(name, job, workload(old).bounds(old), now)
    why_so = f"Trains {version} again from its recorded parts. {varies(old)}".strip()
    begun = Moment(RunState.RECEIVED, now, why_so)
    run = replace(
        run,
        asked=replace(
            run.asked,
            drop=old.asked.drop,
            route=old.asked.route,
            fingerprint=old.asked.fingerprint,
            generation=old.asked.generation,
            experiment=old.asked.experiment,
            from_run=old.asked.from_run,
        ),
        progress=replace(run.progress, history=(begun,)),
        money=replace(run.money, project=old.money.project),
        people=replace(run.people, owner=by.name, owner_id=by.id),
    )
    return record(ports, run)


def _next_name(runs: Runs, version: Version, repetition: int) -> str:
    """Return the name of the repetition's run in progress or completed, else of the next run of this repetition."""
    what = f"{version} {version.digest}" + (f" repetition {repetition}" if repetition > 1 else "")
    for number in count():
        name = asked_run_name("reproduce", what + (f" {number}" if number else ""))
        run = find_run(runs, name)
        if run is None or run.progress.state not in FINAL or run.progress.state is RunState.COMPLETED:
            return name
    raise AssertionError("unreachable")


def as_it_ran(jobs: Jobs, run: Run, job: JobSpec) -> JobSpec:
    """Return the job with the run's code and environment. Raises Impossible for a run without named code."""
    if uses_own_code(job):
        if not run.jobs.code:
            raise Impossible(f"Run {run.name} does not say which code it ran.", "no_code")
        job = replace(job, code=jobs.code_id(run.jobs.code))
    return replace(job, environment=read_asset(run.jobs.environment)) if uses_own_environment(job) else job


def compare(ports: ModelPorts, version: Version, name: str) -> Comparison:
    """Compare a reproduction's model with the signed one. Raises Conflict until the reproduction is archived."""
    first, run = ports.runs.get(version.run).value, ports.runs.get(name).value
    if run.progress.state in FINAL and run.progress.state is not RunState.COMPLETED:
        raise Impossible(
            f"{version} was not trained again: {_why_not(run)} Send the request again to retry.", "not_reproduced"
        )
    if run.progress.state is not RunState.COMPLETED or run.archive.at is None:
        raise Conflict(
            f"Run {name} is {run.progress.state}{', not archived yet' if run.archive.at is None else ''}.",
            "not_archived",
        )
    signed, _ = read_signature(ports.blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{SIGNATURE}", PROOF_LIMIT))
    then = {file: digest for file, digest in signed.items() if file.startswith("models/")}
    now = model_digests(ports.blobs, ports.each, run)
    is_equal = {file: then.get(file) == now.get(file) for file in sorted({*then, *now})}
    weights = {file: equal for file, equal in is_equal.items() if not file.lower().endswith(DESCRIBING)} or is_equal
    others = [file for file, equal in is_equal.items() if not equal and file not in weights]
    differs = _differences(node_facts(ports.blobs, first), node_facts(ports.blobs, run))
    if why_never := varies(first):
        differs.insert(0, why_never)
    best = best_metric(first)
    judging = chosen_by(model_named(ports.models, version.model)) or (best[0] if best else "")
    value, repeated = value_of(judging, first), _repeated(ports.runs, version, judging)
    return Comparison(
        equal=bool(weights) and all(weights.values()),
        weights=weights,
        others=others,
        differs=[*differs, *_metrics(first, run)],
        metric=judging,
        value=value,
        repetitions=repeated,
        within=None if value is None else is_within(value, list(repeated.values())),
    )


def is_within(value: float, repeated: list[float]) -> bool | None:
    """Return whether the value is within the 95 % prediction interval of the repetitions: mean ± t s √(1 + 1/n).

    None for fewer than FEWEST_REPETITIONS. Source: https://www.itl.nist.gov/div898/handbook/pmd/section5/pmd512.htm
    """
    number = len(repeated)
    if number < FEWEST_REPETITIONS:
        return None
    quantile = STUDENT[number - 2] if number - 2 < len(STUDENT) else STUDENT_BEYOND
    return abs(value - mean(repeated)) <= quantile * stdev(repeated) * sqrt(1 + 1 / number) + ROUNDING * abs(value)


def _repeated(runs: Runs, version: Version, metric: str) -> dict[str, float]:
    """Return the metric of the completed repetitions by run."""
    names = (_next_name(runs, version, repetition) for repetition in range(1, MOST_REPETITIONS + 1))
    found = (find_run(runs, name) for name in names)
    done = (run for run in takewhile(bool, found) if run and run.progress.state is RunState.COMPLETED)
    return {run.name: value for run in done if (value := value_of(metric, run)) is not None}


def varies(run: Run) -> str:
    """Return why a repetition of the run can't have equal weights; '' if it can."""
    fewest, most = workload(run).fewest_nodes(run), run.asked.nodes
    if fewest >= most:
        return ""
    return (
        f"The run had {fewest} to {most} nodes, and their number changed: its weights can't be equal to the bit. "
        f"Compare the metric with {FEWEST_REPETITIONS} or more repetitions: one does not show how much it scatters."
    )


def _why_not(run: Run) -> str:
    if run.progress.failure and run.progress.failure.package:
        return (
            f"package {run.progress.failure.package} of its environment is no longer available (run {run.name}). "
            "Add it to the nodes' package index."
        )
    return f"run {run.name} is {run.progress.state}. {first_line(run)}"


def _differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the differences between the two nodes' own records."""
    if not then or not now:
        return ["One of the runs did not report its node, so packages and processors can't be compared."]
    lines = [
        f"The {what} was {then.get(what)}, now it is {now.get(what)}."
        for what in ("processor", "gpus", "cores", "python")
        if then.get(what) != now.get(what)
    ]
    before, after = packages(then), packages(now)
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    words = [f"{name} {before.get(name, 'absent')}, now {after.get(name, 'absent')}" for name in changed[:NAMED]]
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    return [*lines, *([f"Packages differ: {'; '.join(words)}{more}."] if words else [])]


def _metrics(first: Run, run: Run) -> list[str]:
    """Return the run's headline metric if different; other metrics measure time and memory."""
    name, then = best_metric(first) or ("", 0.0)
    then, now = (each.measured.of_model.get(name, then) for each in (first, run))
    return [f"{name} was {then:g}, now {now:g}."] if now != then else []
