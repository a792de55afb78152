"""What people ask: health, status, drops, and what can be asked. All but uploads reads."""

import azure.functions as func

from functions import access
from functions.http import answer, handled, handled_for_anyone
from shared.api import queries, status
from shared.api.requests import DropsQuery, UploadRequest, read_body, read_query
from shared.bootstrap import system as the_system
from shared.drops import uploads
from shared.drops.model import DropKey

blueprint = func.Blueprint()


@blueprint.route("health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@handled_for_anyone
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
    """The drops by name, `?route=` for those of one route, `?after=` for the next page."""
    return answer(queries.drops(the_system(), read_query(req.params, DropsQuery)))


@blueprint.route("drops/{route}/{name}", methods=["GET"])
@handled
def get_drop(req: func.HttpRequest) -> func.HttpResponse:
    """One drop, with why it is not closed yet, or was rejected."""
    return answer(queries.drop(the_system(), req.route_params["route"], req.route_params["name"]))


@blueprint.route("drops/{route}/{name}/uploads", methods=["POST"])
@handled
def upload_addresses(req: func.HttpRequest) -> func.HttpResponse:
    """Where a browser puts the files of a drop."""
    key = DropKey(req.route_params["route"], req.route_params["name"])
    return answer(uploads.upload_addresses(the_system(), key, read_body(req.get_body(), UploadRequest)))


@blueprint.route("me", methods=["GET"])
@handled
def get_me(req: func.HttpRequest) -> func.HttpResponse:
    """Who calls, and whether they may change something."""
    return answer(access.me(req))


@blueprint.route("openapi.json", methods=["GET"])
@handled
def get_openapi(req: func.HttpRequest) -> func.HttpResponse:
    """This API as an OpenAPI document."""
    from shared.api import openapi

    return answer(openapi.document())
