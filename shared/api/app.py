"""The app over HTTP: health, the caller, the catalogue of trainers and routes, and poison messages."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from msgspec import Meta

from shared.api import answers, catalogue, openapi, status
from shared.api.requests import ReplayQuery, RouteCheck, RouteName
from shared.clusters.ports import ClusterPorts
from shared.drops.ports import DropPorts
from shared.jobs.ports import WorkspacePorts
from shared.jobs.register import Registered, register
from shared.kernel.encode import Json
from shared.kernel.ports import StoragePorts
from shared.kernel.reply import Caller, Reply
from shared.messages import replay as poison
from shared.messages.declared import QUEUES

QueueName = Annotated[str, Meta(extra_json_schema={"enum": list(QUEUES)})]


def health(ports: DropPorts) -> Annotated[Reply, {200: answers.Health, 503: answers.Health}]:
    checked = status.health(ports)
    return Reply(checked, 200 if checked["status"] == "ok" else 503)


def get_openapi() -> Annotated[Json, dict[str, Any]]:
    return openapi.document()


def get_me(caller: Caller) -> Annotated[Json, answers.Me]:
    name, object_id = caller.person
    return {"auth": caller.auth, "name": name, "id": object_id, "may_change": caller.may_change}


def replay(ports: StoragePorts, queue: QueueName, query: ReplayQuery) -> Annotated[Json, poison.ReplayedMessages]:
    try:
        return asdict(poison.give_back(ports.blobs, ports.queues, queue, query.dry_run))
    finally:
        ports.memory.forget(status.SHOWN_QUEUES)


def list_trainers(ports: WorkspacePorts) -> Annotated[list[Json], list[answers.Trainer]]:
    return catalogue.all_trainers(ports.trainers, ports.routes)


def list_routes(ports: WorkspacePorts) -> Annotated[list[Json], list[answers.RouteAnswer]]:
    return catalogue.all_routes(ports.routes)


def check_route(ports: WorkspacePorts, route: RouteName, body: RouteCheck) -> Annotated[Json, answers.CheckedRoute]:
    return catalogue.check(ports, route, body)


def register_assets(ports: ClusterPorts) -> Annotated[Json, Registered]:
    return asdict(register(ports.jobs, ports.trainers, ports.routes, ports.clusters.list()))
