"""Record the data for which a run was made, and check whether the run trained on that data.

When a drop is sealed, the list of its blobs is written beside the run's archive (`data.json.gz`: name, etag, size and
MD5 of each blob, in listing order). A queued run trains on the folder's content at its start, which may differ. The
drop is therefore listed again whenever a job of the run gets or loses its nodes, and when the run ends. trained_on.py
judges the differences by the times that Azure ML reports for the jobs. A drop of many blobs is compared by a message,
and at the end by the archive.
"""

from __future__ import annotations

import gzip
import io
import json
import logging
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import IO

from shared.jobs.data import below_drops
from shared.jobs.model import JobTimes
from shared.jobs.spec import DataInput
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound, TrainyardError
from shared.kernel.parsing import read_json
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Queues
from shared.kernel.versioned import Stored
from shared.runs.content import SUCCESS_MARKER, ListingTooLong, drop_blobs, in_time, survey
from shared.runs.decide import has_run, is_over
from shared.runs.messages import CheckData
from shared.runs.model import CheckedData, Run, RunState
from shared.runs.ports import Datasets, RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.trained_on import ChangedFile, DataVerdict, TrainedOn, differences, judge

OF_DATA = "data."  # the prefix of both; an output's name has no dot
LISTING = "data.json.gz"
CARD = "data.card.json"  # beside the list: the result of a check of these data
PROGRESS = "data.check.json"  # the progress of a check, until the check ends
MOST_LISTED = 100_000  # blobs; for a larger drop, the fingerprint shows whether it changed, but not which blobs
COMPARED_AT_ONCE = 1000  # blobs; some milliseconds
MOST_PACKED = 2_000_000  # blobs; a list of this length takes some 90 MB on disk
_LIMIT = 64 << 20  # bytes of a stored listing, compressed
_GZIP = 16 + zlib.MAX_WBITS  # zlib's value for the gzip format
log = logging.getLogger(__name__)


class PackedListing:
    """A list of blobs as compressed JSON, some 40 bytes per blob, filled during the listing.

    A list of up to MOST_LISTED blobs is kept. A longer one is on the disk of this process, for the checks that follow.
    """

    def __init__(self, whole: bool = True) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)
        self._packed: IO[bytes] = io.BytesIO()
        self._complete = False
        self.count = 0 if whole else MOST_PACKED + 1

    def close(self) -> None:
        self._packed.close()

    def add(self, blob: Blob) -> None:
        if blob.metadata.get("hdi_isfolder") == "true":
            return  # how a storage account with a hierarchical namespace shows a folder
        if self.count < MOST_PACKED:
            row = json.dumps([blob.name, blob.etag.strip('"'), blob.size, blob.md5])
            self._packed.write(self._packer.compress(f"{',' if self.count else '['}\n{row}".encode()))
        self.count += 1
        if self.count == MOST_LISTED + 1:
            self._to_disk()

    def _to_disk(self) -> None:
        packed = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes the file)
        self._packed.seek(0)
        packed.write(self._packed.read())
        self._packed = packed

    def data(self) -> bytes | None:
        """The compressed list; None if the drop has more than MOST_LISTED blobs."""
        return self._finished().read() if self.count <= MOST_LISTED else None

    def rows(self) -> Callable[[], Iterator[Blob]] | None:
        """A function for the blobs, without times and metadata; None if the drop has more than MOST_PACKED."""
        return self._rows if self.count <= MOST_PACKED else None

    def _finished(self) -> IO[bytes]:
        if not self._complete:
            self._packed.write(self._packer.compress(b"\n]" if self.count else b"[]") + self._packer.flush())
            self._complete = True
        self._packed.seek(0)
        return self._packed

    def _rows(self) -> Iterator[Blob]:
        with gzip.GzipFile(fileobj=self._finished(), mode="rb") as lines:
            for line in lines:
                if len(row := line.rstrip(b",\n")) > 2:  # not [ or ], alone in their lines, or [] of an empty list
                    name, etag, size, md5 = json.loads(row)
                    yield Blob(name, etag, size, md5)


def keep_listing(blobs: Blobs, folder: str, listing: PackedListing) -> None:
    """Write the list once, beside the run's future archive: the manifest records its size and etag."""
    if data := listing.data():
        blobs.write_once(OUTPUT_CONTAINER, f"{folder}/{LISTING}", data, "application/gzip")


def compare_at_step(ports: RunPorts, run: Run, moved: Collection[str]) -> Run:
    """The run with a note about the run's data, before the write of the step. `moved`: jobs with new or lost nodes.

    A comparison that takes long is left to a message, and at the end of the run to the archive.
    """
    if is_over(run):
        return change_at_end(ports, run) or run
    noted = change_on_nodes(ports, run, moved)
    if noted is None:
        ask_for_check(ports.queues, run)
    return noted or run


def change_on_nodes(ports: RunPorts, run: Run, jobs: Collection[str]) -> Run | None:
    """The run with a note about the run's data. `jobs`: the names of the jobs with newly started or lost nodes.

    None if the comparison takes long or is not possible now.
    """
    if not _is_recorded(run) or not jobs:
        return run
    return _quick(ports, run, jobs)


def change_at_end(ports: RunPorts, run: Run) -> Run | None:
    """The ended run with the verdict on its data; None if the comparison takes long or is not possible now."""
    return _quick(ports, run, None) if _is_due(run) else run


def verdict_at_end(ports: RunPorts, run: Run) -> Run:
    """Like change_at_end, but may take minutes. Raises the errors of the services."""
    return _noted(run, _verdict(ports, run)) if _is_due(run) else run


def ask_for_check(queues: Queues, run: Run) -> None:
    """Queue a check of the data of a run whose jobs started or ended, once the row records this."""
    queues.send(CheckData(run.name), 1.0)


def check_data(ports: RunPorts, message: CheckData) -> None:
    """Note on the run if the drop now differs from the data for which the run was made. A repeat changes nothing."""
    name = message.data_of
    try:
        stored = ports.runs.recent(name)
    except NotFound:
        return
    verdict = _verdict(ports, stored.value)

    def write(stored: Stored[Run]) -> None:
        noted = _doubting(stored.value, _noted(stored.value, verdict))
        if noted is not stored.value and noted.archive.at is None:
            ports.runs.update(stored, noted)

    compare_and_set(ports.clock, f"Run {name}", lambda: ports.runs.get(name), write, first=lambda: stored)


def _is_recorded(run: Run) -> bool:
    return bool(run.asked.drop and run.asked.fingerprint)


def _is_due(run: Run) -> bool:
    """Whether the end of the run can still decide on which data it trained: the verdict is missing or unknown."""
    sent = bool(run.jobs.job or run.progress.attempts)
    return _is_recorded(run) and sent and _known(run) in (None, TrainedOn.UNKNOWN)


def _known(run: Run) -> TrainedOn | None:
    if run.data.trained_on:
        return TrainedOn(run.data.trained_on)
    return TrainedOn.OTHER if run.data.note else None  # an older version wrote only the note


def _quick(ports: RunPorts, run: Run, jobs: Collection[str] | None) -> Run | None:
    try:
        blobs = list(islice(_blobs(ports.blobs, run), COMPARED_AT_ONCE + 1))
        if len(blobs) > COMPARED_AT_ONCE:
            return None
        noted = _noted(run, _compared(ports, run, jobs, blobs))
        return noted if jobs is None else _doubting(run, noted)
    except TrainyardError as exc:
        log.info("run %s: its data are compared later: %s", run.name, exc)
        return None


def _doubting(run: Run, noted: Run) -> Run:
    """The noted run, unless the note is `recorded`: only the end of a run can prove that."""
    return run if noted.data.trained_on is TrainedOn.RECORDED else noted


def _noted(run: Run, verdict: DataVerdict | None) -> Run:
    """The run with this verdict on the run's data. An earlier, more severe verdict stays."""
    order, noted = list(TrainedOn), _known(run)
    if verdict is None or (noted and order.index(verdict.trained_on) <= order.index(noted)):
        return run
    return replace(run, data=CheckedData(verdict.trained_on, verdict.why))


def _blobs(blobs: Blobs, run: Run) -> Iterator[Blob]:
    return drop_blobs(blobs, DropKey.of(run.asked.drop))


def _verdict(ports: RunPorts, run: Run) -> DataVerdict | None:
    try:
        return _compared(ports, run, None, in_time(_blobs(ports.blobs, run), ports.clock))
    except ListingTooLong as exc:
        return DataVerdict(TrainedOn.UNKNOWN, f"Whether drop {run.asked.drop} changed is not known. {exc}")


def _compared(ports: RunPorts, run: Run, jobs: Collection[str] | None, blobs: Iterable[Blob]) -> DataVerdict | None:
    """The verdict on the named jobs, or on all jobs if `jobs` is None; None if no job ever had nodes."""
    differences = _differences(ports.datasets, ports.blobs, run, blobs) or _gone_again(ports.datasets, run)
    trained = has_run(run) or run.progress.state in (RunState.RUNNING, RunState.COMPLETED) or jobs is not None
    if not differences and trained:
        return DataVerdict(TrainedOn.RECORDED)
    times = [ports.jobs.times(job) for job in (workload(run).jobs(run).values() if jobs is None else jobs)]
    if not trained and not any(each.began for each in times):
        return None
    return judge(run.asked.drop, differences, [JobTimes()] if _may_read_before(run) else times, run.created_at)


def _may_read_before(run: Run) -> bool:
    """Whether Azure ML may copy the job's data to the nodes before reporting the job as started."""
    inputs = [given for given in run.asked.request.inputs.values() if isinstance(given, DataInput)]
    return any("download" in given.mode for given in inputs if below_drops(given.path))


def _differences(datasets: Datasets, blobs: Blobs, run: Run, collected: Iterable[Blob]) -> list[ChangedFile]:
    present: dict[str, Blob] = {}
    drop = DropKey.of(run.asked.drop)
    marker = f"{drop.prefix()}{SUCCESS_MARKER}"  # the marker says "complete" and is not content
    seen = survey(drop, _collected(collected, present, marker))
    recorded = kept_listing(blobs, _folder(datasets, run)) if len(present) <= MOST_LISTED else None
    if recorded is None:  # no list says which files changed: judge the drop as one file
        same = True if seen.fingerprint == run.asked.fingerprint else None
        return [ChangedFile(f"drops/{run.asked.drop}", seen.newest, same)]
    return list(differences({blob.name: blob for blob in recorded if blob.name != marker}, present))


def _gone_again(datasets: Datasets, run: Run) -> list[ChangedFile]:
    """A difference for content with a later addition and deletion: a job may have read the content."""
    now = datasets.of(DropKey.of(run.asked.drop))
    later = now is not None and 0 < run.asked.generation < now.generation
    if now and later:
        return [ChangedFile(f"the files of generation {now.generation} of the drop", None)]
    return [ChangedFile("what opened the drop again", None)] if now and now.collecting else []


def _folder(datasets: Datasets, run: Run) -> str:
    """The folder with the list of the run's data: the run's own folder, or the folder of the generation's run."""
    drop = DropKey.of(run.asked.drop)
    kept_in = datasets.kept_in(drop, run.asked.generation, run.asked.fingerprint)
    return kept_in or f"{run.asked.experiment}/{run.name}"


def _collected(blobs: Iterable[Blob], by_name: dict[str, Blob], marker: str) -> Iterator[Blob]:
    for blob in blobs:
        folder = blob.metadata.get("hdi_isfolder") == "true"
        if len(by_name) <= MOST_LISTED and not folder and blob.name != marker:
            by_name[blob.name] = blob
        yield blob


def kept_listing(blobs: Blobs, folder: str) -> list[Blob] | None:
    """The blobs of the list in this folder of the output container; None if no list exists."""
    try:
        packed = blobs.read(OUTPUT_CONTAINER, f"{folder}/{LISTING}", _LIMIT)
    except NotFound:
        return None
    rows = islice(read_json(zlib.decompress(packed, _GZIP), LISTING), MOST_LISTED)
    return [Blob(name, etag, size, md5) for name, etag, size, md5 in rows]
