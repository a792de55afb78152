"""The settings for the app's indexing by the host, without building the full Settings record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "trainers"
EVERY_5_MINUTES = "0 */5 * * * *"
EVERY_5_MINUTES_LATER = "30 */5 * * * *"  # half a minute after the other timer

EARLIER_NAMES = {
    "TRAINYARD_SCALING_SCHEDULE": "TRAINYARD_SWEEP_SCHEDULE",
    "TRAINYARD_SCALING_DRY_RUN": "TRAINYARD_SWEEP_DRY_RUN",
}


def setting_name(env: Mapping[str, str], name: str) -> str:
    """Return the name under which this setting is set: its earlier name, if only the earlier name has a value."""
    earlier = EARLIER_NAMES[name]
    return earlier if env.get(earlier) and not env.get(name) else name


def reconcile_schedule(env: Mapping[str, str]) -> str:
    return env.get("TRAINYARD_RECONCILE_SCHEDULE") or EVERY_5_MINUTES


def retention_schedule(env: Mapping[str, str]) -> str:
    return env.get("TRAINYARD_RETENTION_SCHEDULE") or "0 40 3 * * *"


def scaling_schedule(env: Mapping[str, str]) -> str:
    return env.get(setting_name(env, "TRAINYARD_SCALING_SCHEDULE")) or EVERY_5_MINUTES_LATER


def asks_entra(env: Mapping[str, str]) -> bool:
    """Return whether roles in Entra ID, instead of the host's keys, decide who may call the API."""
    return env.get("TRAINYARD_AUTH") == "entra"


def app_service_signs_in(env: Mapping[str, str]) -> bool:
    """Return whether App Service authentication protects the app. Only App Service itself can set this variable."""
    return env.get("WEBSITE_AUTH_ENABLED", "").lower() == "true"


def routes_file(env: Mapping[str, str]) -> Path:
    return Path(env.get("TRAINYARD_ROUTES") or ROOT / "routes.yaml")


def money_file(env: Mapping[str, str]) -> Path:
    return Path(env.get("TRAINYARD_MONEY") or ROOT / "money.yaml")
