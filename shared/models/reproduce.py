"""Train a version again from the recorded parts, and compare the results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from shared.jobs.ports import Jobs
from shared.jobs.readers.place_text import read_asset
from shared.jobs.spec import JobSpec, again, uses_own_code, uses_own_environment
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.models import why
from shared.models.evidence import model_digests, node_facts
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
REPRODUCES = "trainyard.reproduces"  # the tag of a job that reproduces another run's model


@dataclass(frozen=True)
class Comparison:
    """The comparison with a reproduction's model: whether the weights are equal, different files, and other
    differences.
    """

    equal: bool
    weights: dict[str, bool]  # per file of weights: whether it is equal
    others: list[str]  # other files of the model that differ
    differs: list[str]  # sentences: packages, processor, metrics


def reproduce(ports: ModelPorts, version: Version, by: Person) -> Run:
    """Return a run with the version's job, code and environment, on the version's data.

    A repeat returns the same run, or a new one if that run failed or was canceled. Raises Conflict for data that are
    gone or have changed, and Impossible for a parent model that no longer exists.
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
    name = _next_name(ports.runs, version)
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


def _next_name(runs: Runs, version: Version) -> str:
    """Return the name of the reproduction in progress or completed, else of the next reproduction."""
    for number in count():
        name = asked_run_name("reproduce", f"{version} {version.digest}" + (f" {number}" if number else ""))
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
    return Comparison(bool(weights) and all(weights.values()), weights, others, [*differs, *_metrics(first, run)])


def varies(run: Run) -> str:
    """Return why a repetition of the run can't have equal weights; '' if it can."""
    fewest, most = workload(run).fewest_nodes(run), run.asked.nodes
    if fewest >= most:
        return ""
    return (
        f"The run had {fewest} to {most} nodes, and their number changed: its weights can't be equal to the bit. "
        "Compare the metric; one repetition does not show how much the metric scatters."
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
