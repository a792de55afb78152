"""Clusters: the sweep that brings idle ones to zero, and what it decided."""

import os

import azure.functions as func

from functions.http import answer, handled
from shared.bootstrap import system as the_system
from shared.service import clusters, status

blueprint = func.Blueprint()
EVERY_5_MINUTES = "30 */5 * * * *"


@blueprint.timer_trigger("timer", os.environ.get("TRAINYARD_SWEEP_SCHEDULE") or EVERY_5_MINUTES)
def sweep(timer: func.TimerRequest) -> None:
    """One decision for every cluster."""
    clusters.sweep(the_system())


@blueprint.route("clusters", methods=["GET"])
@handled
def list_clusters(req: func.HttpRequest) -> func.HttpResponse:
    """The clusters with the latest decision about each."""
    return answer(status.clusters(the_system()))
