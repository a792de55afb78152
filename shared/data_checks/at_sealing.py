"""Check the data of a complete drop. A long check goes on in the next message, with the pictures read so far."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice

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
from shared.runs.data import CARD, MOST_LISTED, unpacked
from shared.runs.features import Closing, Opinion
from trainers.data_checks.check import Task, check
from trainers.data_checks.data import AT_ONCE, Unfinished
from trainers.data_checks.pictures import Picture
from trainers.data_checks.source import File

BUDGET = timedelta(seconds=60)  # of one message
CARD_LIMIT = 4 << 20  # bytes of a card, or of the pictures of a check that goes on


@dataclass(frozen=True)
class BlobSource:
    """A drop as a source of a check (trainers/data_checks/source.py): ranges of its blobs."""

    blobs: Blobs
    key: DropKey
    files: Sequence[File]
    whole: bool = False

    def read(self, path: str, offset: int, size: int) -> bytes:
        name = str(self.key) if self.key.is_archive() and path == self.key.name else f"{self.key.prefix()}{path}"
        return self.blobs.read_from(DROPS_CONTAINER, name, offset, size) if size > 0 else b""


def before_sealing(ports: WorkspacePorts, closing: Closing) -> Opinion:
    """Return what the check of the drop's data says, and keep the card of data that is not refused."""
    rule = closing.route.data
    if rule.mode is CheckMode.OFF:
        return Opinion()
    place = f"{closing.folder}/{CARD}"
    until = ports.clock() + BUDGET
    task = Task(
        declared_for(closing.route, ports.trainers, closing.own_job, closing.declared),
        settings_of(rule),
        partial=closing.listing is None,
        late=lambda: ports.clock() > until,
        known=_known(ports.blobs, place) if closing.blobs > AT_ONCE else {},
        seed=closing.folder,
    )
    try:
        said = judged(check(BlobSource(ports.blobs, closing.drop, _files(ports.blobs, closing)), task), rule.mode)
    except Unfinished as unfinished:
        ports.blobs.write(OUTPUT_CONTAINER, place, _packed(unfinished.read), "application/json")
        return Opinion(later=True)
    if said.verdict is CheckVerdict.REFUSED:
        if task.known:
            ports.blobs.remove(OUTPUT_CONTAINER, [place])
        return Opinion(refused=" ".join(said.refusals))
    ports.blobs.write(OUTPUT_CONTAINER, place, msgspec.json.encode(said), "application/json")
    return Opinion(note=_note(said))


def kept(blobs: Blobs, folder: str) -> DataCheck | None:
    """Return the check that is kept in a generation's folder, None if there is none."""
    try:
        return decode(blobs.read(OUTPUT_CONTAINER, f"{folder}/{CARD}", CARD_LIMIT), DataCheck)
    except NotFound:
        return None


def _note(said: DataCheck) -> str:
    count = len(said.refusals) + len(said.warnings)
    return f"A check of its data has {count} warning{'s' if count > 1 else ''}." if count else ""


def _files(blobs: Blobs, closing: Closing) -> list[File]:
    """Return the drop's files: all of the list, or the first MOST_LISTED of a drop that has more."""
    listed = (
        islice(drop_blobs(blobs, closing.drop), MOST_LISTED) if closing.listing is None else unpacked(closing.listing)
    )
    return [_file(closing.drop, blob) for blob in listed if blob.metadata.get("hdi_isfolder") != "true"]


def _file(key: DropKey, blob: Blob) -> File:
    path = key.name if blob.name == str(key) else blob.name.removeprefix(key.prefix())
    return File(path, blob.size, blob.md5)


def _packed(read: dict[str, Picture]) -> bytes:
    return json.dumps({path: list(asdict(picture).values()) for path, picture in read.items()}).encode()


def _known(blobs: Blobs, place: str) -> dict[str, Picture]:
    """Return the pictures that an earlier message read; none if another message has written the card since."""
    try:
        rows = json.loads(blobs.read(OUTPUT_CONTAINER, place, CARD_LIMIT))
    except (NotFound, ValueError):
        return {}
    return {path: Picture(*row) for path, row in rows.items() if isinstance(row, list) and len(row) == 5}
