"""Clusters: the sweep that brings idle ones to zero, what it decided, and the same by hand."""

import os
from functools import partial

import azure.functions as func

from functions import access, telemetry
from functions.attribution import attributed
from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system
from shared.kernel.index_settings import sweep_schedule

with on_demand():
    from shared.api import nodes, records, requests, status
    from shared.clusters import auto_idle, lease_actions, lease_model, sweep
    from shared.kernel import attempts, parsing
    from shared.money import charge_costs

blueprint = func.Blueprint()


@blueprint.timer_trigger("timer", sweep_schedule(os.environ))
@attributed
def sweep_timer(timer: func.TimerRequest) -> None:
    """One decision for every cluster, then the books of what they have cost."""
    try:
        with telemetry.span("sweep"):
            steps = attempts.Attempts("sweep")
            steps.do("idle times", partial(auto_idle.set_idle_times, the_system()))
            steps.do("clusters", partial(sweep.sweep, the_system()))
            steps.end()
    finally:  # a cluster that refuses keeps no budget from being held
        with telemetry.span("keep books"):
            charge_costs.keep_books(the_system())
        telemetry.measure_clusters(the_system())


@blueprint.route("clusters", methods=["GET"])
@handled
def list_clusters(req: func.HttpRequest) -> func.HttpResponse:
    """The clusters with the latest decision about each."""
    return answer(status.clusters(the_system()))


@blueprint.route("nodes", methods=["GET"])
@handled
def list_nodes(req: func.HttpRequest) -> func.HttpResponse:
    """The clusters' nodes over the last hours, and the decisions about them."""
    return answer(nodes.nodes(the_system(), parsing.read_query(req.params, nodes.NodesQuery)))


@blueprint.route("leases", methods=["GET"])
@handled
def list_leases(req: func.HttpRequest) -> func.HttpResponse:
    """The leases that hold nodes now."""
    return answer(status.leases(the_system()))


@blueprint.route("clusters/{cluster}/leases", methods=["POST"])
@handled
def make_lease(req: func.HttpRequest) -> func.HttpResponse:
    """Keep nodes of a cluster warm for some time."""
    system, lease_request = the_system(), parsing.read_body(req.get_body(), requests.LeaseRequest)
    wish = lease_model.Wish(int(lease_request.nodes), lease_request.seconds, lease_request.why)
    made = lease_actions.lease(system, req.route_params["cluster"], wish, access.who(req))
    return answer(records.lease(made, system.clock()), 201)


@blueprint.route("leases/{lease}/extend", methods=["POST"])
@handled
def extend_lease(req: func.HttpRequest) -> func.HttpResponse:
    """Let a lease go on for longer."""
    system, seconds = the_system(), parsing.read_body(req.get_body(), requests.LeaseExtension).seconds
    return answer(records.lease(lease_actions.extend(system, req.route_params["lease"], seconds), system.clock()))


@blueprint.route("leases/{lease}", methods=["DELETE"])
@handled
def release_lease(req: func.HttpRequest) -> func.HttpResponse:
    """End a lease now."""
    system = the_system()
    ended = lease_actions.release(system, req.route_params["lease"], access.who(req))
    return answer(records.lease(ended, system.clock()))


@blueprint.route("clusters/{cluster}/scale-to-zero", methods=["POST"])
@handled
def scale_to_zero(req: func.HttpRequest) -> func.HttpResponse:
    """Bring a cluster to zero, unless something needs it. `?force=true` doesn't wait for its idle time."""
    force = parsing.read_query(req.params, requests.ScaleQuery).force
    decision = sweep.scale_to_zero(the_system(), req.route_params["cluster"], force, access.who(req))
    return answer({"cluster": decision.cluster, "action": decision.action, "why": decision.why}, 202)
