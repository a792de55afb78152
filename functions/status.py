"""What people ask: health, status, drops, and what can be asked. All but replay reads."""

from dataclasses import asdict

import azure.functions as func

from functions.http import answer, handled, handled_for_anyone
from functions.in_time import aside
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import catalogue, queries, requests, status
    from shared.jobs import register
    from shared.kernel import parsing
    from shared.messages import replay as set_aside

blueprint = func.Blueprint()


@blueprint.route("health", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
@handled_for_anyone
async def health(req: func.HttpRequest) -> func.HttpResponse:
    """Whether storage and workspace answer: 200, or 503 with the detail."""
    checked = await aside(lambda: status.health(the_system()))
    return answer(checked, 200 if checked["status"] == "ok" else 503)


@blueprint.route("status", methods=["GET"])
@handled
def get_status(req: func.HttpRequest) -> func.HttpResponse:
    """Queues, poison messages, drops that wait, newest runs, clusters."""
    return answer(status.status(the_system()))


@blueprint.route("queues/{queue}/replay", methods=["POST"])
@handled
def replay(req: func.HttpRequest) -> func.HttpResponse:
    """Give a queue its poison messages and dead letters back. `?dry_run=true` only counts them."""
    dry_run = parsing.read_query(req.params, requests.ReplayQuery).dry_run
    return answer(asdict(set_aside.give_back(the_system(), req.route_params["queue"], dry_run)))


@blueprint.route("drops", methods=["GET"])
@handled
def list_drops(req: func.HttpRequest) -> func.HttpResponse:
    """The drops by name, `?route=` for those of one route, `?after=` for the next page."""
    return answer(queries.drops(the_system(), parsing.read_query(req.params, requests.DropsQuery)))


@blueprint.route("drops/{route}/{name}", methods=["GET"])
@handled
def get_drop(req: func.HttpRequest) -> func.HttpResponse:
    """One drop, with why it is not closed yet, or was rejected."""
    return answer(queries.drop(the_system(), req.route_params["route"], req.route_params["name"]))


@blueprint.route("openapi.json", methods=["GET"])
@handled
def get_openapi(req: func.HttpRequest) -> func.HttpResponse:
    """This API as an OpenAPI document."""
    from shared.api import openapi

    return answer(openapi.document())


@blueprint.route("find", methods=["GET"])
@handled
def find(req: func.HttpRequest) -> func.HttpResponse:
    """The run or drop that a name means: a whole name, its beginning, `@latest`, `route@best:accuracy`."""
    return answer(queries.find(the_system(), parsing.read_query(req.params, requests.FindQuery).name))


@blueprint.route("compare", methods=["GET"])
@handled
def compare(req: func.HttpRequest) -> func.HttpResponse:
    """What is different between runs: parameters, data, code, metrics."""
    return answer(queries.compared(the_system(), parsing.read_query(req.params, requests.CompareQuery).runs))


@blueprint.route("trainers", methods=["GET"])
@handled
def list_trainers(req: func.HttpRequest) -> func.HttpResponse:
    """The trainers, each with its parameters."""
    return answer(catalogue.trainers(the_system()))


@blueprint.route("routes", methods=["GET"])
@handled
def list_routes(req: func.HttpRequest) -> func.HttpResponse:
    """The routes, each with its limits and parameters."""
    return answer(catalogue.routes(the_system()))


@blueprint.route("routes/{route}/check", methods=["POST"])
@handled
def check_route(req: func.HttpRequest) -> func.HttpResponse:
    """What a drop of this route with this job file would become. Makes nothing."""
    body = parsing.read_body(req.get_body(), requests.RouteCheck)
    return answer(catalogue.check(the_system(), req.route_params["route"], body))


@blueprint.route("register", methods=["POST"])
@handled
def register_assets(req: func.HttpRequest) -> func.HttpResponse:
    """Register what every job needs, and say what is wrong with the routes."""
    system = the_system()
    return answer(asdict(register.register(system.jobs, system.trainers, system.routes, system.clusters.list())))
