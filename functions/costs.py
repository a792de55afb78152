"""What was spent, and by whom."""

import azure.functions as func

from functions.http import answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import costs, requests
    from shared.kernel import parsing

blueprint = func.Blueprint()


@blueprint.route("costs", methods=["GET"])
@handled
def get_costs(req: func.HttpRequest) -> func.HttpResponse:
    """What the nodes cost since a day, by run, cluster, project or owner, and how the budgets stand."""
    return answer(costs.costs(the_system(), parsing.read_query(req.params, requests.CostsQuery)))
