"""Models over HTTP: promote, point, look, prove, train again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import azure.functions as func

from functions import access
from functions.http import accepted, answer, handled
from functions.on_demand import on_demand
from shared.bootstrap import system as the_system

with on_demand():
    from shared.api import models, requests
    from shared.kernel import parsing
    from shared.models import find, reproduce, why
    from shared.runs.results import artifacts

if TYPE_CHECKING:
    from shared.models.model import Version

blueprint = func.Blueprint()


@blueprint.route("models", methods=["GET"])
@handled
def list_models(req: func.HttpRequest) -> func.HttpResponse:
    """All models, with their aliases."""
    return answer(models.all_models(the_system()))


@blueprint.route("models/{model}", methods=["GET"])
@handled
def get_model(req: func.HttpRequest) -> func.HttpResponse:
    """A model's aliases, versions and history."""
    return answer(models.one_model(the_system(), req.route_params["model"]))


@blueprint.route("models/{model}/versions", methods=["POST"])
@handled
def promote_run(req: func.HttpRequest) -> func.HttpResponse:
    """Make a run's model the next version, and point an alias at it."""
    body = parsing.read_body(req.get_body(), models.PromoteRequest)
    return answer(models.promote(the_system(), req.route_params["model"], body, access.who(req)), 201)


@blueprint.route("models/{model}/aliases/{alias}", methods=["POST"])
@handled
def move_alias(req: func.HttpRequest) -> func.HttpResponse:
    """Point an alias at a version, or back where it was."""
    body = parsing.read_body(req.get_body(), models.AliasRequest)
    name, alias = req.route_params["model"], req.route_params["alias"]
    return answer(models.move(the_system(), name, alias, body, access.who(req)))


@blueprint.route("models/{model}/versions/{version}", methods=["GET"])
@handled
def get_version(req: func.HttpRequest) -> func.HttpResponse:
    """A version, by its number or an alias."""
    return answer(models.one_version(the_system(), *_named(req)))


@blueprint.route("models/{model}/versions/{version}/let-go", methods=["POST"])
@handled
def let_go_version(req: func.HttpRequest) -> func.HttpResponse:
    """Keep a version no longer."""
    body = parsing.read_body(req.get_body() or b"{}", models.LetGoRequest)
    return answer(models.release(the_system(), *_named(req), body, access.who(req)))


@blueprint.route("models/{model}/versions/{version}/files/{*path}", methods=["GET"])
@handled
def read_model_file(req: func.HttpRequest) -> func.HttpResponse:
    """A redirect to a signed file of the version, or to model.sig; `?link=true` tells where."""
    address = models.address(the_system(), *_named(req), req.route_params.get("path", ""))
    if parsing.read_query(req.params, requests.ArtifactQuery).link:
        return answer({"url": address, "seconds": artifacts.ADDRESS_LIFE})
    return func.HttpResponse(status_code=302, headers={"Location": address, "Cache-Control": "no-store"})


@blueprint.route("models/{model}/versions/{version}/why", methods=["GET"])
@handled
def explain_version(req: func.HttpRequest) -> func.HttpResponse:
    """The chain from the alias to the data, each link looked at now."""
    version = _version(req)
    return answer(models.chain(the_system(), version, why.chain(the_system(), version)))


@blueprint.route("models/{model}/versions/{version}/reproduce", methods=["POST"])
@handled
def reproduce_version(req: func.HttpRequest) -> func.HttpResponse:
    """Train the version again from its recorded parts."""
    return accepted(reproduce.reproduce(the_system(), _version(req), access.who(req)))


@blueprint.route("models/{model}/versions/{version}/reproductions/{run}", methods=["GET"])
@handled
def compare_reproduction(req: func.HttpRequest) -> func.HttpResponse:
    """How a reproduction's model compares with the signed one."""
    run = req.route_params["run"]
    return answer(models.comparison(run, reproduce.compare(the_system(), _version(req), run)))


@blueprint.route("model-key", methods=["GET"])
@handled
def get_model_key(req: func.HttpRequest) -> func.HttpResponse:
    """The public key that models are signed with."""
    return answer(models.key(the_system()))


def _named(req: func.HttpRequest) -> tuple[str, str]:
    return req.route_params["model"], req.route_params["version"]


def _version(req: func.HttpRequest) -> Version:
    return find.version_of(the_system().models, *_named(req))
