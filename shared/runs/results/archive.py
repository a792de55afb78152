"""Copy an ended run's results into the output container, and write the manifest last.

The manifest (`manifest.json`) has names, sizes and checksums of all files. For every output that the job declared, the
manifest has the result and the reason: archived, empty, left in place, or missing. An archive with a manifest is
complete.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any

import msgspec

from shared.jobs.ports import Jobs, WorkspacePorts
from shared.jobs.readers.place_text import place_text
from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import BadInput, NotFound, TrainyardError, Unavailable
from shared.kernel.parsing import read_json
from shared.kernel.parts import flat
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.ports import StoragePorts
from shared.kernel.storage import Blob, Blobs, Copy, Place
from shared.kernel.versioned import Stored
from shared.runs.data import OF_DATA, change_at_end
from shared.runs.decide import Folded, fold_metrics, is_over
from shared.runs.facts import RunArchived, RunBeingArchived
from shared.runs.features import parts
from shared.runs.messages import ArchiveRun
from shared.runs.model import Measured, Run, RunState
from shared.runs.ports import RunPorts, Runs
from shared.runs.progress.transitions import ask_for_archive
from shared.runs.progress.workloads import workload
from shared.runs.results import metric_files, mlflow_metrics
from shared.runs.results.metric_files import Mark
from shared.runs.results.node_facts import hardware, read_node_facts
from shared.runs.results.outputs import RunOutput, archive_folder, outputs
from shared.runs.results.saved_metrics import Saved, read_saved

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
MANIFEST_LIMIT = 256 << 20  # bytes; one file needs about 150
PATIENCE = timedelta(minutes=4)  # a single copy may take as long again; functionTimeout, 10 minutes, ends the worker
LEAST_COPYING = timedelta(minutes=1)  # however long the drop was listed
AT_ONCE_FILES, AT_ONCE_BYTES = 100, 64 << 20  # copied by the service itself within a second
NOTICE_AFTER = 2.0  # seconds; the write that makes the notice true is done by then
LATE = timedelta(seconds=60)  # after a job's end; the clocks of app and storage differ by less
NOT_IN_THE_MANIFEST = ("archived_at", "request", "archive_tries", "archive_error", "gave_up_at")


class OutOfTime(Exception):
    """More data remains than one invocation may copy."""


def archive_run(ports: RunPorts, message: ArchiveRun) -> None:
    """Archive an ended run, or as much as PATIENCE allows; another message continues with the rest.

    A repeat after a crash is safe: existing copies are kept.
    """
    name = message.run
    stored = ports.runs.get(name)  # a repeated archive of an archived run could differ from the manifest
    run = stored.value
    if not is_over(run) or run.archive.at is not None or run.progress.state is RunState.BROKEN:
        return
    run_outputs, until = _Found(ports, archive_folder(run), until=_end_of_all(run)), ports.clock() + PATIENCE
    try:
        run = ports.written_with(RunBeingArchived(run))
        theirs = workload(run).archived_run(run)
        source = run if theirs == run.name else ports.runs.get(theirs).value
        until = max(until, ports.clock() + LEAST_COPYING)
        archived = _archive(ports, run, run_outputs, run_outputs.copies(source), source, until)
    except OutOfTime:
        if run != stored.value:  # so that the next message does not list the drop again
            _record(ports.runs, ports.clock, stored, lambda fresh: _with_verdict(fresh, run))
        ask_for_archive(ports.queues, name)
        log.info("run %s: archiving continues in the next message", name)
        return
    except TrainyardError as exc:
        error = str(exc)
        _record(ports.runs, ports.clock, stored, lambda fresh: _with_error(fresh, error))
        raise
    _announce(ports, archived)
    _record(
        ports.runs, ports.clock, stored, lambda fresh: _with_archive(_with_verdict(fresh, run), archived, ports.clock())
    )


def archive_at_once(ports: RunPorts, run: Run) -> Run:
    """Archive a small run at its last step, and return the run for the write of this step.

    The run is returned unchanged, and a message archives it later, if the run has not ended, has several jobs, much
    data to compare or much to copy, or if an error occurs. A repeat after a crash is safe.
    """
    if not is_over(run) or len(workload(run).jobs(run)) != 1 or (judged := change_at_end(ports, run)) is None:
        return run
    run_outputs = _Found(ports, archive_folder(run))
    try:
        copies = list(islice(run_outputs.copies(run), AT_ONCE_FILES + 1))
        if len(copies) > AT_ONCE_FILES or sum(copy.source.size for copy in copies) > AT_ONCE_BYTES:
            return run
        judged = ports.written_with(RunBeingArchived(judged))
        archived = _archive(ports, judged, run_outputs, copies, judged)
        _announce(ports, archived, NOTICE_AFTER)
    except TrainyardError as exc:
        log.info("run %s is archived later: %s", run.name, exc)
        return run
    return _with_archive(archived, archived, ports.clock())


def _with_verdict(fresh: Run, judged: Run) -> Run:
    """The newest run with the verdict on the run's data, and with the features' parts for the archive."""
    return replace(fresh, data=judged.data, features={**judged.features, **fresh.features})


def _with_error(fresh: Run, error: str) -> Run:
    return replace(fresh, archiving=replace(fresh.archiving, error=error))


def _with_archive(fresh: Run, archived: Run, now: datetime) -> Run:
    """The newest run with the complete archive."""
    archive, archiving = replace(archived.archive, at=now), replace(fresh.archiving, error="")
    return replace(fresh, archive=archive, archiving=archiving, measured=archived.measured)


def _announce(ports: StoragePorts, run: Run, notice_after: float = 0.0) -> None:
    ports.happened(RunArchived(run, run.archive.output, notice_after))
    log.info("run %s: archived to %s", run.name, run.archive.output)


def _archive(
    ports: WorkspacePorts,
    run: Run,
    run_outputs: _Found,
    copies: Iterable[Copy],
    source: Run,
    until: datetime | None = None,
) -> Run:
    """The run with its archive.

    `source` is the run whose results are copied: the run itself, or a sweep's best trial.
    """
    folder, files = run_outputs.folder, list[Blob]()
    for file in _checked(ports.blobs.copy(copies), run_outputs.expected):
        files.append(file)
        if until and ports.clock() > until:
            raise OutOfTime
    of_data = ports.blobs.list(Place(OUTPUT_CONTAINER, f"{folder}/{OF_DATA}"))
    has_metrics = any(file.name.startswith(f"{folder}/metrics/") for file in files)
    of_mlflow = None if has_metrics else mlflow_metrics.keep(ports.jobs, ports.blobs, source, folder)
    files = sorted([*files, *filter(None, (*of_data, of_mlflow))], key=lambda blob: blob.name)
    saved = read_saved(ports.blobs, folder, {file.name for file in files})
    folded = _metrics(ports.jobs, ports.blobs, run, files, saved)
    node = read_node_facts(ports.blobs, folder, (file.name.removeprefix(f"{folder}/") for file in files))
    output = f"{OUTPUT_CONTAINER}/{folder}"
    measured = Measured(
        last=folded.last,
        best=folded.best,
        best_steps=folded.best_steps,
        saved=saved.metrics,
        saved_step=saved.step,
        goals=saved.goals,
        hardware=hardware(node),
    )
    archived = replace(run, archive=replace(run.archive, output=output), measured=measured)
    _write_manifest(ports.blobs, archived, files, run_outputs)
    return archived


@dataclass
class _Found:
    """The content of the outputs: the copies to make, and the result for each output.

    Files of shared outputs that were written after `until` are left out: a job of the run began after the run's end.
    """

    ports: WorkspacePorts
    folder: str
    expected: dict[str, Blob] = field(default_factory=dict)  # by the copy's name: the original blob
    until: datetime | None = None
    left_out: list[str] = field(default_factory=list)
    fates: list[dict[str, Any]] = field(default_factory=list)  # of declared outputs, and of logs that can't be read

    def copies(self, run: Run) -> Iterator[Copy]:
        for some in _of_one_folder(outputs(run)):
            counts = Counter[RunOutput]()
            try:
                for output, copy in self._copies(some):
                    self.expected[copy.to_name] = copy.source
                    counts[output] += 1
                    yield copy
            except (BadInput, NotFound) as exc:
                state = "missing" if isinstance(exc, NotFound) else "left"
                self.fates += [
                    {"name": each.name, "state": state, "path": place_text(each.path), "why": str(exc)}
                    for each in some
                    if not each.job or state == "missing"
                ]
                continue
            self.fates += [_fate(each, counts[each]) for each in some if not each.job]

    def changed_late(self, run: Run) -> list[str]:
        """Names of outputs that changed after the job's end, because nodes share the workspace's container.

        A blob does not say which job wrote it. Logs are excluded: Azure ML itself writes logs after the job's end.
        """
        until = run.progress.history[-1].at + LATE
        written = {name.removeprefix(f"{self.folder}/"): blob.last_modified for name, blob in self.expected.items()}
        changed = [name for name, at in written.items() if at and at > until and not name.startswith("logs/")]
        return sorted([*changed, *self.left_out])

    def _copies(self, some: list[RunOutput]) -> Iterator[tuple[RunOutput, Copy]]:
        """The existing files of outputs in one folder. The outputs in a job's own folder share one listing."""
        if some[0].job and not some[0].path:
            own = self.ports.jobs.folder(some[0].job)
            by_part = {output.part: output for output in some}
            for blob in self.ports.blobs.list(own.place):
                part = own.part_of(blob.name.removeprefix(own.place.prefix))
                if part and (output := by_part.get(part)):
                    yield output, self._copy(output, blob, own.inside(part))
            return
        for output in some:
            yield from ((output, copy) for copy in (self._declared(output) if output.folder else ()))

    def _declared(self, output: RunOutput) -> Iterator[Copy]:
        place = self.ports.jobs.place(output.path)
        if output.is_file:
            name = place.prefix.rstrip("/")
            blob = self.ports.blobs.first(Place(place.container, name))
            if blob is not None and blob.name == name:
                yield self._copy(output, blob, Place(place.container, name.removesuffix(name.rpartition("/")[2])))
                return
        for blob in self.ports.blobs.list(place):
            if self.until and blob.last_modified and blob.last_modified > self.until:
                self.left_out.append(f"{output.folder}{blob.name.removeprefix(place.prefix)}")
            else:
                yield self._copy(output, blob, place)

    def _copy(self, output: RunOutput, blob: Blob, place: Place) -> Copy:
        target = f"{self.folder}/{output.folder}{blob.name.removeprefix(place.prefix)}"
        return Copy(blob, place.container, OUTPUT_CONTAINER, target)


def _end_of_all(run: Run) -> datetime | None:
    """The last moment at which a job of a run of several jobs may write; None for a run of one job at a time, whose
    last job is known to have ended.
    """
    return run.progress.history[-1].at + LATE if len(workload(run).jobs(run)) > 1 else None


def _of_one_folder(run_outputs: Iterable[RunOutput]) -> Iterator[list[RunOutput]]:
    """Outputs grouped by folder: the outputs in a job's own folder together, all others separately."""
    for _, some in groupby(
        run_outputs, key=lambda output: (output.job, place_text(output.path), "" if output.job else output.name)
    ):
        yield list(some)


def _fate(output: RunOutput, count: int) -> dict[str, Any]:
    fate: dict[str, Any] = {
        "name": output.name,
        "state": "archived" if count else "empty",
        "path": place_text(output.path),
    }
    if output.asset:
        fate["asset"] = output.asset
    if not output.folder:
        return fate | {"state": "left", "why": "It stays in the job's output."}
    if not count:
        return fate | {"why": "The job wrote nothing there."}
    return fate | {"folder": output.folder, "files": count}


def _checked(copied: Iterable[Blob], expected: dict[str, Blob]) -> Iterator[Blob]:
    """The copies, each compared with the original.

    Raises Unavailable for a difference, so that a retry copies again.
    """
    for blob in copied:
        source = expected[blob.name]
        if blob.size != source.size or (blob.md5 and source.md5 and blob.md5 != source.md5):
            raise Unavailable(
                f"The copy {blob.name} has {blob.size} bytes, MD5 {blob.md5 or 'unknown'}; the job wrote "
                f"{source.size}, MD5 {source.md5 or 'unknown'}."
            )
        yield blob


def _metrics(jobs: Jobs, blobs: Blobs, run: Run, files: Iterable[Blob], saved: Saved) -> Folded:
    """The last and best metrics of the archived files; if no file has curves, of printed values too."""
    with_metrics = metric_files.archived(archive_folder(run), files)
    if not any(file.has_curves for file in with_metrics):
        with_metrics = [*metric_files.printed(jobs, blobs, run), *with_metrics]
    return fold_metrics((row for file in with_metrics for row in metric_files.rows(blobs, file, Mark())), saved.goals)


def _write_manifest(blobs: Blobs, run: Run, files: list[Blob], run_outputs: _Found) -> None:
    """Write the manifest. Equal files and runs give equal bytes."""
    folder = archive_folder(run)
    row = {key: value for key, value in msgspec.to_builtins(flat(run)).items() if key not in NOT_IN_THE_MANIFEST}
    row |= {part.name: msgspec.to_builtins(run.feature(part.kind)) for part in parts() if run.feature(part.kind)}
    if late := run_outputs.changed_late(run):
        log.warning("run %s: %d outputs changed after its job's end: %s", run.name, len(late), ", ".join(late[:10]))
    row["history"] = [{"state": moment.state, "at": moment.at, "why": moment.why} for moment in run.progress.history]
    manifest = {
        "version": 2,
        "source_job": run.name,
        "run": row,
        "outputs": run_outputs.fates,
        "changed_after_end": late,
        "files": [
            {"name": f.name.removeprefix(f"{folder}/"), "size": f.size, "md5": f.md5, "etag": f.etag} for f in files
        ],
    }
    data = json.dumps(manifest, indent=1, default=str, sort_keys=True).encode()
    blobs.write(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", data, "application/json")


def _record(runs: Runs, clock: Clock, stored: Stored[Run], changed: Callable[[Run], Run]) -> None:
    name = stored.value.name

    def write(stored: Stored[Run]) -> None:
        runs.update(stored, changed(stored.value))

    compare_and_set(clock, f"Run {name}", lambda: runs.get(name), write, first=lambda: stored)


def read_manifest(blobs: Blobs, folder: str) -> dict[str, Any]:
    """The manifest of an archive. Raises NotFound for a missing manifest."""
    manifest: dict[str, Any] = read_json(blobs.read(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", MANIFEST_LIMIT), MANIFEST)
    return manifest
