"""Notices: their way to those who subscribed, and the subscriptions over HTTP."""

import azure.functions as func

from functions import access
from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import post as the_post
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import notices
    from shared.kernel import parsing
    from shared.notices import subscribe

blueprint = func.Blueprint()


@blueprint.route("notices", methods=["GET"])
@handled
def list_subscriptions(req: func.HttpRequest) -> func.HttpResponse:
    """All subscriptions, with as much of their addresses as may be shown."""
    return answer(notices.subscriptions(the_post()))


@blueprint.route("notices", methods=["POST"])
@handled
def add_subscription(req: func.HttpRequest) -> func.HttpResponse:
    """A new subscription. A webhook's secret is answered this once."""
    wish = parsing.read_body(req.get_body(), notices.SubscriptionRequest).wish()
    made = subscribe.subscribe(the_system(), the_post(), wish, access.who(req))
    return answer(notices.new(made), 201, {"Location": f"/api/notices/{made.id}", "Cache-Control": "no-store"})


@blueprint.route("notices/{subscription}", methods=["DELETE"])
@handled
def remove_subscription(req: func.HttpRequest) -> func.HttpResponse:
    """Take a subscription away."""
    subscribe.unsubscribe(the_post(), req.route_params["subscription"])
    return answer({"id": req.route_params["subscription"]})


@blueprint.route("notices/{subscription}/test", methods=["POST"])
@handled
def test_subscription(req: func.HttpRequest) -> func.HttpResponse:
    """Send a test to it."""
    name = req.route_params["subscription"]
    return answer({"id": name, "event": subscribe.send_test(the_system(), the_post(), name)}, 202)


@blueprint.route("notices/{subscription}/deliveries", methods=["GET"])
@handled
def list_deliveries(req: func.HttpRequest) -> func.HttpResponse:
    """What became of the newest notices for it."""
    return answer(notices.deliveries(the_post(), req.route_params["subscription"]))
