"""What is removed, by hand or by retention, and what takes the space."""

import os

import azure.functions as func

from functions import access
from functions.attribution import attributed
from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import post as the_post
from shared.bootstrap import removals as the_removals
from shared.bootstrap import system as the_system
from shared.kernel.drop_key import DropKey
from shared.kernel.index_settings import retention_schedule

with on_demand():
    from shared import daily
    from shared.api import removals
    from shared.removals import remove, retention, usage

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", retention_schedule(os.environ))
@attributed
def retention_timer(timer: func.TimerRequest) -> None:
    """Let go what the routes keep no longer."""
    daily.look_after(the_system(), the_removals(), the_post())


@blueprint.route("runs/{run}/remove", methods=["POST"])
@handled
def remove_run(req: func.HttpRequest) -> func.HttpResponse:
    """Everything that the run left goes; its record stays."""
    request = remove.Asked(access.who(req))
    return answer(
        removals.removal(remove.remove_run(the_system(), the_removals(), req.route_params["run"], request)), 202
    )


@blueprint.route("drops/{route}/{name}/remove", methods=["POST"])
@handled
def remove_drop(req: func.HttpRequest) -> func.HttpResponse:
    """The drop's files and its record go."""
    key = DropKey(req.route_params["route"], req.route_params["name"])
    done = remove.remove_drop(the_system(), the_removals(), key, remove.Asked(access.who(req)))
    return answer(removals.removal(done), 202)


@blueprint.route("removals", methods=["GET"])
@handled
def list_removals(req: func.HttpRequest) -> func.HttpResponse:
    """The newest removals: who, when, why, how much."""
    return answer([removals.removal(each) for each in the_removals().newest()])


@blueprint.route("retention", methods=["GET"])
@handled
def get_retention(req: func.HttpRequest) -> func.HttpResponse:
    """What retention will let go within a week."""
    return answer([removals.going(each) for each in retention.plan(the_system())])


@blueprint.route("usage", methods=["GET"])
@handled
def get_usage(req: func.HttpRequest) -> func.HttpResponse:
    """What takes the space."""
    return answer(removals.usage(usage.usage(the_system())))
