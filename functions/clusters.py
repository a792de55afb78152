"""Clusters: the sweep that brings idle ones to zero, what it decided, and the same by hand."""

import os

import azure.functions as func

from functions.http import answer, handled
from shared.api import status
from shared.api.requests import ScaleQuery, read_query
from shared.bootstrap import system as the_system
from shared.clusters import sweep
from shared.events import incoming
from shared.kernel.settings import sweep_schedule
from shared.system import CLUSTER_LOOKS

blueprint = func.Blueprint()
STORAGE = "AzureWebJobsStorage"


@blueprint.timer_trigger("timer", sweep_schedule(os.environ))
def sweep_timer(timer: func.TimerRequest) -> None:
    """One decision for every cluster."""
    sweep.sweep(the_system())


@blueprint.queue_trigger("message", CLUSTER_LOOKS, STORAGE)
def cluster_looks(message: func.QueueMessage) -> None:
    """A cluster on which a run has begun or ended."""
    sweep.sweep_one(the_system(), incoming.text(incoming.decode(message.get_body()), "cluster"))


@blueprint.route("clusters", methods=["GET"])
@handled
def list_clusters(req: func.HttpRequest) -> func.HttpResponse:
    """The clusters with the latest decision about each."""
    return answer(status.clusters(the_system()))


@blueprint.route("clusters/{cluster}/scale-to-zero", methods=["POST"])
@handled
def scale_to_zero(req: func.HttpRequest) -> func.HttpResponse:
    """Bring a cluster to zero, unless something needs it. `?force=true` doesn't wait for its idle time."""
    force = read_query(req.params, ScaleQuery).force
    decision = sweep.scale_to_zero(the_system(), req.route_params["cluster"], force)
    return answer({"cluster": decision.cluster, "action": decision.action, "why": decision.why}, 202)
