"""The app's settings, read once from a mapping (os.environ in production) and frozen.

The storage settings have the Functions host's own names, so that triggers and code always use the same account.
docs/settings.md lists every setting; a test compares that page with SETTINGS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.kernel.errors import BadSetting
from shared.kernel.index_settings import EARLIER_NAMES, ROOT, money_file, routes_file, setting_name

SETTINGS = {
    "AzureWebJobsStorage": "Connection string of the storage account (laptop only)",
    "AzureWebJobsStorage__accountName": "Name of the storage account, reached with the app's identity",
    "AzureWebJobsStorage__blobServiceUri": "Address of its blob service instead; works in every cloud",
    "AzureWebJobsStorage__queueServiceUri": "Address of its queue service, beside the blob service's",
    "AzureWebJobsStorage__tableServiceUri": "Address of its table service, beside the blob service's",
    "AML_SUBSCRIPTION_ID": "Subscription of the Azure ML workspace",
    "AML_RESOURCE_GROUP": "Resource group of the Azure ML workspace",
    "AML_WORKSPACE": "Name of the Azure ML workspace",
    "AML_CLIENT_KWARGS": "JSON object of further arguments for MLClient, such as another cloud's endpoints",
    "TRAINYARD_ROUTES": "Path of the routes file; default routes.yaml beside function_app.py",
    "TRAINYARD_MONEY": "Path of the money file; default money.yaml beside function_app.py",
    "TRAINYARD_REGION": "Azure region of the clusters, for their prices, where the money file names none",
    "TRAINYARD_PRICES_URL": "Address of Azure's retail prices API; without it prices are not refreshed",
    "TRAINYARD_RENDEZVOUS": "Address of the table service for the nodes of elastic runs; default: the account's",
    "TRAINYARD_TOPIC_ENDPOINT": "Endpoint of the Event Grid topic for the lifecycle events; without it none are sent",
    "TRAINYARD_TOPIC_KEY": "Access key of that topic; without it the app's identity is used",
    "TRAINYARD_RECONCILE_SCHEDULE": "NCRONTAB schedule of the reconcile timer; default every 5 minutes",
    "TRAINYARD_SCALING_SCHEDULE": "NCRONTAB schedule of the timer that scales clusters; default every 5 minutes",
    "TRAINYARD_RETENTION_SCHEDULE": "NCRONTAB schedule of the retention timer; default each day at 3:40",
    "TRAINYARD_SMTP_URL": "Mail server for notices, smtps://user:password@host or smtp://host; default none",
    "TRAINYARD_MAIL_FROM": "Sender of those mails",
    "TRAINYARD_ALLOW": "Parts allowed in jobs without a route, beside the routes file's: services,identity",
    "TRAINYARD_NOTICES_TO": "Where notices may go: public (default), or anywhere, for http and addresses inside too",
    "AZURE_BATCHAI_STORAGE_ACCOUNT": "Value for <AZURE_BATCHAI_STORAGE_ACCOUNT> in Batch AI documents; default the "
    "app's",
    "TRAINYARD_SCALING_DRY_RUN": "true: Trainyard decides and records the scaling of clusters, but does not scale; "
    "default false",
    "TRAINYARD_STOP_INSTANCES_HOURS": "Stop compute instances that have been on for so many hours; default never",
    "TRAINYARD_CANCEL_IDLE_GPUS": "true: cancel runs whose GPUs are idle; default false: only report them",
    "TRAINYARD_IDLE_GPU_PERCENT": "GPUs are idle while they are busy for less of the time, in percent; default 5",
    "TRAINYARD_IDLE_GPU_MINUTES": "How long GPUs must be idle, in minutes, at least 5; default 15",
    "TRAINYARD_SIGNING_KEY": "The key that signs models: a PEM file, or https://<vault>/keys/<name> in Key Vault",
    "TRAINYARD_LEASE_MAX_HOURS": "Longest time that a lease may hold nodes, with its extensions; default 12",
    "TRAINYARD_AUTH": "Who may call the HTTP API: keys (default) or entra, for roles of Entra ID",
}

SECRET_SETTINGS = frozenset(  # their values never leave the process
    {
        "AzureWebJobsStorage",
        "AML_CLIENT_KWARGS",
        "TRAINYARD_TOPIC_KEY",
        "TRAINYARD_SMTP_URL",
        "TRAINYARD_SIGNING_KEY",
    }
)
STORAGE_SERVICES = ("blob", "queue", "table")
STORAGE_WAYS = (
    "AzureWebJobsStorage",
    "AzureWebJobsStorage__accountName",
    "the three AzureWebJobsStorage__...ServiceUri",
)


@dataclass(frozen=True)
class Storage:
    """How to reach the storage account: by connection string, or by its services' addresses with the app's identity."""

    blob: str = ""
    queue: str = ""
    table: str = ""
    connection_string: str = field(default="", repr=False)

    @classmethod
    def of_account(cls, name: str) -> Storage:
        """Return the services' addresses of the account with this name in the public cloud."""
        return cls(*(f"https://{name}.{service}.core.windows.net" for service in STORAGE_SERVICES))


@dataclass(frozen=True)
class Workspace:
    subscription_id: str
    resource_group: str
    name: str
    client_kwargs: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class EventTopic:
    endpoint: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True)
class Mail:
    """The mail server, as smtps://user:password@host:port or smtp://host:port, and the sender's address."""

    url: str = field(repr=False)
    sender: str


@dataclass(frozen=True)
class Rules:
    """An administrator's settings for the scaling of clusters. If `stop_instances_after` is None, long-running
    instances are only reported.
    """

    dry_run: bool = False
    stop_instances_after: timedelta | None = None
    cancel_idle_gpus: bool = False
    idle_gpu_percent: float = 5.0
    idle_gpus_after: timedelta = timedelta(minutes=15)
    longest_lease: timedelta = timedelta(hours=12)


@dataclass(frozen=True)
class Settings:
    storage: Storage
    workspace: Workspace
    routes_file: Path
    topic: EventTopic | None
    mail: Mail | None = None
    notices_inside: bool = False
    batchai_account: str = ""
    rendezvous: str = ""
    rules: Rules = Rules()
    money_file: Path = ROOT / "money.yaml"
    region: str = ""
    prices_url: str = ""
    signing_key: str = ""
    allow: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)  # the settings that are set, without the values of secrets

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read every setting. Raises BadSetting with the name of the first missing or invalid setting."""
        endpoint = _https(env, "TRAINYARD_TOPIC_ENDPOINT")
        if (auth := env.get("TRAINYARD_AUTH") or "keys") not in ("keys", "entra"):
            raise BadSetting(f"TRAINYARD_AUTH has value {auth!r}. Choose keys or entra.")
        prices_url = env.get("TRAINYARD_PRICES_URL", "")
        if prices_url and not prices_url.startswith("https://"):
            raise BadSetting(f"TRAINYARD_PRICES_URL has value {prices_url!r}. It must begin with https://.")
        return cls(
            storage=_storage(env),
            workspace=Workspace(
                _required(env, "AML_SUBSCRIPTION_ID"),
                _required(env, "AML_RESOURCE_GROUP"),
                _required(env, "AML_WORKSPACE"),
                _json_object(env, "AML_CLIENT_KWARGS"),
            ),
            routes_file=routes_file(env),
            rendezvous=_https(env, "TRAINYARD_RENDEZVOUS"),
            topic=EventTopic(endpoint, env.get("TRAINYARD_TOPIC_KEY", "")) if endpoint else None,
            mail=_mail(env),
            notices_inside=_notices_inside(env),
            batchai_account=env.get("AZURE_BATCHAI_STORAGE_ACCOUNT", ""),
            rules=_rules(env),
            money_file=money_file(env),
            region=env.get("TRAINYARD_REGION", ""),
            prices_url=prices_url,
            signing_key=env.get("TRAINYARD_SIGNING_KEY", ""),
            given=_given(env),
            allow=tuple(filter(None, map(str.strip, env.get("TRAINYARD_ALLOW", "").split(",")))),
        )


MOST_HOURS = 24 * 31


def _given(env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that have a value, under the name by which they are set; '' in place of a secret."""
    names = (*SETTINGS, *EARLIER_NAMES.values())
    return {name: "" if name in SECRET_SETTINGS else env[name] for name in names if env.get(name)}


def blob_endpoint(env: Mapping[str, str]) -> str:
    """Return the address of the account's blob service, which browsers use, too. Raises BadSetting."""
    storage = _storage(env)
    parts = dict(part.split("=", 1) for part in storage.connection_string.split(";") if "=" in part)
    protocol, suffix = parts.get("DefaultEndpointsProtocol", "https"), parts.get("EndpointSuffix", "core.windows.net")
    return storage.blob or parts.get("BlobEndpoint") or f"{protocol}://{parts.get('AccountName', '')}.blob.{suffix}"


def _rules(env: Mapping[str, str]) -> Rules:
    stop = _hours(env, "TRAINYARD_STOP_INSTANCES_HOURS", 0.0)
    return Rules(
        dry_run=_flag(env, setting_name(env, "TRAINYARD_SCALING_DRY_RUN")),
        stop_instances_after=stop or None,
        cancel_idle_gpus=_flag(env, "TRAINYARD_CANCEL_IDLE_GPUS"),
        idle_gpu_percent=_number(env, "TRAINYARD_IDLE_GPU_PERCENT", 5, (0, 100)),
        idle_gpus_after=timedelta(minutes=_number(env, "TRAINYARD_IDLE_GPU_MINUTES", 15, (5, 24 * 60))),
        longest_lease=_hours(env, "TRAINYARD_LEASE_MAX_HOURS", 12.0),
    )


def _flag(env: Mapping[str, str], key: str) -> bool:
    if (value := env.get(key) or "false") not in ("true", "false"):
        raise BadSetting(f"{key} has value {value!r}. Choose true or false.")
    return value == "true"


def _number(env: Mapping[str, str], key: str, default: float, limits: tuple[float, float]) -> float:
    text = env.get(key) or str(default)
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", text) or not limits[0] <= float(text) <= limits[1]:
        raise BadSetting(f"{key} has value {text!r}. Give a number from {limits[0]} to {limits[1]}.")
    return float(text)


def _hours(env: Mapping[str, str], key: str, default: float) -> timedelta:
    text = env.get(key) or str(default)
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,4})?", text) or float(text) > MOST_HOURS:
        raise BadSetting(f"{key} has value {text!r}. Give hours from 0 to {MOST_HOURS}.")
    return timedelta(hours=float(text))


def _storage(env: Mapping[str, str]) -> Storage:
    uris = {key: env.get(key, "") for key in (f"AzureWebJobsStorage__{name}ServiceUri" for name in STORAGE_SERVICES)}
    connection, account = env.get("AzureWebJobsStorage", ""), env.get("AzureWebJobsStorage__accountName", "")
    ways = [way for way, there in zip(STORAGE_WAYS, (connection, account, any(uris.values())), strict=True) if there]
    if len(ways) != 1:
        ways_set = f"{' and '.join(ways)} are set" if ways else "none is set"
        raise BadSetting(f"Set one of {', '.join(STORAGE_WAYS[:-1])} and {STORAGE_WAYS[-1]}; {ways_set}.")
    if connection:
        return Storage(connection_string=connection)
    if account:
        return Storage.of_account(account)
    for key, uri in uris.items():
        if not uri.startswith("https://"):
            raise BadSetting(
                f"{key} has value {uri!r}. It must begin with https://, like the addresses of the other two services."
            )
    return Storage(*(uri.rstrip("/") for uri in uris.values()))


def _mail(env: Mapping[str, str]) -> Mail | None:
    url, sender = env.get("TRAINYARD_SMTP_URL", ""), env.get("TRAINYARD_MAIL_FROM", "")
    if not url:
        return None
    try:
        parts = urlsplit(url)
        is_smtp_address = parts.scheme in ("smtp", "smtps") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_smtp_address = False
    if not is_smtp_address:
        raise BadSetting("TRAINYARD_SMTP_URL must be smtps://user:password@host:port or smtp://host:port.")
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", sender):
        raise BadSetting(
            f"TRAINYARD_MAIL_FROM has value {sender!r}. Mails need a sender such as trainyard@example.org."
        )
    return Mail(url, sender)


def _notices_inside(env: Mapping[str, str]) -> bool:
    if (to := env.get("TRAINYARD_NOTICES_TO") or "public") not in ("public", "anywhere"):
        raise BadSetting(f"TRAINYARD_NOTICES_TO has value {to!r}. Choose public or anywhere.")
    return to == "anywhere"


def _required(env: Mapping[str, str], key: str) -> str:
    if not (value := env.get(key, "")):
        raise BadSetting(f"{key} is not set. It is: {SETTINGS[key]}.")
    return value


def _https(env: Mapping[str, str], key: str) -> str:
    value = env.get(key, "")
    if value and not value.startswith("https://"):
        raise BadSetting(f"{key} has value {value!r}. It must begin with https://.")
    return value


def _json_object(env: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        value = json.loads(env.get(key) or "{}")
    except json.JSONDecodeError as exc:
        raise BadSetting(f"{key} is not JSON: {exc}.") from exc
    if not isinstance(value, dict):
        raise BadSetting(f"{key} must be a JSON object, it is a {type(value).__name__}.")
    return value
