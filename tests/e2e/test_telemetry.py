"""Telemetry of the local cloud, as a collector gets it over OTLP: a run is one trace, linked to its drop's trace."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.lab import Lab

PATIENCE = 90.0
JOB = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
"""
ROUTES = "routes: {tell: {template: tell.yaml, cluster: cpu-cluster}}"


class Collector:
    """The telemetry received so far: spans, metrics by name, and log texts with the ids of their traces."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.logs: list[tuple[str, bytes]] = []

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            told = ExportTraceServiceRequest.FromString(body)
            self.spans += [s for r in told.resource_spans for scope in r.scope_spans for s in scope.spans]
        elif path == "/v1/metrics":
            found = ExportMetricsServiceRequest.FromString(body)
            self.metrics |= {m.name: m for r in found.resource_metrics for s in r.scope_metrics for m in s.metrics}
        else:
            logs = ExportLogsServiceRequest.FromString(body)
            records = [log for r in logs.resource_logs for s in r.scope_logs for log in s.log_records]
            self.logs += [(log.body.string_value, log.trace_id) for log in records]

    def of(self, key: str, value: str) -> list[Any]:
        """The spans with this attribute."""
        return [s for s in self.spans if any((a.key, a.value.string_value) == (key, value) for a in s.attributes)]


@pytest.fixture(scope="module")
def collector() -> Iterator[tuple[str, Collector]]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", collector
        server.shutdown()


def test_a_runs_way_is_one_trace(collector: tuple[str, Collector], tmp_path: Path) -> None:
    """Submission and events, the last with the archive, have one trace and the run's name. The first span links to
    the trace of the drop, which has its uploads. Metrics show queued messages and idle nodes, and a log line has
    the trace of its subject."""
    address, told = collector
    (tmp_path / "tell.yaml").write_text(JOB)
    (tmp_path / "routes.yaml").write_text(ROUTES)
    app_env = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
    options = Options(routes=tmp_path / "routes.yaml", node_start_seconds=0.2, app_env=app_env)
    with Cloud.start(tmp_path / "cloud", options) as cloud:
        lab = Lab(cloud, tmp_path)
        lab.upload("tell/a", {"1.bin": b"x", "_SUCCESS": b""})
        run = lab.archived("tell/a")["run"]

        def all_there() -> bool:
            names = {span.name for span in told.of("trainyard.run", run)}
            metrics = {"trainyard.runs", "trainyard.queue.messages", "trainyard.drops.open", "trainyard.nodes.idle"}
            return {"submit run", "job event"} <= names and metrics <= told.metrics.keys()

        wait_for(all_there, PATIENCE, "spans and metrics", 0.5)
    spans = told.of("trainyard.run", run)
    (trace,) = {span.trace_id for span in spans}
    uploads = told.of("trainyard.drop", "tell/a")
    (submit,) = [span for span in spans if span.name == "submit run"]
    of_drop = {span.trace_id for span in uploads if span.name in ("file uploaded", "check drop")}
    assert {link.trace_id for link in submit.links} == of_drop != {trace}
    states = {point.attributes[0].value.string_value for point in told.metrics["trainyard.runs"].sum.data_points}
    assert {"submitted", "completed"} <= states
    assert any(f"run {run}: " in text and at == trace for text, at in told.logs)
