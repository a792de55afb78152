"""Which operations the program behind a grant's token may call, and what the program sees.

RULES lists every operation that a grant may call. Every other operation is refused, so a new operation is closed to
grants until somebody adds the operation here. A program sees the grant's own things and the shared things. For
everything else, the answer is 404.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from shared.grants.model import Grant, May, drop_prefix, grant_of_drop, listed
from shared.grants.ports import GRANTS
from shared.grants.token import is_secret, parts_of
from shared.jobs.data import read_data
from shared.jobs.route import Routes
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Forbidden, Impossible, NotFound, Unknown
from shared.kernel.guest import Arguments
from shared.kernel.person import PROGRAM, Person
from shared.kernel.reply import Caller, Reply
from shared.runs.features import part_of
from shared.runs.intake.request import RunRequest
from shared.runs.names import RUN_NAME

READABLE = timedelta(days=1)  # after a grant's end, so that a program still gets the results of its last runs
NOT_KNOWN = "This token is not known here, or was revoked."


@dataclass(frozen=True)
class GrantGuest:
    """Implements the port shared.kernel.guest.Guest."""

    grant: Grant

    @property
    def person(self) -> Person:
        return self.grant.person

    @property
    def may_run_code(self) -> bool:
        return self.grant.may(May.RUN_CODE)

    def admitted(self, ports: Any, operation: str, arguments: Arguments) -> Arguments:
        rule = RULES.get(operation)
        if rule is None:
            raise Forbidden(f"No grant may call {operation}.")
        if not self.grant.may(rule.may):
            raise Forbidden(f"Grant {self.grant.id} may not {rule.may}. It may: {listed(self.grant.terms.may)}.")
        return {**arguments, **rule.check(self, ports, arguments)}

    def shown(self, ports: Any, operation: str, value: Any) -> Any:
        show = RULES[operation].show
        return show(self, ports, value) if show else value

    def sees_run(self, ports: Any, name: str) -> bool:
        """Return whether the run belongs to the grant, is shared with the grant, or is a trial of such a sweep."""
        if not RUN_NAME.fullmatch(name):
            return False
        run = ports.runs.recent(name).value
        shared = {f"runs/{run.name}", f"runs/{part_of(run)}"} & set(self.grant.terms.shares)
        return bool(run.people.owner_id == self.person.id or shared)

    def sees_drop(self, drop: DropKey) -> bool:
        return grant_of_drop(drop.name) == self.grant.id or f"drops/{drop}" in self.grant.terms.shares

    def sees_model(self, name: str) -> bool:
        return name in self.grant.terms.models or f"models/{name}" in self.grant.terms.shares


Check = Callable[[GrantGuest, Any, Arguments], Arguments]  # returns the arguments to change


@dataclass(frozen=True)
class Rule:
    """The right that an operation needs, the check of the operation's arguments, and the visible part of the
    answer.
    """

    may: May
    check: Check
    show: Callable[[GrantGuest, Any, Any], Any] | None = None


def guest_of(ports: Any, token: str) -> GrantGuest | None:
    """Return the guest behind a token; None for a text that is not a token of a grant.

    Raises Unknown for an invalid token: there is no such grant, the secret is wrong, or the grant is revoked or has
    long ended. Costs one read of the app's own table.
    """
    parts = parts_of(token)
    if parts is None:
        return None
    stored = ports.store(GRANTS).get(parts[0])
    if stored is None or not is_secret(parts[1], stored.value.secret) or stored.value.revoked_at:
        raise Unknown(NOT_KNOWN)
    grant = stored.value
    if grant.terms.until and ports.clock() >= grant.terms.until + READABLE:
        raise Unknown(f"Grant {grant.id} ended at {grant.terms.until:%Y-%m-%d %H:%M} UTC.")
    return GrantGuest(grant)


def _any(_guest: GrantGuest, _ports: Any, _arguments: Arguments) -> Arguments:
    return {}


def _visible_run(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    _need_run(guest, ports, arguments["run"])
    return {}


def _need_run(guest: GrantGuest, ports: Any, name: str) -> None:
    try:
        seen = guest.sees_run(ports, name)
    except NotFound:
        seen = False
    if not seen:
        raise NotFound(f"There is no run {name[:80]!r}.")


def _own_run(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    name = arguments["run"]
    _need_run(guest, ports, name)
    if ports.runs.recent(name).value.people.owner_id != guest.person.id:
        raise Forbidden(f"Run {name} is shared with grant {guest.grant.id}, which may only read it.")
    return {}


def _visible_runs(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    """Check names that are separated by commas. Other ways to name a run would search among everybody's runs."""
    for name in filter(None, arguments["query"].runs.split(",")):
        _need_run(guest, ports, name.strip())
    return {}


def _own_list(guest: GrantGuest, _ports: Any, arguments: Arguments) -> Arguments:
    """List the newest of the grant's own runs. The token of a page is a key, and may name a run of another owner."""
    query = arguments["query"]
    if any((query.experiment, query.state, query.cluster, query.owner, query.tag, query.token)):
        raise Impossible("A grant lists its own runs: use `where` instead of the other filters.", "bad_parameter")
    return {"query": msgspec.structs.replace(query, owner=guest.person.id)}


def _request(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    """Check the trainer, the data and the starting model in a request for a run. The admission checks the rest."""
    body: RunRequest = arguments["body"]
    terms = guest.grant.terms
    trainers = _trainers(guest.grant, ports.routes)
    for what, name, own in (("route", body.template, terms.routes), ("trainer", body.trainer, trainers)):
        if name and name not in own:
            raise Forbidden(f"Grant {guest.grant.id} may not use the {what} {name!r}. It has: {listed(own)}.")
    if body.done_by or body.within_seconds:
        raise Forbidden("A run of a grant can't have a date, because its plan may move it to other clusters.")
    if "project" in body.tags:
        raise Forbidden("The tag project can't be set by a grant: the route names the project that pays.")
    if body.data:
        _need_data(guest, body.data)
    if body.from_run:
        _need_run(guest, ports, body.from_run)
    if body.job is not None:
        _need_inputs(guest, body.job)
    key = arguments.get("key")
    return {"key": f"{PROGRAM}{guest.grant.id} {key}"} if key else {}


def _trainers(grant: Grant, routes: Routes) -> tuple[str, ...]:
    """Return the trainers of the grant: the named trainers, and the trainers of the grant's routes."""
    of_routes = {routes[name].trainer for name in grant.terms.routes if name in routes}
    return tuple(sorted({*grant.terms.trainers, *of_routes} - {""}))


def _need_data(guest: GrantGuest, text: str) -> None:
    place = read_data(text)
    if place.drop is None or not guest.sees_drop(place.drop):
        raise NotFound(f"Grant {guest.grant.id} has no data {text[:120]!r}.")


def _need_inputs(guest: GrantGuest, job: Any) -> None:
    """Check that a job document names only data that the grant may read, and no output location."""
    if not isinstance(job, dict):
        return
    for value in _mapping(job, "inputs").values():
        path = value.get("path", "") if isinstance(value, dict) else value
        is_place = isinstance(value, dict) or (isinstance(path, str) and re.search(r"://|^azureml:|^drops/", path))
        if is_place and path and not str(path).startswith("${{"):
            _need_data(guest, str(path))
    if any(isinstance(value, dict) and value.get("path") for value in _mapping(job, "outputs").values()):
        raise Forbidden("A job of a grant can't name a path for an output: leave `path` out.")
    for step in _mapping(job, "jobs").values():
        _need_inputs(guest, step)


def _mapping(job: dict[str, Any], name: str) -> dict[str, Any]:
    value = job.get(name)
    return value if isinstance(value, dict) else {}


def _visible_drop(guest: GrantGuest, _ports: Any, arguments: Arguments) -> Arguments:
    drop = DropKey(arguments["route"], arguments["name"])
    if not guest.sees_drop(drop):
        raise NotFound(f"No upload to drops/{drop} was seen.")
    return {}


def _own_drop(guest: GrantGuest, _ports: Any, arguments: Arguments) -> Arguments:
    grant, route = guest.grant, arguments["route"]
    if grant_of_drop(arguments["name"]) != grant.id:
        raise Forbidden(f"The names of this grant's drops begin with {drop_prefix(grant.id)}.")
    if route not in grant.terms.routes:
        raise Forbidden(f"Grant {grant.id} may not use route {route[:80]!r}. It has: {listed(grant.terms.routes)}.")
    return {}


def _own_route(guest: GrantGuest, _ports: Any, arguments: Arguments) -> Arguments:
    route, own = arguments["route"], guest.grant.terms.routes
    if route not in own:
        raise Forbidden(f"Grant {guest.grant.id} may not use route {route[:80]!r}. It has: {listed(own)}.")
    return {}


def _visible_data(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    """Check `of`: a run, or `<route>/<name>` with an optional generation."""
    of: str = arguments["query"].of
    if "/" not in of:
        _need_run(guest, ports, of)
    elif not guest.sees_drop(DropKey.of(of.partition("@")[0])):
        raise NotFound(f"No upload to drops/{of[:120]} was seen.")
    return {}


def _visible_model(guest: GrantGuest, _ports: Any, arguments: Arguments) -> Arguments:
    if not guest.sees_model(arguments["model"]):
        raise NotFound(f"There is no model {arguments['model'][:80]!r}.")
    return {}


def _own_model(guest: GrantGuest, ports: Any, arguments: Arguments) -> Arguments:
    model, own = arguments["model"], guest.grant.terms.models
    if model not in own:
        raise Forbidden(f"Grant {guest.grant.id} may not change the model {model[:80]!r}. It has: {listed(own)}.")
    if run := getattr(arguments["body"], "run", ""):
        _own_run(guest, ports, {"run": run})
    return {}


def _as_guest(guest: GrantGuest, _ports: Any, _arguments: Arguments) -> Arguments:
    return {"caller": Caller("grant", guest.person, guest.grant.may(May.SUBMIT))}


def _own_routes(guest: GrantGuest, _ports: Any, value: Any) -> Any:
    return [each for each in value if each["route"] in guest.grant.terms.routes]


def _own_trainers(guest: GrantGuest, ports: Any, value: Any) -> Any:
    own, routes = _trainers(guest.grant, ports.routes), guest.grant.terms.routes
    trainers = [each for each in value if each["trainer"] in own]
    return [each | {"routes": [name for name in each["routes"] if name in routes]} for each in trainers]


def _without_others(_guest: GrantGuest, _ports: Any, value: Any) -> Any:
    """Show records of runs without the names of the runs that are ahead in the queue."""
    if isinstance(value, Reply):
        return value
    records = [value, value.get("run"), *(value.get("records") or ()), *(value.get("runs") or ())]
    for record in records:
        waiting = record.get("waiting") if isinstance(record, dict) else None
        if waiting:
            waiting["after"] = []
        if waiting and waiting["code"] == "other_run":
            waiting["why"] = "Other runs are ahead of it."
    return value


def _page(guest: GrantGuest, ports: Any, value: Any) -> Any:
    """Show a page without its token, and without hints and counts, because they cover everybody's runs."""
    shown = {"runs": value["runs"], "continue": None, "looked_at": len(value["runs"])}
    return _without_others(guest, ports, shown)


RULES: dict[str, Rule] = {
    "get_me": Rule(May.READ, _as_guest),
    "get_openapi": Rule(May.READ, _any),
    "serve_mcp": Rule(May.READ, _any),  # each tool calls operations of this table
    "get_own_grant": Rule(May.READ, _any),
    "list_routes": Rule(May.READ, _any, _own_routes),
    "list_trainers": Rule(May.READ, _any, _own_trainers),
    "check_route": Rule(May.READ, _own_route),
    "list_runs": Rule(May.READ, _own_list, _page),
    "get_run": Rule(May.READ, _visible_run, _without_others),
    "get_live": Rule(May.READ, _visible_run, _without_others),
    "get_logs": Rule(May.READ, _visible_run),
    "get_metrics": Rule(May.READ, _visible_run),
    "get_curves": Rule(May.READ, _visible_runs, _without_others),
    "compare": Rule(May.READ, _visible_runs, _without_others),
    "list_artifacts": Rule(May.READ, _visible_run),
    "read_artifact": Rule(May.READ, _visible_run),
    "list_trials": Rule(May.READ, _visible_run),
    "get_run_usage": Rule(May.READ, _visible_run),
    "get_drop": Rule(May.READ, _visible_drop),
    "list_generations": Rule(May.READ, _visible_drop),
    "list_files": Rule(May.READ, _visible_data),
    "get_card": Rule(May.READ, _visible_data),
    "get_model": Rule(May.READ, _visible_model),
    "get_version": Rule(May.READ, _visible_model),
    "explain_version": Rule(May.READ, _visible_model),
    "list_attestations": Rule(May.READ, _visible_model),
    "create_run": Rule(May.SUBMIT, _request),
    "retry_run": Rule(May.SUBMIT, _own_run),
    "continue_run": Rule(May.SUBMIT, _own_run),
    "note_run": Rule(May.SUBMIT, _own_run),
    "tag_run": Rule(May.SUBMIT, _own_run),
    "cancel_run": Rule(May.CANCEL, _own_run),
    "delete_run": Rule(May.CANCEL, _own_run),
    "upload_addresses": Rule(May.UPLOAD, _own_drop),
    "train_again": Rule(May.SUBMIT, _own_drop),
    "begin_upload": Rule(May.RUN_CODE, _any),
    "promote_run": Rule(May.PROMOTE, _own_model),
    "move_alias": Rule(May.PROMOTE, _own_model),
}
