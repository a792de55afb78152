"""The declarations of a deployment in the form that the other emulators use, and a check that events can be
delivered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from emulators.arm.access import Access
from emulators.arm.deploy import Deployment
from emulators.arm.functions import Json
from emulators.arm.resources import Resource
from emulators.arm.syntax import BicepError

ACCOUNT = "Microsoft.Storage/storageAccounts"
CONTAINERS = f"{ACCOUNT}/blobServices/containers"
QUEUES = f"{ACCOUNT}/queueServices/queues"
TABLES = f"{ACCOUNT}/tableServices/tables"
SYSTEM_TOPICS = "Microsoft.EventGrid/systemTopics"
TOPICS = "Microsoft.EventGrid/topics"
SUBSCRIPTIONS = "Microsoft.EventGrid/systemTopics/eventSubscriptions"
WORKSPACES = "Microsoft.MachineLearningServices/workspaces"
SEND = f"{QUEUES}/messages/add/action"
WRITE_BLOB = f"{CONTAINERS}/blobs/write"
TIERS = {"LowPriority": "low_priority", "Dedicated": "dedicated"}
DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")


class DeploymentFailed(BicepError):
    """Azure would refuse this deployment, or accept it and lose events. The message lists every fault on a line of
    its own."""


@dataclass(frozen=True)
class Storage:
    containers: tuple[str, ...]
    queues: tuple[str, ...]
    tables: tuple[str, ...]


def storage(deployment: Deployment) -> Storage:
    return Storage(*(tuple(r.last_name for r in deployment.of(kind)) for kind in (CONTAINERS, QUEUES, TABLES)))


def cors(deployment: Deployment) -> list[Json]:
    """Return the CORS rules for the account's blobs, in ARM's form."""
    services = deployment.of(f"{ACCOUNT}/blobServices")
    return [rule for service in services for rule in service.properties.get("cors", {}).get("corsRules", [])]


def app_settings(deployment: Deployment) -> dict[str, str]:
    """Return the settings of the deployment's Functions app."""
    settings = [r for r in deployment.of("Microsoft.Web/sites/config") if r.last_name == "appsettings"]
    return {key: str(value) for resource in settings for key, value in resource.properties.items()}


def clusters(deployment: Deployment) -> list[Json]:
    """Return the clusters in the form of the Azure ML emulator's configuration."""
    found = []
    for compute in deployment.of(f"{WORKSPACES}/computes"):
        settings = compute.properties["properties"]
        scale = settings["scaleSettings"]
        found.append(
            {
                "name": compute.last_name,
                "vm_size": settings["vmSize"],
                "tier": TIERS[settings["vmPriority"]],
                "min_instances": scale["minNodeCount"],
                "max_instances": scale["maxNodeCount"],
                "idle_seconds": seconds(scale["nodeIdleTimeBeforeScaleDown"]),
            }
        )
    return found


def datastores(deployment: Deployment) -> dict[str, str]:
    """Return the container of each datastore, by name."""
    found = deployment.of(f"{WORKSPACES}/datastores")
    return {store.last_name: store.properties["containerName"] for store in found}


def topics(deployment: Deployment) -> list[Json]:
    """Return the topics in the form of the Event Grid emulator's configuration. The storage account's topic gets
    its events from the account's log."""
    account, found = deployment.one(ACCOUNT), []
    for topic in deployment.of(SYSTEM_TOPICS):
        source = topic.properties["source"]
        one: Json = {"name": topic.last_name, "resource": source}
        found.append(one | ({"source": "storage"} if source.lower() == account.id.lower() else {}))
    return [*found, *({"name": topic.last_name, "resource": topic.id} for topic in deployment.of(TOPICS))]


def subscriptions(deployment: Deployment) -> list[Json]:
    """Return the event subscriptions in Azure's form, each with name, topic name and properties."""
    return [
        {"name": found.last_name, "topic": found.name.partition("/")[0], **found.properties}
        for found in deployment.of(SUBSCRIPTIONS)
    ]


def check_delivery(deployment: Deployment, access: Access) -> None:
    """Raise DeploymentFailed if an event that matches a subscription can't be delivered or dead-lettered."""
    faults = [fault for found in deployment.of(SUBSCRIPTIONS) for fault in _faults(deployment, access, found)]
    if faults:
        raise DeploymentFailed("\n".join(faults))


def _faults(deployment: Deployment, access: Access, found: Resource) -> list[str]:
    topic = deployment.by_id(found.id.partition("/eventSubscriptions/")[0])
    if topic is None:
        return [f"subscription {found.last_name}: its topic is not declared"]
    identity = deployment.runtime(topic, ("identity", "principalId"))
    delivery = found.properties["deliveryWithResourceIdentity"]["destination"]["properties"]
    letters = found.properties["deadLetterWithResourceIdentity"]["deadLetterDestination"]["properties"]
    queue = f"{delivery['resourceId']}/queueServices/default/queues/{delivery['queueName']}"
    container = f"{letters['resourceId']}/blobServices/default/containers/{letters['blobContainerName']}"
    wanted = (
        (queue, SEND, "Storage Queue Data Message Sender"),
        (container, WRITE_BLOB, "Storage Blob Data Contributor"),
    )
    faults = []
    for target, action, role in wanted:
        what = f"subscription {found.last_name}: {'/'.join(target.rsplit('/', 2)[1:])}"
        if deployment.by_id(target) is None:
            faults.append(f"{what} is not declared")
        elif not access.may(identity, action, target):
            faults.append(f"{what}: the identity of {topic.last_name} may not write there; it needs {role}")
    return faults


def seconds(duration: str) -> float:
    """Return the seconds of an ISO 8601 duration of hours, minutes and seconds."""
    match = DURATION.fullmatch(duration)
    if not match:
        raise BicepError(f"{duration!r} is not a duration such as PT2M")
    hours, minutes, rest = (float(number or 0) for number in match.groups())
    return hours * 3600 + minutes * 60 + rest


def identity(deployment: Deployment, name_begins: str) -> Resource:
    """Return the user-assigned identity whose name begins with `name_begins`."""
    kind = "Microsoft.ManagedIdentity/userAssignedIdentities"
    found = [one for one in deployment.of(kind) if one.name.startswith(name_begins)]
    if len(found) != 1:
        raise BicepError(f"expected one identity {name_begins}..., there are {len(found)}")
    return found[0]


def principal(deployment: Deployment, who: Resource) -> str:
    value: Any = deployment.runtime(who, ("properties", "principalId"))
    return str(value)
