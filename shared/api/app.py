"""The app over HTTP: health, the caller, what can be submitted, and poison messages."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from msgspec import Meta

from shared.api import answers, catalogue, openapi, status
from shared.api.requests import ReplayQuery, RouteCheck
from shared.jobs.register import Registered, register
from shared.kernel.encode import Json
from shared.kernel.reply import Caller, Reply
from shared.messages import replay as poison
from shared.messages.declared import QUEUES
from shared.ports import AllPorts

QueueName = Annotated[str, Meta(extra_json_schema={"enum": list(QUEUES)})]
RouteName = Annotated[str, Meta(min_length=1)]


def health(ports: AllPorts) -> Annotated[Reply, {200: answers.Health, 503: answers.Health}]:
    checked = status.health(ports)
    return Reply(checked, 200 if checked["status"] == "ok" else 503)


def get_status(ports: AllPorts) -> Annotated[Json, answers.Status]:
    return status.status(ports)


def get_openapi() -> Annotated[Json, dict[str, Any]]:
    return openapi.document()


def get_me(caller: Caller) -> Annotated[Json, answers.Me]:
    name, object_id = caller.person
    return {"auth": caller.auth, "name": name, "id": object_id, "may_change": caller.may_change}


def replay(ports: AllPorts, queue: QueueName, query: ReplayQuery) -> Annotated[Json, poison.ReplayedMessages]:
    return asdict(poison.give_back(ports.blobs, ports.queues, queue, query.dry_run))


def list_trainers(ports: AllPorts) -> Annotated[list[Json], list[answers.Trainer]]:
    return catalogue.trainers(ports)


def list_routes(ports: AllPorts) -> Annotated[list[Json], list[answers.RouteAnswer]]:
    return catalogue.routes(ports)


def check_route(ports: AllPorts, route: RouteName, body: RouteCheck) -> Annotated[Json, answers.CheckedRoute]:
    return catalogue.check(ports, route, body)


def register_assets(ports: AllPorts) -> Annotated[Json, Registered]:
    return asdict(register(ports.jobs, ports.trainers, ports.routes, ports.clusters.list()))
