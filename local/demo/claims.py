"""The demo's claims, checked against blobs, tables and clusters, and not against the app's responses."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient

from local.demo.phases import Seen

DIGITS_ACCURACY = 0.9
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Claim:
    """One claim, whether the claim holds, and the finding."""

    text: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Archive:
    """A run's files in the output container. `blobs`: name inside the run's folder to size."""

    folder: str
    blobs: dict[str, int] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the full blob names in the output container, sorted."""
        return [f"{self.folder}/{name}" for name in sorted(self.blobs)]

    def last(self, key: str) -> Any | None:
        """Return the last value of this metric, or None."""
        return next((row[key] for row in reversed(self.metrics) if key in row), None)


def read_archive(connection_string: str, run: dict[str, Any]) -> Archive:
    """Read the run's archive; a missing archive is empty."""
    container, _, folder = (run.get("output") or f"output/{run['experiment']}/{run['run']}").partition("/")
    with ContainerClient.from_connection_string(connection_string, container) as client:
        blobs = {b.name.removeprefix(f"{folder}/"): b.size for b in client.list_blobs(name_starts_with=f"{folder}/")}
        manifest = _read(client, f"{folder}/{MANIFEST}")
        metrics = [name for name in blobs if name.startswith("metrics/") and name.endswith(".jsonl")]
        rows = [json.loads(line) for name in metrics for line in _read(client, f"{folder}/{name}").splitlines()]
    return Archive(folder, blobs, json.loads(manifest or "{}"), rows)


def _read(client: ContainerClient, name: str) -> bytes:
    try:
        return client.download_blob(name).readall()
    except ResourceNotFoundError:
        return b""


def read_row(connection_string: str, run: str) -> dict[str, Any]:
    """Return the run's row in Table Storage, found by name; empty without a row."""
    with TableServiceClient.from_connection_string(connection_string) as service:
        own = "name eq @run and RowKey ge 't!' and RowKey lt 't~'"  # only the run's own row, not the copies for lists
        rows = service.get_table_client("runs").query_entities(own, parameters={"run": run})
        return next(map(dict, rows), {})


def check(seen: Seen, archive: Archive, row: dict[str, Any], least_accuracy: float) -> list[Claim]:
    """Check every claim, in the demo's order."""
    return [
        _completed(seen.run),
        _one_row(seen.run, row),
        _manifest(archive),
        _model(archive),
        _world_size(archive, seen.run["nodes"]),
        _logs(archive, seen.run["nodes"]),
        _accuracy(archive, seen.run, least_accuracy),
        _zero(seen),
    ]


def _zero(seen: Seen) -> Claim:
    nodes = seen.cluster.get("nodes")
    if seen.kept_for:
        return Claim("the cluster stays up for others alone", True, f"{nodes} nodes, for {seen.kept_for}")
    return Claim("the cluster is back at zero nodes", nodes == 0, f"{nodes} nodes")


def _completed(run: dict[str, Any]) -> Claim:
    archived = "archived" if run.get("archived_at") else "not archived"
    found = "\n".join(filter(None, [f"{run['state']}, {archived}", run.get("reason")]))
    return Claim("the run completed and is archived", run["state"] == "completed" and bool(run["archived_at"]), found)


def _one_row(run: dict[str, Any], row: dict[str, Any]) -> Claim:
    states = [moment["state"] for moment in run["history"]]
    holds = row.get("state") == "completed" and bool(row.get("archived_at")) and states[-1:] == ["completed"]
    return Claim(
        "its row in Table Storage tells the story", holds, f"{row.get('state', 'no row')}: {' > '.join(states)}"
    )


def _manifest(archive: Archive) -> Claim:
    listed = {file["name"]: file["size"] for file in archive.manifest.get("files", [])}
    wrong = [name for name, size in listed.items() if archive.blobs.get(name) != size]
    unlisted = sorted(set(archive.blobs) - set(listed) - {MANIFEST})
    found = f"{len(listed)} files listed"
    if wrong or unlisted:
        found += f"; other size or missing: {wrong}; not listed: {unlisted}"
    return Claim(
        "the manifest lists every archived blob with its size", bool(listed) and not wrong and not unlisted, found
    )


def _model(archive: Archive) -> Claim:
    models = {name: size for name, size in archive.blobs.items() if name.startswith("models/") and size}
    found = ", ".join(f"{name} ({size:,} bytes)" for name, size in models.items()) or "nothing under models/"
    return Claim("the model is in the output container", bool(models), found)


def _world_size(archive: Archive, nodes: int) -> Claim:
    size = archive.last("world_size")
    return Claim(f"{nodes} processes trained together", size == nodes > 1, f"world size {size}")


def _logs(archive: Archive, nodes: int) -> Claim:
    wanted = [f"logs/std_log_process_{rank}.txt" for rank in range(nodes)]
    missing = [name for name in wanted if not archive.blobs.get(name)]
    found = f"missing or empty: {missing}" if missing else ", ".join(wanted)
    return Claim("the log of every rank is archived", not missing, found)


def _accuracy(archive: Archive, run: dict[str, Any], least: float) -> Claim:
    accuracy = archive.last("test_accuracy")
    told = run["metrics"]["last"].get("test_accuracy")
    holds = accuracy is not None and accuracy >= least and told is not None and math.isclose(accuracy, told)
    bound = f"is at least {least:.0%}" if least else "is known"
    return Claim(
        f"the test accuracy {bound}", holds, f"{_percent(accuracy)} in the archive, {_percent(told)} on the run"
    )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.2%}"
