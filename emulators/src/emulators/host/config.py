"""The host's configuration: its own configuration file, the app's host.json, and settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from emulators.host import timespan
from emulators.host.errors import Refused
from emulators.host.exporting import Logging

BACKENDS = ("direct", "runtime")
HOST_ID = "AzureFunctionsWebHost__hostid"  # the variable with the id of Azure's host
# Sections of host.json that are honoured, without a meaning on one machine, or for triggers that this host refuses.
IGNORED = {
    "version",
    "functionTimeout",
    "extensions",
    "logging",
    "extensionBundle",
    "telemetryMode",
    "watchDirectories",
}

QUEUE_KEYS = {
    "batchSize",
    "newBatchThreshold",
    "maxPollingInterval",
    "visibilityTimeout",
    "maxDequeueCount",
    "messageEncoding",
}
HONOURED_EXTENSIONS = {"extensions.http", "extensions.queues"}


@dataclass(frozen=True)
class Keys:
    """The host's keys. `repr` shows no key."""

    master: str = field(default="", repr=False)
    function: str = field(default="", repr=False)
    eventgrid_extension: str = field(default="", repr=False)


@dataclass(frozen=True)
class Config:
    """The configuration file of the part. With port 0 the system chooses a port.

    A killed host's messages are seen again after `invisibility_seconds`, and its timers after up to twice
    `lock_seconds`: the defaults are Azure's.
    """

    app: Path
    host: str = "127.0.0.1"
    port: int = 0
    require_keys: bool = False
    keys: Keys = field(default_factory=Keys)
    host_id: str = "azure-emulators"
    backend: str = "direct"
    invisibility_seconds: int = 600
    lock_seconds: int = 60
    drain_seconds: float = 10.0

    @classmethod
    def read(cls, path: Path) -> Config:
        """Read the host's configuration file. Raises Refused, with the key and the value, for an invalid file."""
        values = _json_object(path)
        unknown = sorted(set(values) - set(cls.__dataclass_fields__))
        if unknown or "app" not in values:
            raise Refused(f"{path}: unknown keys {unknown}" if unknown else f"{path}: the key app is missing")
        keys = Keys(**{k: v for k, v in (values.get("keys") or {}).items() if k in Keys.__dataclass_fields__})
        config = cls(**{**values, "app": Path(values["app"]).resolve(), "keys": keys})
        config._check()
        return config

    @classmethod
    def of_app(cls, app: Path, port: int) -> Config:
        """Return the default configuration for an app. The host's id is read from where Azure's host reads it.
        Raises Refused."""
        config = cls(app.resolve(), port=port, host_id=os.environ.get(HOST_ID) or cls.host_id)
        config._check()
        return config

    def _check(self) -> None:
        if self.backend not in BACKENDS:
            raise Refused(f"backend={self.backend!r} is unknown; choose one of {', '.join(BACKENDS)}")
        if not (self.app / "function_app.py").is_file():
            raise Refused(f"app={str(self.app)!r} holds no function_app.py")
        if self.require_keys and not (self.keys.master and self.keys.function and self.keys.eventgrid_extension):
            raise Refused("require_keys=true needs keys.master, keys.function and keys.eventgrid_extension")
        if not 2 <= self.invisibility_seconds <= 604800:
            raise Refused(f"invisibility_seconds={self.invisibility_seconds} is not between 2 and 604800 (seven days)")
        if not 15 <= self.lock_seconds <= 60:
            raise Refused(f"lock_seconds={self.lock_seconds} is not between 15 and 60, as storage has its leases")


@dataclass(frozen=True)
class QueueOptions:
    """host.json, extensions.queues. Times are in seconds."""

    batch_size: int = 16
    new_batch_threshold: int = 8
    max_polling_interval: float = 60.0
    visibility_timeout: int = 0
    max_dequeue_count: int = 5
    base64: bool = True


@dataclass(frozen=True)
class HostJson:
    """The supported settings of host.json. `ignored` names the other sections."""

    route_prefix: str = "api"
    function_timeout: float | None = 1800.0
    queues: QueueOptions = field(default_factory=QueueOptions)
    logging: Logging = field(default_factory=Logging)
    ignored: tuple[str, ...] = ()

    @classmethod
    def read(cls, app: Path) -> HostJson:
        """Read the app's host.json. Raises Refused if it is missing or invalid, with each wrong key and value."""
        path = app / "host.json"
        values = _overridden(_json_object(path), os.environ)
        if values.get("version") != "2.0":
            raise Refused(f'{path}: version={values.get("version")!r} must be "2.0"')
        extensions = values.get("extensions") or {}
        try:
            return cls(
                route_prefix=str((extensions.get("http") or {}).get("routePrefix", "api")).strip("/"),
                function_timeout=_function_timeout(values.get("functionTimeout", "00:30:00")),
                queues=_queue_options(extensions.get("queues") or {}),
                logging=Logging.read(values),
                ignored=tuple(
                    sorted({*values, *(f"extensions.{name}" for name in extensions)} - IGNORED - HONOURED_EXTENSIONS)
                ),
            )
        except ValueError as exc:
            raise Refused(f"{path}: {exc}") from exc


OVERRIDE = "AzureFunctionsJobHost__"


def _overridden(values: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return host.json with the overrides in the settings, such as
    AzureFunctionsJobHost__extensions__queues__batchSize=1."""
    for name in sorted(name for name in env if name.startswith(OVERRIDE)):
        *sections, key = name.removeprefix(OVERRIDE).split("__")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = int(env[name]) if env[name].isdigit() else env[name]
    return values


def _function_timeout(text: Any) -> float | None:
    if text is None or str(text) == "-1":  # unbounded, as on a dedicated plan
        return None
    return timespan.parse(str(text)).total_seconds()


def _queue_options(values: Mapping[str, Any]) -> QueueOptions:
    if unknown := sorted(set(values) - QUEUE_KEYS):
        raise ValueError(f"extensions.queues has unknown keys {unknown}")
    batch = _number(values, "batchSize", 16, range(1, 33))
    encoding = str(values.get("messageEncoding", "base64")).lower()
    if encoding not in ("base64", "none"):
        raise ValueError(f"extensions.queues.messageEncoding={encoding!r} must be base64 or none")
    polling = _duration(values, "maxPollingInterval", timedelta(minutes=1))
    if polling < timedelta(milliseconds=100):
        raise ValueError(f"extensions.queues.maxPollingInterval={polling} must be at least 100 ms")
    return QueueOptions(
        batch_size=batch,
        new_batch_threshold=_number(values, "newBatchThreshold", batch // 2 * (os.cpu_count() or 1), range(10_001)),
        max_polling_interval=polling.total_seconds(),
        visibility_timeout=int(_duration(values, "visibilityTimeout", timedelta()).total_seconds()),
        max_dequeue_count=_number(values, "maxDequeueCount", 5, range(1, 10_001)),
        base64=encoding == "base64",
    )


def _number(values: Mapping[str, Any], name: str, default: int, allowed: range) -> int:
    value = values.get(name, default)
    if type(value) is not int or value not in allowed:
        raise ValueError(f"extensions.queues.{name}={value!r} must be a number from {allowed[0]} to {allowed[-1]}")
    return value


def _duration(values: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    if name not in values:
        return default
    try:
        return timespan.parse(str(values[name]))
    except ValueError as exc:
        raise ValueError(f"extensions.queues.{name}: {exc}") from exc


def load_local_settings(app: Path) -> None:
    """Add `Values` of the app's local.settings.json, if present, to the environment. Existing variables are kept."""
    path = app / "local.settings.json"
    if path.exists():
        for name, value in (_json_object(path).get("Values") or {}).items():
            os.environ.setdefault(name, str(value))


def _json_object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as exc:
        raise Refused(f"{path} cannot be read as JSON: {exc}") from exc
    if not isinstance(values, dict):
        raise Refused(f"{path} must hold a JSON object")
    return values
