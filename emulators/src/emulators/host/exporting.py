"""What the host itself exports to Application Insights, as Microsoft's host does (the public source, October 2024).

In the classic mode the host exports one request for each invocation (category `Host.Results`), traces of the invocation
and of the app's log records (`Function.<name>`, `Function.<name>.User`) if `logLevel` of host.json lets them pass, and
one dependency for each of its own storage requests, unless `enableDependencyTracking` is false.

With `telemetryMode` OpenTelemetry, the host exports one request for each invocation and the HTTP span of each storage
request. The SDK's own span is added unless AZURE_TRACING_DISABLED is true. `logLevel` has no effect.

Not exported here: performance counters, Live Metrics, the traces of the host's own start (category `Host.*`, below
Warning), and the 1,200 records a minute that the OpenTelemetry mode exports while no worker announces its own
OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

CONNECTION_STRING = "APPLICATIONINSIGHTS_CONNECTION_STRING"
DEFAULT_ENDPOINT = "https://dc.services.visualstudio.com/"
FLUSH_SECONDS = 2.0
LEVELS = ("Trace", "Debug", "Information", "Warning", "Error", "Critical", "None")
INFORMATION, ERROR = 2, 4
SEVERITY = {0: "Verbose", 1: "Verbose", 2: "Information", 3: "Warning", 4: "Error", 5: "Critical"}

log = logging.getLogger("host.exporting")

Json = dict[str, Any]


@dataclass(frozen=True)
class Logging:
    """The export settings in host.json. `levels` are by category, in lower case."""

    open_telemetry: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)
    tracks_dependencies: bool = True

    @classmethod
    def read(cls, host_json: Mapping[str, Any]) -> Logging:
        """Read the logging settings of host.json. Raises ValueError for an unknown level."""
        section = host_json.get("logging") or {}
        levels = {name.lower(): _level(name, text) for name, text in (section.get("logLevel") or {}).items()}
        insights = section.get("applicationInsights") or {}
        mode = str(host_json.get("telemetryMode") or "").lower()
        return cls(mode == "opentelemetry", levels, insights.get("enableDependencyTracking") is not False)

    def lets_pass(self, category: str, level: int) -> bool:
        """Return whether a record passes: the level of the longest matching prefix in `levels`, or else the
        default, is at most this level."""
        parts = category.lower().split(".")
        prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        least = next((self.levels[prefix] for prefix in prefixes if prefix in self.levels), None)
        return level >= (self.levels.get("default", INFORMATION) if least is None else least)


def _level(name: str, text: Any) -> int:
    try:
        return [level.lower() for level in LEVELS].index(str(text).lower())
    except ValueError as exc:
        raise ValueError(f"logging.logLevel.{name}={text!r} is none of {', '.join(LEVELS)}") from exc


class Exporter:
    """Sends the host's telemetry every FLUSH_SECONDS. Without a connection string, it does nothing."""

    def __init__(self, rules: Logging, settings: Mapping[str, str]) -> None:
        self._rules = rules
        parts = dict(part.split("=", 1) for part in settings.get(CONNECTION_STRING, "").split(";") if "=" in part)
        self._key = parts.get("InstrumentationKey", "")
        self._url = f"{parts.get('IngestionEndpoint', DEFAULT_ENDPOINT).rstrip('/')}/v2/track"
        self._traces_sdk = settings.get("AZURE_TRACING_DISABLED", "").lower() != "true"
        self._waiting: list[Json] = []

    @property
    def is_on(self) -> bool:
        return bool(self._key)

    def invocation(self, function: str, number: str, milliseconds: float, error: str | None) -> None:
        """Queue the telemetry of an ended invocation."""
        level = ERROR if error else INFORMATION
        classic = not self._rules.open_telemetry
        if not classic or self._rules.lets_pass("Host.Results", level):
            duration = str(timedelta(milliseconds=milliseconds))
            code = "1" if error else "0"
            data = {"id": number[:16], "name": function, "duration": duration, "success": not error}
            self._add("Request", {**data, "responseCode": code, "properties": {"InvocationId": number}}, function)
        if classic:
            name = f"Functions.{function}"
            if not error:
                self._trace(f"Function.{function}", INFORMATION, f"Executing '{name}' (Id={number})", function)
            word = "Failed" if error else "Succeeded"
            text = f"Executed '{name}' ({word}, Id={number}, Duration={milliseconds:.0f}ms) {error or ''}"
            self._trace(f"Function.{function}", level, text, function)

    def record(self, function: str, level: int, message: str) -> None:
        """Queue the telemetry of an app's log record in an invocation. Only the classic mode exports log records of the
        app (decision 79).
        """
        if not self._rules.open_telemetry:
            self._trace(f"Function.{function}.User", level, message, function)

    def storage_request(self, name: str) -> None:
        """Queue the telemetry of one of the host's own requests to storage: a poll, or the renewal of a lock."""
        if self._rules.open_telemetry or self._rules.tracks_dependencies:
            for _ in range(2 if self._rules.open_telemetry and self._traces_sdk else 1):
                data = {"id": "0" * 16, "name": name, "duration": "00:00:00.001", "success": True, "type": "HTTP"}
                self._add("RemoteDependency", data)

    async def run(self) -> None:
        """Send queued telemetry every FLUSH_SECONDS, until cancelled."""
        while self.is_on:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Send queued telemetry. If sending fails, the telemetry is lost, and a warning is logged."""
        items, self._waiting = self._waiting, []
        if not items:
            return
        body = "\n".join(json.dumps(item, separators=(",", ":")) for item in items)
        try:
            async with aiohttp.ClientSession() as session, session.post(self._url, data=body.encode()) as answer:
                answer.raise_for_status()
        except (aiohttp.ClientError, TimeoutError) as exc:
            log.warning("%d telemetry items are lost: %s", len(items), exc)

    def _trace(self, category: str, level: int, message: str, operation: str) -> None:
        if self._rules.lets_pass(category, level):
            properties = {"Category": category, "LogLevel": LEVELS[level]}
            data = {"message": message, "severityLevel": SEVERITY[level], "properties": properties}
            self._add("Message", data, operation)

    def _add(self, kind: str, data: Json, operation: str = "") -> None:
        if self.is_on:
            self._waiting.append({
                "name": f"Microsoft.ApplicationInsights.{self._key.replace('-', '')}.{kind}",
                "time": datetime.now(UTC).isoformat(),
                "iKey": self._key,
                "tags": {"ai.operation.name": operation, "ai.cloud.roleInstance": "emulated-host"},
                "data": {"baseType": f"{kind}Data", "baseData": {"ver": 2, **data}},
            })  # fmt: skip


async def close(task: asyncio.Task[None], exporter: Exporter) -> None:
    """Stop the sending task, and send the rest."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await exporter.flush()
