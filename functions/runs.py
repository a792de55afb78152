"""Runs over HTTP: make, look, follow, fetch, cancel, try again."""

from __future__ import annotations

import azure.functions as func

from functions import access
from functions.http import accepted, answer, handled
from functions.on_demand import on_demand
from functions.ranges import log_answer, wanted_range
from shared.bootstrap import studies as the_studies
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import imports, live, queries, requests, rows, trials
    from shared.kernel import parsing
    from shared.runs import model
    from shared.runs.intake import create, dry_run, request, retry_and_continue
    from shared.runs.progress import cancel, submit
    from shared.runs.results import artifacts
    from shared.runs.views import logs, metrics, notes_and_tags

blueprint = func.Blueprint()


@blueprint.route("runs", methods=["POST"])
@handled
def create_run(req: func.HttpRequest) -> func.HttpResponse:
    """Make a run: 202 at once. `?dry_run=true`: the job that would be sent, and why it could not start now."""
    key, query = (
        parsing.read_key(req.headers.get("idempotency-key")),
        parsing.read_query(req.params, requests.CreateQuery),
    )
    body = parsing.read_body(req.get_body(), request.RunRequest)
    if body.job is not None:  # its command is code
        access.admit_code(req)
    by = access.who(req)
    if query.dry_run:
        return answer(dry_run.dry_run(the_system(), body, key))
    return accepted(create.create_run(the_system(), body, key, *by))


@blueprint.route("imports", methods=["POST"])
@handled
def import_document(req: func.HttpRequest) -> func.HttpResponse:
    """What a Batch AI document becomes, field by field. Makes nothing."""
    return answer(imports.imported(the_system(), parsing.read_body(req.get_body(), requests.ImportRequest)))


@blueprint.route("runs", methods=["GET"])
@handled
def list_runs(req: func.HttpRequest) -> func.HttpResponse:
    """A page of runs, newest first."""
    return answer(queries.runs(the_system(), parsing.read_query(req.params, requests.RunsQuery)))


@blueprint.route("rows", methods=["GET"])
@handled
def list_rows(req: func.HttpRequest) -> func.HttpResponse:
    """The runs as rows of a table, and what changed of them."""
    return answer(rows.rows(the_system(), parsing.read_query(req.params, rows.RowsQuery)))


@blueprint.route("runs/{run}", methods=["GET"])
@handled
def get_run(req: func.HttpRequest) -> func.HttpResponse:
    """One run with its history."""
    return answer(queries.run(the_system(), req.route_params["run"]))


@blueprint.route("runs/{run}", methods=["DELETE"])
@handled
def delete_run(req: func.HttpRequest) -> func.HttpResponse:
    """The same as cancel: the record of a run stays."""
    return _canceled(req)


@blueprint.route("runs/{run}/cancel", methods=["POST"])
@handled
def cancel_run(req: func.HttpRequest) -> func.HttpResponse:
    """Ask for the run's end. 202, or 200 for one that has ended already."""
    return _canceled(req)


@blueprint.route("runs/{run}/retry", methods=["POST"])
@handled
def retry_run(req: func.HttpRequest) -> func.HttpResponse:
    """A new run with the job of this one, which must be final."""
    given = _changes(req).parameters
    return accepted(retry_and_continue.retry_run(the_system(), req.route_params["run"], given, *access.who(req)))


@blueprint.route("runs/{run}/continue", methods=["POST"])
@handled
def continue_run(req: func.HttpRequest) -> func.HttpResponse:
    """A new run that goes on from the checkpoint of this one, which must be final."""
    given = _changes(req).parameters
    return accepted(retry_and_continue.continue_run(the_system(), req.route_params["run"], given, *access.who(req)))


@blueprint.route("runs/{run}/notes", methods=["POST"])
@handled
def note_run(req: func.HttpRequest) -> func.HttpResponse:
    """Write a note on the run, with who and when."""
    text = parsing.read_body(req.get_body(), requests.NoteRequest).text.strip()
    run = notes_and_tags.add_note(the_system(), req.route_params["run"], text, access.who(req))
    return answer(queries.run(the_system(), run.name))


@blueprint.route("runs/{run}/tags", methods=["POST"])
@handled
def tag_run(req: func.HttpRequest) -> func.HttpResponse:
    """Set some of the run's tags, and take others off."""
    tags = parsing.read_body(req.get_body(), requests.TagsRequest)
    run = notes_and_tags.change_tags(the_system(), req.route_params["run"], tags.set, tags.remove, access.who(req))
    return answer(queries.run(the_system(), run.name))


@blueprint.route("runs/{run}/members/{member}/evict", methods=["POST"])
@handled
def evict_member(req: func.HttpRequest) -> func.HttpResponse:
    """End the job of an elastic run's member, to see the run go on without it."""
    run, member = req.route_params["run"], requests.read_member(req.route_params["member"])
    return answer({"run": run, "job": submit.evict(the_system(), run, member, access.who(req))}, 202)


@blueprint.route("runs/{run}/logs", methods=["GET"])
@handled
async def get_logs(req: func.HttpRequest) -> func.HttpResponse:
    """The log of one rank from a byte offset on, or a range of its bytes; `?wait=` waits for more."""
    query, run = parsing.read_query(req.params, requests.LogQuery), req.route_params["run"]
    if byte_range := wanted_range(req.headers.get("range")):
        return log_answer(await logs.ranged(the_system(), run, query.rank, byte_range), ranged=True)
    return log_answer(await logs.follow(the_system(), run, query.rank, query.offset, query.wait))


@blueprint.route("runs/{run}/trials", methods=["GET"])
@handled
def list_trials(req: func.HttpRequest) -> func.HttpResponse:
    """A sweep's trials, and which parameters matter."""
    return answer(trials.trials(the_system(), the_studies(), req.route_params["run"]))


@blueprint.route("runs/{run}/metrics", methods=["GET"])
@handled
def get_metrics(req: func.HttpRequest) -> func.HttpResponse:
    """The run's metrics as series."""
    query = parsing.read_query(req.params, requests.MetricsQuery)
    return answer({"series": metrics.series(the_system(), req.route_params["run"], query.name or None)})


@blueprint.route("runs/{run}/live", methods=["GET"])
@handled
def get_live(req: func.HttpRequest) -> func.HttpResponse:
    """The run, and what came of its metrics and its log since the last look."""
    return answer(live.live(the_system(), req.route_params["run"], parsing.read_query(req.params, requests.LiveQuery)))


@blueprint.route("curves", methods=["GET"])
@handled
def get_curves(req: func.HttpRequest) -> func.HttpResponse:
    """The curves of several runs."""
    return answer(live.curves(the_system(), parsing.read_query(req.params, requests.CurvesQuery)))


@blueprint.route("runs/{run}/artifacts", methods=["GET"])
@handled
def list_artifacts(req: func.HttpRequest) -> func.HttpResponse:
    """The files of the run's archive."""
    return answer(
        artifacts.artifacts(
            the_system(), req.route_params["run"], parsing.read_query(req.params, requests.ArtifactsQuery).pictures
        )
    )


@blueprint.route("runs/{run}/artifacts/{*path}", methods=["GET"])
@handled
def read_artifact(req: func.HttpRequest) -> func.HttpResponse:
    """A redirect to where this file can be read for some minutes; `?link=true` tells where, for a page."""
    address = artifacts.address(the_system(), req.route_params["run"], req.route_params.get("path", ""))
    if parsing.read_query(req.params, requests.ArtifactQuery).link:
        return answer({"url": address, "seconds": artifacts.ADDRESS_LIFE})
    return func.HttpResponse(status_code=302, headers={"Location": address, "Cache-Control": "no-store"})


def _changes(req: func.HttpRequest) -> requests.Changes:
    """What the body changes; older clients send none."""
    return parsing.read_body(req.get_body() or b"{}", requests.Changes)


def _canceled(req: func.HttpRequest) -> func.HttpResponse:
    run = cancel.cancel_run(the_system(), req.route_params["run"], by=access.who(req))
    return answer({"run": run.name, "state": run.progress.state}, 200 if run.progress.state in model.FINAL else 202)
