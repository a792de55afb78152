"""The commands submit, runs, compare, show, cancel, retry and continue."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import typer

from .. import show
from ..api import run_list
from ..api.client import retry_unreachable
from ..api.run_names import data_path, drop_or_run, run_name, suggesting
from ..errors import ERROR, CliError
from ..files import arguments, folder_job
from ..files.job_form import is_remote
from ..files.job_upload import sent_data
from ..results import prints
from ..session import Session, command, command_as, user_path
from ..show import comparison
from ..show.costs import before
from ..show.trainer_help import SubmitCommand
from . import options, values
from .follow import end_with, follow
from .job_request import Work
from .notes_and_tags import pairs

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.5
_SWEEP_NEEDS = {
    "trials": "--trials N, the number of trials",
    "metric": "--metric NAME, the metric that decides which trial is best (such as test_accuracy)",
}


@command_as(SubmitCommand)
@prints("POST runs", "GET runs/{run}")
def submit(
    session: Session,
    trainer: options.Trainer = "",
    template: options.Template = "",
    job: options.JobFile = None,
    data: options.Data = "",
    parameter: options.Parameters = None,
    start: options.FromRun = "",
    nodes: options.Nodes = "",
    resubmissions: options.Resubmissions = None,
    done_by: options.DoneBy = "",
    within: options.Within = "",
    takes: options.Takes = "",
    cluster: options.Cluster = "",
    experiment: options.Experiment = "",
    timeout: options.Timeout = "",
    warm: options.KeepWarm = "",
    project: options.Project = "",
    tag: options.Tags = None,
    trials: options.Trials = None,
    metric: options.SweepMetric = "",
    goal: options.Goal = "",
    stop: options.Stop = "",
    budget: options.Budget = None,
    at_once: options.AtOnce = None,
    sampling: options.Sampling = "",
    key: options.Key = "",
    code_command: options.CodeCommand = "",
    env: options.Env = "",
    distribution: options.Distribution = "",
    processes: options.Processes = None,
    save: options.Save = None,
    dry_run: options.DryRun = False,
    following: options.Follow = False,
) -> None:
    """Submit a training: a trainer, an Azure ML job file, or a folder of your own code.

    The command prints the name of the run at once; --follow waits for the model. After the name of a trainer,
    --help also lists the parameters of that trainer.

    Code, local inputs and build contexts that a job file names are uploaded first, except files matched by
    .amlignore or .gitignore; --dry-run uploads them too, because the check reads them, and exits with 1 if the run
    could not start now. A folder runs --command: in
    the command, {data} is the data, and {name} is a parameter or a folder for results. On several nodes,
    --distribution says how its processes find each other; the processes of pytorch and mpi have MASTER_ADDR and
    MASTER_PORT.

    Example: trainyard submit mnist --data drops/mnist/digits-1 -p epochs=5 --nodes 2 --follow

    Example: trainyard submit mnist --data drops/mnist/digits-1 -p lr=0.001..0.1 -p batch_size=32,64,128 --trials 20
    --metric test_accuracy --stop asha --budget 5

    Example: trainyard submit ./iris --command "python train.py --data {data} --out {models}" --data drops/iris/1 --env
    pandas,scikit-learn --cluster cpu-cluster

    Example: trainyard submit ./ddp --command "python train.py" --env torch --cluster gpu-cluster --nodes 2
    --distribution pytorch --processes 4
    """
    body = requested(session, locals())
    if dry_run:
        _print_plan(session, session.api.post("runs", body=body, dry_run=True))
        return
    # The key makes a repeat safe when the answer to the first one was lost on its way.
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    answer = retry_unreachable(
        lambda: session.api.post("runs", body=body, headers=headers),
        PATIENCE_SECONDS,
        session.outage,
    )
    print_new_run(session, answer, following)


def requested(session: Session, words: dict[str, Any], later: bool = False) -> dict[str, Any]:
    """Return the request body for these arguments of `submit`.

    `later`: names with @ stay unresolved, because they are resolved when the run is made.
    """
    timeout, warm, project, start = words["timeout"], words["warm"], words["project"], words["start"]
    parameters = arguments.parameters(words["parameter"])
    nodes = values.nodes(words["nodes"])
    spread = folder_job.distribution(words["distribution"], words["processes"], nodes if isinstance(nodes, int) else 1)
    what = Work(spread, *(words[name] for name in ("trainer", "template", "job", "code_command", "env", "save")))
    runs_what = what.read(session, parameters, bool(words["data"]))
    body = {
        **runs_what,
        "parameters": {} if words["code_command"] else parameters,
        "from_run": run_name(session.api, start) if start and not (later and "@" in start) else start,
        "data": _data(session, words["data"], later),
        "nodes": nodes,
        "resubmissions": words["resubmissions"],
        "done_by": values.date(words["done_by"]),
        "within_seconds": values.seconds(words["within"]) if words["within"] else None,
        "takes_seconds": values.seconds(words["takes"]) if words["takes"] else None,
        "cluster": words["cluster"],
        "experiment": words["experiment"],
        "timeout_seconds": values.seconds(timeout) if timeout else None,
        "tags": {
            **folder_job.tags_of(runs_what.get("job") or {}),
            **pairs(words["tag"]),
            **({"project": project} if project else {}),
        },
        "keep_warm_seconds": values.seconds(warm) if warm else None,
    }
    body["sweep"] = sweep(words)
    body = {name: value for name, value in body.items() if value not in ("", None, {})}
    what.write_job_file(session, parameters, body)
    if words["code_command"] and "sweep" in body:  # the ranges are among the inputs of its job
        body["job"] = {**body["job"], "sweep": body.pop("sweep")}
    return body


def _data(session: Session, text: str, later: bool) -> str:
    data = sent_data(session.api, text, user_path, session.remark)
    if later and "@" in data and not is_remote(data):
        return data
    path = data_path(session.api, data)
    if path.removeprefix("drops/") != data.removeprefix("drops/"):  # a prefix, or @latest
        session.remark(f"Its data: {path}", "dim")
    return path


def sweep(words: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a sweep; empty if none is given. Raises BadParameter that names the missing option."""
    names = ("trials", "metric", "goal", "stop", "budget", "at_once", "sampling")
    told = {name: words[name] for name in names if words.get(name) not in (None, "")}
    if missing := [option for name, option in _SWEEP_NEEDS.items() if told and name not in told]:
        given = f"--{next(iter(told)).replace('_', '-')}"
        raise typer.BadParameter(f"{given} makes a sweep, which also needs {' and '.join(missing)}.")
    return told


@command
@prints("GET runs > runs")
def runs(
    session: Session,
    experiment: options.OfExperiment = "",
    state: options.OfState = "",
    cluster: options.OfCluster = "",
    owner: options.OfOwner = "",
    mine: options.Mine = False,
    since: options.Since = "",
    where: options.Where = "",
    sort: options.Sort = "",
    limit: options.Limit = 20,
) -> None:
    """List runs, newest first, with the best metric of each and the parameters that differ.

    Example: trainyard runs --where "lr<0.1 and accuracy>0.9" --sort -accuracy
    """
    if state not in ("", *run_list.STATES):
        raise typer.BadParameter(f"--state is {state!r}; choose from {', '.join(run_list.STATES)}.")
    began = values.moment(since) if since else ""
    query = {"experiment": experiment, "state": state, "cluster": cluster, "owner": owner, "since": began}
    ask = run_list.own if mine else run_list.matching
    page = ask(session.api, {**query, "where": where}, limit, everything=bool(sort))
    shown, more = page.runs, page.more
    if sort:
        shown, more = run_list.ordered(shown, sort)[:limit], len(shown) > limit
    order = f"by {sort}" if sort else "the newest"
    session.print_result(shown, show.runs.many(shown, f"{order}, {len(shown)} shown; --limit for more" if more else ""))
    if page.hint:
        session.remark(page.hint, "yellow")
    if page.gave_up:
        session.remark(
            f"These are among the newest {page.looked_at:,} runs; --experiment, --owner or --since find older."
        )


@command
@prints("GET compare")
def compare(
    session: Session, runs: options.Runs, name: options.Metrics = None, plot: options.WithPlots = False
) -> None:
    """Show the differences between runs, and with --plot or --name their curves.

    The differences are parameters, data, code, cluster, duration and cost; below them is the best value of each
    metric in the training. For a single sweep, its best trials are compared.

    Example: trainyard compare mnist@latest mnist@best:accuracy
    """
    answer = session.api.get("compare", runs=",".join(runs))
    if session.as_json:
        session.print_json(answer)
        return
    names = [run["run"] for run in answer["runs"]]
    curves = session.api.get("curves", runs=",".join(names), name=",".join(name) if name else None)["runs"]
    session.out.print(comparison.differences(answer))
    session.out.print(comparison.curves(names, curves, name or [], plot, min(session.out.width, comparison.WIDEST)))


@command
@prints("GET runs/{run}", "GET drops/{route}/{name}")
def _show(session: Session, name: options.RunOrDrop) -> None:
    """Show a run's history, or why a drop did not start.

    Example: trainyard show mnist/digits-1
    """
    drop, run = drop_or_run(session.api, name)
    with suggesting(session.api, name):
        answer = session.api.get("drops", *drop.split("/", 1)) if drop else session.api.get("runs", run)
    if not drop and answer.get("sweep"):
        answer["trial_runs"] = session.api.get("runs", tag=f"trainyard.sweep={run}", limit=100, details="true")["runs"]
    session.print_result(answer, show.drops.one(answer) if drop else show.runs.one(answer, _usage(session, answer)))


def _usage(session: Session, run: dict[str, Any]) -> dict[str, Any] | None:
    """Return the usage of a run's nodes; None before the first node, in a deployment without measurements, and for
    --json.
    """
    if session.as_json or run.get("sweep") or run["state"] in ("received", "submitted", "queued"):
        return None
    try:
        answer: dict[str, Any] = session.api.get("runs", run["run"], "usage")
    except CliError:  # the rest of the run is worth showing
        return None
    return answer


@command
@prints("POST runs/{run}/cancel")
def cancel(session: Session, run: options.Run) -> None:
    """Cancel a run.

    A run that has ended does not change.

    Example: trainyard cancel mnist-0123456789abcdef
    """
    answer = session.api.post("runs", run, "cancel")
    ended = answer["state"] in ("completed", "failed", "canceled")
    words = f"It is {answer['state']}." if ended else "Trainyard asked it to end. `show` says when it has ended."
    session.print_result(answer, f"{answer['run']}: {words}")


@command
@prints("POST runs/{run}/retry", "GET runs/{run}")
def retry(
    session: Session,
    run: options.Run,
    parameter: options.Changes = None,
    as_advised: options.AsAdvised = False,
    following: options.Follow = False,
) -> None:
    """Start a run that has ended again from the beginning, as a new run.

    The new run has the same job and data, except for the parameters that you give and, with --as-advised, what the
    run's diagnosis advises to change: parameters, the cluster, or the time limit. The same command again returns the
    same new run.

    Example: trainyard retry mnist-0123456789abcdef -p lr=0.01 --follow
    """
    advised = _advised(session, run) if as_advised else {"change": {}, "change_job": {}}
    body = {"parameters": {**advised["change"], **arguments.parameters(parameter)}, **advised["change_job"]}
    print_new_run(session, session.api.post("runs", run, "retry", body=body), following)


def _advised(session: Session, run: str) -> dict[str, Any]:
    """Return the changes that the run's diagnosis advises. Raises CliError if it advises none."""
    found = session.api.get("runs", run).get("diagnosis")
    if not found:
        raise CliError(f"Run {run} has no diagnosis. Only a failed run that is archived has one.", "no_advice")
    changes = {**found["change"], **(found.get("change_job") or {})}
    if not changes:
        steps = " ".join(found["advice"])
        raise CliError(
            f"{found['summary']} Nothing that a retry of run {run} can change helps against it. {steps}", "no_advice"
        )
    words = ", ".join(f"{name}={value}" for name, value in changes.items())
    session.remark(f"{found['summary']} The run is tried again with {words}.", "dim")
    return {"change": found["change"], "change_job": found.get("change_job") or {}}


@command
@prints("POST runs/{run}/continue", "GET runs/{run}")
def _continue(
    session: Session, run: options.Run, parameter: options.Changes = None, following: options.Follow = False
) -> None:
    """Continue a run that has ended from its newest checkpoint, as a new run.

    A run that was canceled, failed or ran out of time continues where it stopped; a completed run needs more
    epochs. The curves of the new run begin with those of the old one. The same command again returns the same new
    run.

    Example: trainyard continue mnist-0123456789abcdef -p epochs=20 --follow
    """
    body = {"parameters": arguments.parameters(parameter)}
    print_new_run(session, _once_archived(lambda: session.api.post("runs", run, "continue", body=body)), following)


def _once_archived(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer of the call. While the ended run is still being archived, the call is retried for up to
    PATIENCE_SECONDS.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except CliError as exc:
            if exc.code != "not_archived" or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_SECONDS)


def print_new_run(session: Session, answer: dict[str, Any], following: bool) -> None:
    """Print the name, the cost, and the page's address of a new run; or follow the run."""
    name = answer["run"]
    if session.as_json and not following:
        session.print_json(answer)
        return
    if not following:
        session.out.print(name, soft_wrap=True)
    if answer.get("date"):
        session.remark(answer["date"]["why"], "dim")
    elif answer.get("greatest_cost") is not None:
        session.remark(f"Cost: {before(answer['estimated_cost'], answer['greatest_cost'])}.", "dim")
    session.remark(f"Page: {session.profile.url}/page#/run/{name}", "dim")
    if following:
        end_with(follow(session, name))
    else:
        session.remark(f"Watch it: {session.program} logs -f {name}", "dim")


def _print_plan(session: Session, answer: dict[str, Any]) -> None:
    session.print_result(answer, show.plan.plan(answer))
    if answer["reasons"]:
        raise typer.Exit(ERROR)
