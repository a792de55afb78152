"""Check the data of a complete drop. A long check continues in the next message, with the results so far.

Meanwhile the drop shows the progress of the check. The results so far are a blob beside the future card. So a message
that is delivered twice, or repeated after a crash, reads some files again and comes to the same verdict.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any

import msgspec

from shared.data_checks.model import CheckVerdict, DataCheck
from shared.data_checks.rule import declared_for, judged, settings_of
from shared.jobs.data_rule import CheckMode
from shared.jobs.ports import WorkspacePorts
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound
from shared.kernel.parsing import decode
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs
from shared.runs.content import drop_blobs
from shared.runs.data import CARD, MOST_LISTED, PROGRESS
from shared.runs.features import Closing, Opinion
from trainers.data_checks.check import Task, check
from trainers.data_checks.data import Unfinished
from trainers.data_checks.source import File

BUDGET = timedelta(seconds=60)  # for the reading of one message
PATIENCE = timedelta(minutes=3)  # for one file that must be read at once; then the check ends without the file
CARD_LIMIT = 4 << 20  # bytes of a card
PROGRESS_LIMIT = 64 << 20  # packed bytes of a check's progress; hashes of half a million images have 6 MiB


@dataclass(frozen=True)
class BlobSource:
    """A drop as a source of a check (trainers/data_checks/source.py): ranges of its blobs."""

    blobs: Blobs
    key: DropKey
    files: Iterable[File]
    whole: bool = False

    def read(self, path: str, offset: int, size: int) -> bytes:
        name = str(self.key) if self.key.is_archive() and path == self.key.name else f"{self.key.prefix()}{path}"
        return self.blobs.read_from(DROPS_CONTAINER, name, offset, size) if size > 0 else b""


def before_sealing(ports: WorkspacePorts, closing: Closing) -> Opinion:
    """Return the result of the check of the drop's data, and store the card of data that is not refused."""
    rule, blobs = closing.route.data, ports.blobs
    if closing.checking not in ("", closing.folder):  # the check was of other content; an upload ended it
        blobs.remove(OUTPUT_CONTAINER, [f"{closing.checking}/{PROGRESS}"])
    if rule.mode is CheckMode.OFF:
        return Opinion()
    began = ports.clock()
    task = Task(
        declared_for(closing.route, ports.trainers, closing.own_job, closing.declared),
        settings_of(rule),
        partial=closing.files is None,
        late=lambda: ports.clock() - began > BUDGET,
        over=lambda: ports.clock() - began > PATIENCE,
        known=_known(blobs, closing.folder) if closing.checking == closing.folder else {},
        seed=closing.folder,
    )
    try:
        said = judged(check(BlobSource(blobs, closing.drop, _files(blobs, closing)), task), rule.mode)
    except Unfinished as unfinished:
        packed = gzip.compress(json.dumps(unfinished.known).encode(), 1)
        blobs.write(OUTPUT_CONTAINER, f"{closing.folder}/{PROGRESS}", packed, "application/gzip")
        return Opinion(later=f"Checking its data: {unfinished.done:,} of {unfinished.wanted:,} files were read.")
    if closing.checking:
        blobs.remove(OUTPUT_CONTAINER, [f"{closing.folder}/{PROGRESS}"])
    if said.verdict is CheckVerdict.REFUSED:
        return Opinion(refused=" ".join(said.refusals))
    blobs.write(OUTPUT_CONTAINER, f"{closing.folder}/{CARD}", msgspec.json.encode(said), "application/json")
    return Opinion(note=_note(said))


def kept(blobs: Blobs, folder: str) -> DataCheck | None:
    """Return the stored check in a generation's folder; None if there is none."""
    try:
        return decode(blobs.read(OUTPUT_CONTAINER, f"{folder}/{CARD}", CARD_LIMIT), DataCheck)
    except NotFound:
        return None


def _note(said: DataCheck) -> str:
    count = len(said.refusals) + len(said.warnings)
    return f"A check of its data has {count} warning{'s' if count > 1 else ''}." if count else ""


def _files(blobs: Blobs, closing: Closing) -> Iterator[File]:
    """Yield the drop's files: all files, or the first MOST_LISTED files of a drop that has more than a message
    lists.
    """
    listed = closing.files() if closing.files else islice(drop_blobs(blobs, closing.drop), MOST_LISTED)
    return (_file(closing.drop, blob) for blob in listed)


def _file(key: DropKey, blob: Blob) -> File:
    path = key.name if blob.name == str(key) else blob.name.removeprefix(key.prefix())
    return File(path, blob.size, blob.md5)


def _known(blobs: Blobs, folder: str) -> dict[str, Any]:
    """Return the results of an earlier message; nothing if another message has ended the check since."""
    try:
        return dict(json.loads(gzip.decompress(blobs.read(OUTPUT_CONTAINER, f"{folder}/{PROGRESS}", PROGRESS_LIMIT))))
    except NotFound:
        return {}
