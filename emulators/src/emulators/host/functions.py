"""The app's functions as checked values: bindings are read, settings are resolved, and unsupported features are
refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from emulators.host.config import HostJson
from emulators.host.errors import Refused
from emulators.host.http import routing
from emulators.host.timers import schedule
from emulators.host.worker.backend import Indexed, RetryPolicy

STORAGE = "AzureWebJobsStorage"
AUTH_LEVELS = ("anonymous", "function", "admin")
FUNCTION_NAME = re.compile(r"[a-z][a-z0-9_-]{0,127}", re.IGNORECASE)
QUEUE_NAME = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
SETTING = re.compile(r"%([^%]+)%")


@dataclass(frozen=True)
class HttpTrigger:
    parameter: str
    route: routing.Template
    methods: frozenset[str] | None
    auth_level: str


@dataclass(frozen=True)
class QueueTrigger:
    parameter: str
    queue: str
    connection: str = field(repr=False)


@dataclass(frozen=True)
class TimerTrigger:
    """A `monitored` timer keeps its status in a blob, so a past-due firing is known."""

    parameter: str
    schedule: schedule.Schedule
    run_on_startup: bool
    monitored: bool


@dataclass(frozen=True)
class EventGridTrigger:
    parameter: str


Trigger = HttpTrigger | QueueTrigger | TimerTrigger | EventGridTrigger


@dataclass(frozen=True)
class QueueOutput:
    """`parameter` is `$return` for the function's return value."""

    parameter: str
    queue: str
    connection: str = field(repr=False)


@dataclass(frozen=True)
class Function:
    name: str
    trigger: Trigger
    outputs: tuple[QueueOutput, ...] = ()
    retry: RetryPolicy | None = None


def read(indexed: Sequence[Indexed], host_json: HostJson, settings: Mapping[str, str]) -> list[Function]:
    """Check every function and return the enabled functions. In Flex Consumption, return only the functions of this
    host's group.

    Raises Refused with one line for each problem, which names the function and the value.
    """
    functions, problems = [], list(_name_problems(indexed))
    for function in indexed:
        if _disabled(function.name, settings):
            continue
        try:
            functions.append(_Reader(function, host_json, settings).read())
        except ValueError as exc:
            problems.append(f"function {function.name}: {exc}")
    problems += _route_problems(functions)
    if problems:
        raise Refused(problems)
    return [function for function in functions if _in_group(function, settings)]


def connection_string(name: str | None, settings: Mapping[str, str]) -> str:
    """Return the connection string for a binding's `connection`. Raises ValueError if the setting is missing, or if
    the connection is identity-based."""
    name = name or STORAGE
    for key in (f"AzureWebJobs{name}", name):
        if value := settings.get(key):
            return value
    if identity := sorted(key for key in settings if key.startswith(f"{name}__")):
        raise ValueError(f"connection {name!r} is an identity-based one ({identity[0]}); here it must be a string")
    raise ValueError(f"connection {name!r} is not set: there is no setting {name}")


def _in_group(function: Function, settings: Mapping[str, str]) -> bool:
    """Return whether this host runs the function. In Flex Consumption, a host runs either all HTTP functions or one
    function of another kind."""
    group = settings.get("FUNCTIONS_TARGET_GROUP", "")
    if settings.get("WEBSITE_SKU") != "FlexConsumption" or not group:
        return True
    if isinstance(function.trigger, HttpTrigger | EventGridTrigger):
        return group == "http"
    return group.lower() == f"function:{function.name}".lower()


def _disabled(name: str, settings: Mapping[str, str]) -> bool:
    values = (settings.get(f"AzureWebJobs.{name}.Disabled"), settings.get(f"AzureWebJobs__{name}__Disabled"))
    return any((value or "").lower() in ("1", "true") for value in values)


def _name_problems(indexed: Sequence[Indexed]) -> Iterator[str]:
    seen: set[str] = set()
    for function in indexed:
        name = function.name
        if not FUNCTION_NAME.fullmatch(name) or name.lower() == "host":
            yield f"function {name}: the name must be a letter and up to 127 letters, digits, - or _, and not 'host'"
        if name.lower() in seen:
            yield f"function {name}: another function has this name (case does not count)"
        seen.add(name.lower())


def _route_problems(functions: Sequence[Function]) -> Iterator[str]:
    routes = [
        routing.Route(f.trigger.route, f.trigger.methods, f.name)
        for f in functions
        if isinstance(f.trigger, HttpTrigger)
    ]
    for one, other in combinations(routes, 2):
        if one.overlaps(other):
            yield f"function {other.target}: route {other.template.text!r} is that of function {one.target}"


class _Reader:
    """Reads one function's bindings. Every error is a ValueError with the name of the wrong value."""

    def __init__(self, function: Indexed, host_json: HostJson, settings: Mapping[str, str]) -> None:
        self._function = function
        self._prefix = host_json.route_prefix
        self._settings = settings

    def read(self) -> Function:
        bindings = [self._resolved(json.loads(text)) for text in self._function.raw_bindings]
        triggers = [binding for binding in bindings if str(binding["type"]).lower().endswith("trigger")]
        if len(triggers) != 1:
            raise ValueError(f"it has {len(triggers)} triggers; exactly one is needed")
        readers: dict[str, Callable[[Mapping[str, Any]], Trigger]] = {
            "httpTrigger": self._http,
            "queueTrigger": self._queue,
            "timerTrigger": self._timer,
            "eventGridTrigger": self._event_grid,
        }
        kind = triggers[0]["type"]
        if kind not in readers:
            raise ValueError(f"trigger type {kind!r} is not supported here; there are: {', '.join(readers)}")
        trigger = readers[kind](triggers[0])
        others = [binding for binding in bindings if binding is not triggers[0]]
        outputs = tuple(out for binding in others if (out := self._output(binding, trigger)))
        return Function(self._function.name, trigger, outputs, self._retry(trigger))

    def _resolved(self, binding: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._setting(key, value) if isinstance(value, str) else value for key, value in binding.items()}

    def _setting(self, key: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in self._settings:
                raise ValueError(f"{key}={text!r} needs the setting {match[1]}, which is not set")
            return self._settings[match[1]]

        return SETTING.sub(value, text)

    def _http(self, binding: Mapping[str, Any]) -> HttpTrigger:
        route = binding.get("route")
        route = self._function.name if route is None else str(route)
        if route.strip("/").lower().startswith(("admin", "runtime")):
            raise ValueError(f"route {route!r} begins with admin or runtime, which the host keeps for itself")
        level = str(binding.get("authLevel") or "function").lower()
        if level not in AUTH_LEVELS:
            raise ValueError(f"authLevel {level!r} is unknown; there are: {', '.join(AUTH_LEVELS)}")
        methods = frozenset(str(method).upper() for method in binding.get("methods") or ())
        return HttpTrigger(str(binding["name"]), routing.parse(route, self._prefix), methods or None, level)

    def _queue(self, binding: Mapping[str, Any]) -> QueueTrigger:
        return QueueTrigger(str(binding["name"]), *self._queue_and_connection(binding))

    def _queue_and_connection(self, binding: Mapping[str, Any]) -> tuple[str, str]:
        name = str(binding.get("queueName") or "")
        if not QUEUE_NAME.fullmatch(name):
            raise ValueError(
                f"queueName {name!r} is not a queue name: 3 to 63 lower-case letters, digits and single hyphens"
            )
        return name, connection_string(binding.get("connection"), self._settings)

    def _timer(self, binding: Mapping[str, Any]) -> TimerTrigger:
        text = str(binding.get("schedule") or "")
        try:
            timetable = schedule.parse(text)
            timetable.next(datetime.now(UTC))
        except ValueError as exc:
            raise ValueError(f"schedule {text!r}: {exc}") from exc
        if self._settings.get("WEBSITE_TIME_ZONE", "UTC") not in ("UTC", "Etc/UTC"):
            raise ValueError(f"WEBSITE_TIME_ZONE={self._settings['WEBSITE_TIME_ZONE']!r}: timers run in UTC only here")
        connection_string(STORAGE, self._settings)
        monitored = timetable.monitored and binding.get("useMonitor") is not False
        return TimerTrigger(str(binding["name"]), timetable, binding.get("runOnStartup") is True, monitored)

    def _event_grid(self, binding: Mapping[str, Any]) -> EventGridTrigger:
        return EventGridTrigger(str(binding["name"]))

    def _output(self, binding: Mapping[str, Any], trigger: Trigger) -> QueueOutput | None:
        kind, name, is_out = binding["type"], str(binding["name"]), str(binding["direction"]).upper() == "OUT"
        if is_out and kind == "http" and name == "$return" and isinstance(trigger, HttpTrigger):
            return None  # the HTTP front writes it
        if is_out and kind == "queue":
            return QueueOutput(name, *self._queue_and_connection(binding))
        direction = "output" if is_out else "input"
        raise ValueError(f"{direction} binding {name!r} of type {kind!r} is not supported here; queue outputs are")

    def _retry(self, trigger: Trigger) -> RetryPolicy | None:
        retry = self._function.retry
        if retry is None:
            return None
        if not isinstance(trigger, TimerTrigger):
            raise ValueError(
                f"retry={retry.strategy!r} on a {type(trigger).__name__}: only timers are retried by the host"
            )
        if retry.strategy not in ("fixed_delay", "exponential_backoff") or retry.max_count < -1:
            raise ValueError(f"retry strategy {retry.strategy!r} with max_retry_count={retry.max_count} is unknown")
        return retry
