"""Schedules: the looks at them, and what people ask of them over HTTP."""

import azure.functions as func

from functions import access
from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import schedules as the_schedules
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import schedules
    from shared.kernel import parsing
    from shared.schedules import plan

blueprint = func.Blueprint()


@blueprint.route("schedules", methods=["GET"])
@handled
def list_schedules(req: func.HttpRequest) -> func.HttpResponse:
    """All schedules, with their next instants."""
    return answer(schedules.schedules(the_schedules()))


@blueprint.route("schedules", methods=["POST"])
@handled
def add_schedule(req: func.HttpRequest) -> func.HttpResponse:
    """A new schedule. `?dry_run=true`: its next instants, and the job that each would send."""
    request = parsing.read_body(req.get_body(), schedules.ScheduleRequest)
    if request.run.job is not None:  # its command is code
        access.admit_code(req)
    wish = request.wish(*access.who(req))
    if parsing.read_query(req.params, schedules.DryRunQuery).dry_run:
        return answer(plan.preview(the_system(), wish))
    made = schedules.added(the_system(), the_schedules(), wish)
    return answer(made, 201, {"Location": f"/api/schedules/{made['id']}"})


@blueprint.route("schedules/{schedule}", methods=["DELETE"])
@handled
def remove_schedule(req: func.HttpRequest) -> func.HttpResponse:
    """Take a schedule away."""
    plan.remove(the_schedules(), req.route_params["schedule"])
    return answer({"id": req.route_params["schedule"]})


@blueprint.route("schedules/{schedule}/pause", methods=["POST"])
@handled
def pause_schedule(req: func.HttpRequest) -> func.HttpResponse:
    """No further instants until it is resumed."""
    return _paused(req, True)


@blueprint.route("schedules/{schedule}/resume", methods=["POST"])
@handled
def resume_schedule(req: func.HttpRequest) -> func.HttpResponse:
    """Go on from now."""
    return _paused(req, False)


@blueprint.route("schedules/{schedule}/firings", methods=["GET"])
@handled
def list_firings(req: func.HttpRequest) -> func.HttpResponse:
    """What became of its newest instants."""
    return answer(schedules.firings(the_schedules(), req.route_params["schedule"]))


def _paused(req: func.HttpRequest, paused: bool) -> func.HttpResponse:
    name = req.route_params["schedule"]
    return answer(schedules.schedule(plan.pause(the_system(), the_schedules(), name, paused, access.who(req))))
