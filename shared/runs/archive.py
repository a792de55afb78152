"""Copy what a final run left behind into the output container, and write its manifest last.

output/<experiment>/<run>/models/...     the job's output `models` (or `model`)
                          metrics/...    its output `metrics`
                          outputs/...    its other outputs, and what it wrote to ./outputs
                                         (not `checkpoints`: they are large, and of use to this run only)
                          logs/...       every rank's log; of an elastic run in a folder for each of its jobs
                          manifest.json  names, sizes and checksums of all these; its being there means complete
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from shared.events.announce import announce
from shared.kernel.errors import BadInput, Changed
from shared.kernel.storage import Blob, Blobs, Copy, Place
from shared.kernel.stored import Stored
from shared.runs import members
from shared.runs.decide import fold_metrics, is_over
from shared.runs.model import Run
from shared.system import OUTPUT_CONTAINER, System

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
MANIFEST_LIMIT = 64 << 20  # bytes
LEFT = "checkpoints"  # the output that stays where the job wrote it
FOLDERS = {"models": "models", "model": "models", "metrics": "metrics"}  # job output: folder of the archive


def archive_run(system: System, name: str) -> None:
    """Archive a final run. It may die anywhere and be called again: what is copied already is not copied again."""
    stored = system.runs.get(name)
    run = stored.value
    if not is_over(run):
        return
    if run.archived_at is None:
        folder = archive_folder(run)
        files = sorted(_copy_all(system, run, folder), key=lambda blob: blob.name)
        last, best = _metrics(system, files)
        finished = {"output": f"{OUTPUT_CONTAINER}/{folder}", "last_metrics": last, "best_metrics": best}
        _write_manifest(system, run, folder, files, finished)
        announce(system, "RunArchived", name, {"run": name, "state": run.state, "output": finished["output"]})
        _record(system, stored, finished)
    system.runs.settle(name)


def archive_folder(run: Run) -> str:
    return f"{run.experiment}/{run.name}"


def log_folder(run: Run, job: str) -> str:
    """Where in its archive the run keeps the logs of this job of its own."""
    return f"logs/{job.removeprefix(run.name).lstrip('-')}/" if run.elastic else "logs/"


def _copy_all(system: System, run: Run, folder: str) -> Iterator[Blob]:
    yield from system.blobs.copy(_copies(system, run, folder))


def _copies(system: System, run: Run, folder: str) -> Iterator[Copy]:
    for place, below in _sources(system, run):
        for blob in system.blobs.list(place):
            target = f"{folder}/{below}{blob.name.removeprefix(place.prefix)}"
            yield Copy(blob, place.container, OUTPUT_CONTAINER, target)


def _sources(system: System, run: Run) -> Iterator[tuple[Place, str]]:
    for job in members.jobs_of(run).values():  # one that was never submitted has no logs
        logs = system.jobs.logs(job)
        yield Place(logs.container, f"{logs.prefix}user_logs/"), log_folder(run, job)
        yield Place(logs.container, f"{logs.prefix}outputs/"), "outputs/"
    for name, output in (run.request.get("outputs") or {}).items():
        if name == LEFT:
            continue
        try:
            place = system.jobs.place(str(output.get("path", "")))
        except BadInput:
            continue  # a template may send an output to a registered asset, which keeps it
        yield place, f"{FOLDERS.get(name, f'outputs/{name}')}/"


def _metrics(system: System, files: Iterable[Blob]) -> tuple[dict[str, float], dict[str, float]]:
    """The last and best metrics of every metrics/*.jsonl. A line that is no JSON object is skipped."""
    names = [f.name for f in files if "/metrics/" in f.name and f.name.endswith(".jsonl")]
    rows = (row for name in names for line in system.blobs.lines(OUTPUT_CONTAINER, name) if (row := json_row(line)))
    return fold_metrics(rows)


def json_row(line: str) -> dict[str, Any] | None:
    """The JSON object of a line, or None for anything else."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _write_manifest(system: System, run: Run, folder: str, files: list[Blob], finished: dict[str, Any]) -> None:
    """Write the manifest; the same files and run give the same bytes."""
    row = {key: value for key, value in asdict(run).items() if key not in ("archived_at", "request")}
    manifest = {
        "version": 1,
        "source_job": run.name,
        "run": {**row, **finished},
        "files": [
            {"name": f.name.removeprefix(f"{folder}/"), "size": f.size, "md5": f.md5, "etag": f.etag} for f in files
        ],
    }
    data = json.dumps(manifest, indent=1, default=str, sort_keys=True).encode()
    system.blobs.write(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", data, "application/json")


def _record(system: System, stored: Stored[Run], finished: dict[str, Any]) -> None:
    for _ in range(10):
        try:
            system.runs.update(stored, **finished, archived_at=system.clock())
        except Changed:
            stored = system.runs.get(stored.value.name)
        else:
            log.info("run %s: archived to %s", stored.value.name, finished["output"])
            return
    raise Changed(f"Run {stored.value.name} changed 10 times while it was archived.")


def read_manifest(blobs: Blobs, folder: str) -> dict[str, Any]:
    """The manifest of an archive. Raises NotFound if there is none."""
    manifest: dict[str, Any] = json.loads(blobs.read(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", MANIFEST_LIMIT))
    return manifest
