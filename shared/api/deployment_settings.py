"""The settings of this deployment, as an administrator sees them: the value in use, and whether it was set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct, to_builtins

from shared.kernel import index_settings
from shared.kernel.encode import Json
from shared.kernel.settings import SECRET_SETTINGS, SETTINGS, Rules
from shared.ports import AllPorts


class SettingAnswer(Struct):
    name: str
    about: str
    value: Annotated[str, Meta(description="The value in use; '' for a secret, and if there is none.")]
    is_set: Annotated[bool, Meta(description="Whether the deployment sets it; otherwise `value` is the default.")]
    secret: bool


def get_settings(ports: AllPorts) -> Annotated[list[Json], list[SettingAnswer]]:
    """Return every setting in the order of docs/settings.md. Values of secrets are never read."""
    return [to_builtins(each) for each in shown_settings(ports.given_settings)]


def shown_settings(given: Mapping[str, str]) -> list[SettingAnswer]:
    """Return the settings with the value in use. `given` has the settings that the deployment sets."""
    defaults = _defaults(given)
    found = []
    for name, about in SETTINGS.items():
        set_as = index_settings.setting_name(given, name) if name in index_settings.EARLIER_NAMES else name
        value = _without_secrets(given.get(set_as, "")) or defaults.get(name, "")
        secret = name in SECRET_SETTINGS
        found.append(SettingAnswer(name, about, "" if secret else value, set_as in given, secret))
    return found


def _defaults(given: Mapping[str, str]) -> dict[str, str]:
    rules = Rules()
    return {
        "TRAINYARD_ROUTES": str(index_settings.routes_file(given)),
        "TRAINYARD_MONEY": str(index_settings.money_file(given)),
        "TRAINYARD_RECONCILE_SCHEDULE": index_settings.reconcile_schedule(given),
        "TRAINYARD_SCALING_SCHEDULE": index_settings.scaling_schedule(given),
        "TRAINYARD_RETENTION_SCHEDULE": index_settings.retention_schedule(given),
        "TRAINYARD_NOTICES_TO": "public",
        "TRAINYARD_SCALING_DRY_RUN": str(rules.dry_run).lower(),
        "TRAINYARD_CANCEL_IDLE_GPUS": str(rules.cancel_idle_gpus).lower(),
        "TRAINYARD_IDLE_GPU_PERCENT": f"{rules.idle_gpu_percent:g}",
        "TRAINYARD_IDLE_GPU_MINUTES": f"{rules.idle_gpus_after.total_seconds() / 60:g}",
        "TRAINYARD_LEASE_MAX_HOURS": f"{rules.longest_lease.total_seconds() / 3600:g}",
        "TRAINYARD_AUTH": "keys",
    }


def _without_secrets(value: str) -> str:
    """Return an address without user, password, query and fragment; any other value unchanged."""
    if "://" not in value:
        return value
    parts = urlsplit(value)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
