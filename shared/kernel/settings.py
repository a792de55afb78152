"""The app's settings, read once from a mapping (os.environ in production) and frozen.

The names of the storage settings are the Functions host's own, so that triggers and code always mean the same account.
docs/settings.md lists every setting; a test holds it against SETTINGS.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.kernel.errors import BadSetting

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = {
    "AzureWebJobsStorage": "Connection string of the storage account (laptop only)",
    "AzureWebJobsStorage__accountName": "Name of the storage account, reached with the app's identity",
    "AML_SUBSCRIPTION_ID": "Subscription of the Azure ML workspace",
    "AML_RESOURCE_GROUP": "Resource group of the Azure ML workspace",
    "AML_WORKSPACE": "Name of the Azure ML workspace",
    "AML_CLIENT_KWARGS": "JSON object of further arguments for MLClient, such as another cloud's endpoints",
    "TRAINYARD_ROUTES": "Path of the routes file; default routes.yaml beside function_app.py",
    "TRAINYARD_TOPIC_ENDPOINT": "Endpoint of the Event Grid topic for the lifecycle events; without it none are sent",
    "TRAINYARD_TOPIC_KEY": "Access key of that topic; without it the app's identity is used",
    "TRAINYARD_RECONCILE_SCHEDULE": "NCRONTAB schedule of the reconcile timer; default every 5 minutes",
    "TRAINYARD_SWEEP_SCHEDULE": "NCRONTAB schedule of the sweep timer; default every 5 minutes",
    "AZURE_BATCHAI_STORAGE_ACCOUNT": "Fills <AZURE_BATCHAI_STORAGE_ACCOUNT> in Batch AI documents; default the app's",
    "TRAINYARD_AUTH": "Who may call the HTTP API: keys (default) or entra, for roles of Entra ID",
}


@dataclass(frozen=True)
class Storage:
    """How to reach the storage account: by connection string, or by account name with the app's identity."""

    account: str = ""
    connection_string: str = field(default="", repr=False)


@dataclass(frozen=True)
class Workspace:
    subscription_id: str
    resource_group: str
    name: str
    client_kwargs: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Topic:
    endpoint: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True)
class Settings:
    storage: Storage
    workspace: Workspace
    routes_file: Path
    topic: Topic | None
    batchai_account: str = ""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read all settings. Raises BadSetting naming the first one that is missing or makes no sense."""
        endpoint = env.get("TRAINYARD_TOPIC_ENDPOINT", "")
        if endpoint and not endpoint.startswith("https://"):
            raise BadSetting(f"TRAINYARD_TOPIC_ENDPOINT has value {endpoint!r}. It must begin with https://.")
        if (auth := env.get("TRAINYARD_AUTH") or "keys") not in ("keys", "entra"):
            raise BadSetting(f"TRAINYARD_AUTH has value {auth!r}. Choose keys or entra.")
        return cls(
            storage=_storage(env),
            workspace=Workspace(
                _required(env, "AML_SUBSCRIPTION_ID"),
                _required(env, "AML_RESOURCE_GROUP"),
                _required(env, "AML_WORKSPACE"),
                _json_object(env, "AML_CLIENT_KWARGS"),
            ),
            routes_file=routes_file(env),
            topic=Topic(endpoint, env.get("TRAINYARD_TOPIC_KEY", "")) if endpoint else None,
            batchai_account=env.get("AZURE_BATCHAI_STORAGE_ACCOUNT", ""),
        )


EVERY_5_MINUTES = "0 */5 * * * *"
EVERY_5_MINUTES_LATER = "30 */5 * * * *"  # half a minute after the other timer


def reconcile_schedule(env: Mapping[str, str]) -> str:
    return env.get("TRAINYARD_RECONCILE_SCHEDULE") or EVERY_5_MINUTES


def sweep_schedule(env: Mapping[str, str]) -> str:
    return env.get("TRAINYARD_SWEEP_SCHEDULE") or EVERY_5_MINUTES_LATER


def asks_entra(env: Mapping[str, str]) -> bool:
    """Whether roles of Entra ID decide who may call the API, and not the host's keys."""
    return env.get("TRAINYARD_AUTH") == "entra"


def app_service_signs_in(env: Mapping[str, str]) -> bool:
    """Whether App Service's authentication stands before the app. App Service itself sets this, and nobody else may."""
    return env.get("WEBSITE_AUTH_ENABLED", "").lower() == "true"


def routes_file(env: Mapping[str, str]) -> Path:
    return Path(env.get("TRAINYARD_ROUTES") or ROOT / "routes.yaml")


def _storage(env: Mapping[str, str]) -> Storage:
    connection, account = env.get("AzureWebJobsStorage", ""), env.get("AzureWebJobsStorage__accountName", "")
    if bool(connection) == bool(account):
        found = "both are set" if connection else "neither is set"
        raise BadSetting(f"Set one of AzureWebJobsStorage and AzureWebJobsStorage__accountName; {found}.")
    return Storage(account, connection)


def _required(env: Mapping[str, str], key: str) -> str:
    if not (value := env.get(key, "")):
        raise BadSetting(f"{key} is not set. It is: {SETTINGS[key]}.")
    return value


def _json_object(env: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        value = json.loads(env.get(key) or "{}")
    except json.JSONDecodeError as exc:
        raise BadSetting(f"{key} is not JSON: {exc}.") from exc
    if not isinstance(value, dict):
        raise BadSetting(f"{key} must be a JSON object, it is a {type(value).__name__}.")
    return value
