"""Rows of metrics from the files of a run's jobs, or from printed lines.

The output `metrics` has priority: `*.jsonl`, `metrics.json` and TensorBoard event files. If it has none of these,
`metrics.json`, `metrics.jsonl` and event files of any other output count. If no file has curves, printed values count.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from shared.jobs.model import JobFolderPart
from shared.jobs.ports import Jobs
from shared.kernel.errors import Impossible, NotFound
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.runs.model import Run
from shared.runs.progress.workloads import workload
from shared.runs.results import event_files, printed_metrics
from shared.runs.results.outputs import archive_folder, outputs
from shared.runs.results.rank_log import rank_log

PIECE = 4 << 20  # bytes per read
MOST_BYTES = 64 << 20  # per file and call; the next call continues there
MOST_PRINTED = 16 << 20  # per log and call
MOST_DOCUMENT = 4 << 20  # bytes of a metrics.json
MOST_LISTED = 5000  # files of one output that are searched for metrics
OWN = "metrics/"  # the archive folder of the output `metrics`
NAMES = ("metrics.json", "metrics.jsonl")
Row = dict[str, Any]


@dataclass(frozen=True)
class MetricFile:
    """A file with metrics, or a log. `name` is the path in the archive, without the folder of the output `metrics`.

    `whole`: the file won't grow any further.
    """

    name: str
    container: str
    blob: Blob
    whole: bool
    line_reader: printed_metrics.Reader | None = None  # of a log

    @property
    def has_curves(self) -> bool:
        """Whether the file can have curves; a JSON document has only final numbers."""
        return not self.name.endswith(".json")


@dataclass
class Mark:
    """How far a file was read, in bytes. For a JSON document, which is rewritten, a checksum of its content."""

    at: int = 0


def written(jobs: Jobs, blobs: Blobs, run: Run) -> list[MetricFile]:
    """The files with metrics, in the jobs' folders or, once the run is archived, in the archive."""
    is_archived = run.archive.at is not None
    folders = _archived(run) if is_archived else _live(jobs, run)
    for own in (True, False):
        files = [
            MetricFile(path.removeprefix(OWN), place.container, blob, is_archived)
            for folder, place in folders
            if own == (folder == OWN)
            for blob in islice(blobs.list(place), MOST_LISTED)
            if _counts(path := f"{folder}{blob.name.removeprefix(place.prefix)}", own)
        ]
        if files:
            return files
    return []


def archived(folder: str, blobs: Iterable[Blob]) -> list[MetricFile]:
    """The metric files among these blobs of the archive in this folder."""
    by_path = {blob.name.removeprefix(f"{folder}/"): blob for blob in blobs}
    paths = [path for path in by_path if _counts(path, True)] or [path for path in by_path if _counts(path, False)]
    return [MetricFile(path.removeprefix(OWN), OUTPUT_CONTAINER, by_path[path], True) for path in paths]


def _counts(path: str, own: bool) -> bool:
    """Whether this path in the archive is a metric file, in the output `metrics` or elsewhere."""
    if own != path.startswith(OWN) or path.startswith("logs/"):
        return False
    named = PurePosixPath(path).name in NAMES or (own and path.endswith(".jsonl"))
    return named or event_files.is_event_file(path)


def printed(jobs: Jobs, blobs: Blobs, run: Run) -> list[MetricFile]:
    """The logs that may contain metrics: the first rank's log, or each member's log for an elastic run."""
    tags = {**run.asked.request.tags, **run.people.tags}
    try:
        line_reader = printed_metrics.reader(tags.get(printed_metrics.TAG, ""))
    except Impossible:  # the tags of a job file are not validated
        return []
    logs = {rank: rank_log(jobs, blobs, run, rank) for rank in workload(run).ranks(run) or [0]}
    return [
        MetricFile(f"printed {rank}", log.container, log.blob, log.whole, line_reader)
        for rank, log in logs.items()
        if log.blob
    ]


def rows(blobs: Blobs, file: MetricFile, mark: Mark) -> Iterator[Row]:
    """The file's rows after the mark. The mark advances to the end of this reading."""
    if file.line_reader:
        lines = _lines(blobs, file, mark, MOST_PRINTED)
        yield from filter(None, map(file.line_reader, lines))
    elif file.name.endswith(".json"):
        yield from _document(blobs, file, mark)
    elif event_files.is_event_file(file.name):
        data, begin = b"".join(_pieces(blobs, file, mark.at, MOST_BYTES)), mark.at
        for row, end in event_files.rows(data, file.name):
            mark.at = begin + end
            yield row
    else:
        yield from filter(None, map(json_row, _lines(blobs, file, mark, MOST_BYTES)))


def json_row(line: str) -> Row | None:
    """The JSON object in a line; None for a line of another form."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _archived(run: Run) -> list[tuple[str, Place]]:
    folder = archive_folder(run)
    return [(part, Place(OUTPUT_CONTAINER, f"{folder}/{part}")) for part in (OWN, "")]


def _live(jobs: Jobs, run: Run) -> list[tuple[str, Place]]:
    """The folders of the run's outputs, with their places in the archive. Unreachable folders are omitted."""
    folders = []
    for output in outputs(run):
        if output.part in (JobFolderPart.LOGS, JobFolderPart.REST) or output.is_file or not output.folder:
            continue
        try:
            if output.path:
                folders.append((output.folder, jobs.place(output.path)))
            elif output.job:
                folders.append((output.folder, jobs.folder(output.job).inside(JobFolderPart.OUTPUTS)))
        except NotFound:
            continue
    return folders


def _document(blobs: Blobs, file: MetricFile, mark: Mark) -> Iterator[Row]:
    """The rows of a JSON document: an object, or a list of objects. Nested numbers get names with dots."""
    if file.blob.size > MOST_DOCUMENT:
        return
    data = b"".join(_pieces(blobs, file, 0, MOST_DOCUMENT))
    if (total := zlib.crc32(data) + 1) == mark.at:
        return
    try:
        document = json.loads(data)
        some = list(document) if isinstance(document, list) else [document]
        flat_rows = [dict(_flat(row)) for row in some if isinstance(row, dict)]
    except (ValueError, RecursionError):  # perhaps the file is still being written
        return
    mark.at = total
    yield from flat_rows


def _flat(row: Row, before: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _pieces(blobs: Blobs, file: MetricFile, offset: int, most: int) -> Iterator[bytes]:
    end = min(file.blob.size, offset + most)
    while offset < end:
        piece = blobs.read_from(file.container, file.blob.name, offset, min(PIECE, end - offset))
        if not piece:
            break
        offset += len(piece)
        yield piece


def _lines(blobs: Blobs, file: MetricFile, mark: Mark, most: int) -> Iterator[str]:
    """The file's lines after the mark. An unterminated last line counts only if the file won't grow."""
    rest = b""
    for piece in _pieces(blobs, file, mark.at, most):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            mark.at += len(line) + 1
            yield line.decode("utf-8", "replace")
    if rest and file.whole and mark.at + len(rest) >= file.blob.size:
        mark.at += len(rest)
        yield rest.decode("utf-8", "replace")
