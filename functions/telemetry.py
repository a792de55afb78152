"""Spans, metrics and logs with OpenTelemetry, if a collector is configured. Otherwise nothing is imported.

In Azure they go to Application Insights (monitor.py); elsewhere to any OTLP endpoint
(OTEL_EXPORTER_OTLP_ENDPOINT, OpenTelemetry's own name).

Everything that happens to a run is one trace, across all queues: the trace id is a hash of the run's name. The same
holds for a drop; the span that submits the run of a drop links to the drop's trace.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from functions import monitor
from shared.kernel import measure
from shared.kernel.memory import Topic
from shared.kernel.turns import Turns
from shared.messages.declared import QUEUES

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from shared.system import System

OTLP = "OTEL_EXPORTER_OTLP_ENDPOINT"
NAME = "trainyard"
EXPORT_MILLISECONDS = 10_000
LOOKS_FOR_ALL = 6  # calls of measure_queues until every queue was polled

log = logging.getLogger(__name__)
TURNS = Topic[Turns]("turns of the measured queues")


@cache
def on() -> bool:
    """Return whether telemetry is collected. The first call configures telemetry, or logs the failure once."""
    if os.environ.get(OTLP):
        try:
            _export_otlp()
        except Exception as exc:  # noqa: BLE001 - no error here may fail a handler
            log.warning("%s is set, and nothing is sent: %s: %s", OTLP, type(exc).__name__, exc)
            return False
    elif monitor.wanted():
        monitor.start()
    else:
        return False
    measure.listen(_count, _level)
    return True


@contextmanager
def span(name: str, *, run: str = "", drop: str = "", follows: str = "") -> Iterator[None]:
    """A span in the trace of this run, or else of this drop, with a link to the trace of the drop that it `follows`.

    An exception is recorded and raised again.
    """
    if not on():
        yield
        return
    from opentelemetry import trace

    kind, value = ("run", run) if run else ("drop", drop)
    parent = trace.set_span_in_context(trace.NonRecordingSpan(_context(kind, value))) if value else None
    links = [trace.Link(_context("drop", follows))] if follows else []
    attributes = {f"{NAME}.{key}": text for key, text in (("run", run), ("drop", drop or follows)) if text}
    tracer = trace.get_tracer(NAME)
    with tracer.start_as_current_span(name, parent, trace.SpanKind.CONSUMER, attributes, links):
        yield


def gauge(name: str, value: float, unit: str = "1", **attributes: str) -> None:
    """Set the gauge trainyard.<name>. Each value is exported once, and again after the next measurement."""
    if on():
        _levels(f"{NAME}.{name}", unit)[tuple(sorted(attributes.items()))] = value


def measure_queues(system: System) -> None:
    """Set the gauges of each queue's messages and their age. The reconcile timer measures its own reads.

    Each poll is a request, so empty queues are polled by turns.
    """
    if not on():
        return
    turns = system.memory.one(TURNS, lambda: Turns(LOOKS_FOR_ALL))
    counts = system.queues.counts(turns.next(QUEUES))
    turns.saw(counts)
    ages = system.queues.ages(queue for queue, waiting in counts.items() if waiting)
    for queue, waiting in counts.items():
        gauge("queue.messages", waiting, queue=queue)
        gauge("queue.age", ages.get(queue, 0.0), "s", queue=queue)


def measure_clusters(system: System) -> None:
    """Set the gauges of all nodes, idle nodes, and their cost per hour."""
    if not on():
        return
    from shared.money import admission

    price_list = admission.prices(system)
    for cluster in system.clusters.list():
        gauge("nodes", cluster.nodes, cluster=cluster.name)
        gauge("nodes.idle", max(0, cluster.nodes - cluster.busy_nodes), cluster=cluster.name)
        price = price_list.find(cluster.vm_size, cluster.tier, system.money.region)
        if price:
            gauge("cost", cluster.nodes * price.dollars, "USD/h", cluster=cluster.name)


def _level(name: str, value: float, attributes: Mapping[str, str]) -> None:
    gauge(name, value, **attributes)


def _count(name: str, attributes: Mapping[str, str]) -> None:
    _counter(f"{NAME}.{name}").add(1, attributes)


@cache
def _counter(name: str) -> Any:
    from opentelemetry import metrics

    return metrics.get_meter(NAME).create_counter(name, unit="1")


@cache
def _levels(name: str, unit: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Return the values of this gauge that are not exported yet, by their attributes."""
    from opentelemetry import metrics

    waiting = dict[tuple[tuple[str, str], ...], float]()

    def exported(_: metrics.CallbackOptions) -> list[metrics.Observation]:
        return [metrics.Observation(waiting.pop(attributes), dict(attributes)) for attributes in list(waiting)]

    metrics.get_meter(NAME).create_observable_gauge(name, [exported], unit)
    return waiting


def _context(kind: str, name: str) -> SpanContext:
    """Return the parent span of everything about a run or a drop. The span is never sent, and only provides ids."""
    from opentelemetry.trace import SpanContext, TraceFlags

    digest = hashlib.sha256(f"{NAME} {kind} {name}".encode()).digest()
    ids = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
    return SpanContext(*ids, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _export_otlp() -> None:
    """Send to the endpoint in the environment; OpenTelemetry's other variables apply, too."""
    from opentelemetry import _logs, metrics, trace
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.logging.handler import LoggingHandler
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", NAME)})
    spans, logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1000))
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), EXPORT_MILLISECONDS)
    trace.set_tracer_provider(spans)
    _logs.set_logger_provider(logs)
    metrics.set_meter_provider(MeterProvider([reader], resource))
    logging.getLogger("shared").addHandler(LoggingHandler(logging.INFO, logger_provider=logs))
