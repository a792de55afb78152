"""Data over HTTP: what a drop held, how two generations differ, and to train one once more."""

import azure.functions as func

from functions import access
from functions.http import accepted, answer, handled
from shared.api import data, requests
from shared.api.data import DiffQuery, FilesQuery
from shared.api.requests import read_query
from shared.bootstrap import system as the_system
from shared.drops import retrain
from shared.drops.model import DropKey

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
    key = requests.read_key(req.headers.get("idempotency-key"))
    run = retrain.train_again(the_system(), _drop(req), key, *access.who(req))
    return accepted(run)


@blueprint.route("data/files", methods=["GET"])
@handled
def list_files(req: func.HttpRequest) -> func.HttpResponse:
    """The files of a generation, of a drop as it is now, or of what a run was made for."""
    return answer(data.files(the_system(), read_query(req.params, FilesQuery)))


@blueprint.route("data/diff", methods=["GET"])
@handled
def diff_data(req: func.HttpRequest) -> func.HttpResponse:
    """What is added, changed and gone from one list of files to another."""
    return answer(data.difference(the_system(), read_query(req.params, DiffQuery)))


def _drop(req: func.HttpRequest) -> DropKey:
    return DropKey(req.route_params["route"], req.route_params["name"])
