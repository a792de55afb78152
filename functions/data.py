"""Data over HTTP: what a drop held, how two generations differ, and to train one once more."""

from __future__ import annotations

import azure.functions as func

from functions import access
from functions.http import accepted, answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system
from shared.kernel.drop_key import DropKey

with on_demand():
    from shared.api import data
    from shared.drops import retrain
    from shared.kernel import parsing

blueprint = func.Blueprint()


@blueprint.route("drops/{route}/{name}/generations", methods=["GET"])
@handled
def list_generations(req: func.HttpRequest) -> func.HttpResponse:
    """The generations of a drop, newest first."""
    return answer(data.generations(the_system(), _drop(req)))


@blueprint.route("drops/{route}/{name}/again", methods=["POST"])
@handled
def train_again(req: func.HttpRequest) -> func.HttpResponse:
    """A further run of the content that the drop has already made one of."""
    key = parsing.read_key(req.headers.get("idempotency-key"))
    run = retrain.train_again(the_system(), _drop(req), key, *access.who(req))
    return accepted(run)


@blueprint.route("data/files", methods=["GET"])
@handled
def list_files(req: func.HttpRequest) -> func.HttpResponse:
    """The files of a generation, of a drop as it is now, or of what a run was made for."""
    return answer(data.files(the_system(), parsing.read_query(req.params, data.FilesQuery)))


@blueprint.route("data/diff", methods=["GET"])
@handled
def diff_data(req: func.HttpRequest) -> func.HttpResponse:
    """What is added, changed and gone from one list of files to another."""
    return answer(data.difference(the_system(), parsing.read_query(req.params, data.DiffQuery)))


def _drop(req: func.HttpRequest) -> DropKey:
    return DropKey(req.route_params["route"], req.route_params["name"])
