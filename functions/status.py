"""What people ask: health, status, drops, runs and logs. All of it reads."""

import azure.functions as func

from functions.http import answer, handled
from shared.bootstrap import system as the_system
from shared.service import status, views

blueprint = func.Blueprint()


@blueprint.route("health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@handled
def health(req: func.HttpRequest) -> func.HttpResponse:
    """Whether storage and workspace answer: 200, or 503 with the detail."""
    checked = status.health(the_system())
    return answer(checked, 200 if checked["status"] == "ok" else 503)


@blueprint.route("status", methods=["GET"])
@handled
def get_status(req: func.HttpRequest) -> func.HttpResponse:
    """Queues, poison messages, drops that wait, newest runs, clusters."""
    return answer(status.status(the_system()))


@blueprint.route("drops", methods=["GET"])
@handled
def list_drops(req: func.HttpRequest) -> func.HttpResponse:
    """The drops by name, `?route=` for those of one route."""
    return answer(views.drops(the_system(), req.params.get("route")))


@blueprint.route("drops/{route}/{name}", methods=["GET"])
@handled
def get_drop(req: func.HttpRequest) -> func.HttpResponse:
    """One drop, with why it is not closed yet, or was rejected."""
    return answer(views.drop(the_system(), req.route_params["route"], req.route_params["name"]))


@blueprint.route("runs", methods=["GET"])
@handled
def list_runs(req: func.HttpRequest) -> func.HttpResponse:
    """The newest runs, at most `?limit=` of them."""
    return answer(views.runs(the_system(), req.params.get("limit", "100")))


@blueprint.route("runs/{run}", methods=["GET"])
@handled
def get_run(req: func.HttpRequest) -> func.HttpResponse:
    """One run with its history."""
    return answer(views.run(the_system(), req.route_params["run"]))


@blueprint.route("runs/{run}/logs", methods=["GET"])
@handled
def get_logs(req: func.HttpRequest) -> func.HttpResponse:
    """The log of one rank from a byte offset on; `x-next-offset` says where to go on."""
    params = req.params
    chunk = views.log(the_system(), req.route_params["run"], params.get("rank", "0"), params.get("offset", "0"))
    headers = {"x-next-offset": str(chunk.next_offset)}
    return func.HttpResponse(chunk.data, headers=headers, mimetype="text/plain", charset="utf-8")
