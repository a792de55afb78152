"""Which data a run was made for, and whether it trained on them.

The list of a drop's blobs is kept beside the run's archive (`data.json.gz`: name, etag, size and MD5 of each, in
listing order) when the drop is sealed. A queued run trains on whatever its folder holds by then. So the drop is listed
again whenever a job of the run is first seen on its nodes or off them again, and at the run's end; what differs is
judged by Azure ML's times of the jobs (trained_on.py). A drop of many blobs is compared by a message, and at the end by
the archive.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice

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
from shared.runs.model import Run, RunState
from shared.runs.ports import Datasets, RunPorts
from shared.runs.progress.workloads import workload
from shared.runs.trained_on import Difference, TrainedOn, Verdict, differences, judge

LISTING = "data.json.gz"
MOST_LISTED = 100_000  # blobs; of a larger drop the fingerprint tells whether it changed, but not what
COMPARED_AT_ONCE = 1000  # blobs; some milliseconds
_LIMIT = 64 << 20  # bytes of a listing as it is stored
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say gzip
log = logging.getLogger(__name__)


class Listing:
    """A list of blobs as compressed JSON, some 40 bytes each, filled while they are listed."""

    def __init__(self, whole: bool = True) -> None:
        self._packer = zlib.compressobj(6, wbits=_GZIP)
        self._packed = bytearray()
        self.count = 0 if whole else MOST_LISTED + 1

    def add(self, blob: Blob) -> None:
        if self.count < MOST_LISTED:
            row = json.dumps([blob.name, blob.etag.strip('"'), blob.size, blob.md5])
            self._packed += self._packer.compress(f"{',' if self.count else '['}\n{row}".encode())
        elif self._packed:
            self._packed.clear()
        self.count += 1

    def data(self) -> bytes | None:
        """The list, or None if it would be too long."""
        if self.count > MOST_LISTED:
            return None
        return bytes(self._packed) + self._packer.compress(b"\n]" if self.count else b"[]") + self._packer.flush()


def keep_listing(blobs: Blobs, folder: str, listing: Listing) -> None:
    """Write the list beside the archive that the run will have, once: the manifest tells its size and etag."""
    if data := listing.data():
        blobs.write_once(OUTPUT_CONTAINER, f"{folder}/{LISTING}", data, "application/gzip")


def compare_at_step(ports: RunPorts, run: Run, moved: Collection[str]) -> Run:
    """With its note, a run that is about to be so, of which these jobs came to nodes or left them. What takes long is
    compared by a message, and at the end by the archive."""
    if is_over(run):
        return change_at_end(ports, run) or run
    noted = change_on_nodes(ports, run, moved)
    if noted is None:
        ask_for_check(ports.queues, run)
    return noted or run


def change_on_nodes(ports: RunPorts, run: Run, jobs: Collection[str]) -> Run | None:
    """With its note, a run whose jobs of these names were just seen to begin or to lose their nodes; None if comparing
    takes long or is not possible now."""
    if not _is_recorded(run) or not jobs:
        return run
    return _quick(ports, run, jobs)


def change_at_end(ports: RunPorts, run: Run) -> Run | None:
    """With its verdict, a run that is over; None if comparing takes long or is not possible now."""
    return _quick(ports, run, None) if _is_due(run) else run


def verdict_at_end(ports: RunPorts, run: Run) -> Run:
    """The same, which may take minutes. Raises what the services raise."""
    return _noted(run, _verdict(ports, run)) if _is_due(run) else run


def ask_for_check(queues: Queues, run: Run) -> None:
    """Ask for a look at the data of a run whose jobs began or ended, once the row says so."""
    queues.send(CheckData(run.name), 1.0)


def check_data(ports: RunPorts, message: CheckData) -> None:
    """Note on the run if its drop's content differs from what the run was made for. A repeat changes nothing."""
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
    """Whether the end of the run may still say something of its data: what was recorded, or other, is settled."""
    sent = bool(run.jobs.job or run.progress.attempts)
    return _is_recorded(run) and sent and _known(run) in (None, TrainedOn.UNKNOWN)


def _known(run: Run) -> TrainedOn | None:
    if run.progress.trained_on:
        return TrainedOn(run.progress.trained_on)
    return TrainedOn.OTHER if run.progress.data_note else None  # as an older version wrote it


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
    """Only the end of a run can say that it trained on what is recorded."""
    return run if noted.progress.trained_on is TrainedOn.RECORDED else noted


def _noted(run: Run, verdict: Verdict | None) -> Run:
    """The run with this verdict on its data: nothing that was found before is taken back."""
    order, noted = list(TrainedOn), _known(run)
    if verdict is None or (noted and order.index(verdict.trained_on) <= order.index(noted)):
        return run
    return replace(run, progress=replace(run.progress, trained_on=verdict.trained_on, data_note=verdict.why))


def _blobs(blobs: Blobs, run: Run) -> Iterator[Blob]:
    return drop_blobs(blobs, DropKey.of(run.asked.drop))


def _verdict(ports: RunPorts, run: Run) -> Verdict | None:
    try:
        return _compared(ports, run, None, in_time(_blobs(ports.blobs, run), ports.clock))
    except ListingTooLong as exc:
        return Verdict(TrainedOn.UNKNOWN, f"Whether drop {run.asked.drop} changed is not known. {exc}")


def _compared(ports: RunPorts, run: Run, jobs: Collection[str] | None, blobs: Iterable[Blob]) -> Verdict | None:
    """The verdict on the jobs of these names, or on all; None if none of them ever had nodes."""
    differences = _differences(ports, run, blobs) or _gone_again(ports.datasets, run)
    trained = has_run(run) or run.progress.state in (RunState.RUNNING, RunState.COMPLETED) or jobs is not None
    if not differences and trained:
        return Verdict(TrainedOn.RECORDED)
    times = [ports.jobs.times(job) for job in (workload(run).jobs(run).values() if jobs is None else jobs)]
    if not trained and not any(each.began for each in times):
        return None
    return judge(run.asked.drop, differences, [JobTimes()] if _may_read_before(run) else times, run.created_at)


def _may_read_before(run: Run) -> bool:
    """Whether the job's data may be copied to its nodes before Azure ML says that it began."""
    inputs = [given for given in run.asked.request.inputs.values() if isinstance(given, DataInput)]
    return any("download" in given.mode for given in inputs if below_drops(given.path))


def _differences(ports: RunPorts, run: Run, blobs: Iterable[Blob]) -> list[Difference]:
    present: dict[str, Blob] = {}
    drop = DropKey.of(run.asked.drop)
    marker = f"{drop.prefix()}{SUCCESS_MARKER}"  # it says "complete", and is no content
    seen = survey(drop, _told(blobs, present, marker))
    recorded = kept_listing(ports.blobs, _folder(ports.datasets, run)) if len(present) <= MOST_LISTED else None
    if recorded is None:  # nothing tells which files: they are judged as one
        same = True if seen.fingerprint == run.asked.fingerprint else None
        return [Difference(f"drops/{run.asked.drop}", seen.newest, same)]
    return list(differences({blob.name: blob for blob in recorded if blob.name != marker}, present))


def _gone_again(datasets: Datasets, run: Run) -> list[Difference]:
    """What a later generation or the uploads since brought, where nothing is left of it: a job may have read it."""
    now = datasets.of(DropKey.of(run.asked.drop))
    later = now is not None and 0 < run.asked.generation < now.generation
    if now and later:
        return [Difference(f"what generation {now.generation} of the drop brought", None)]
    return [Difference("what opened the drop again", None)] if now and now.collecting else []


def _folder(datasets: Datasets, run: Run) -> str:
    """Where the list of the run's data is kept: with it, or with the run that its drop's generation made."""
    drop = DropKey.of(run.asked.drop)
    kept_in = datasets.kept_in(drop, run.asked.generation, run.asked.fingerprint)
    return kept_in or f"{run.asked.experiment}/{run.name}"


def _told(blobs: Iterable[Blob], by_name: dict[str, Blob], marker: str) -> Iterator[Blob]:
    for blob in blobs:
        folder = blob.metadata.get("hdi_isfolder") == "true"
        if len(by_name) <= MOST_LISTED and not folder and blob.name != marker:
            by_name[blob.name] = blob
        yield blob


def kept_listing(blobs: Blobs, folder: str) -> list[Blob] | None:
    """The blobs of the list that was kept in this folder of the output container; None if there is none."""
    try:
        packed = blobs.read(OUTPUT_CONTAINER, f"{folder}/{LISTING}", _LIMIT)
    except NotFound:
        return None
    rows = islice(read_json(zlib.decompress(packed, _GZIP), LISTING), MOST_LISTED)
    return [Blob(name, etag, size, md5) for name, etag, size, md5 in rows]
