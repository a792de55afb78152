"""Decide on which data a run trained, as far as it can be proved. Pure.

Every write gives a blob a new etag, so a blob with the recorded etag has not been written since. For any other blob,
only the last write is known. A job that started after the last write read the current content; what an earlier job read
is unknown.

A job's last start can prove that the job read other data. It can't prove that the job never did, because Azure ML may
have started the job before, on a node that it lost. `recorded` therefore requires that the same bytes were already in
place when the run was made. A file that was added and deleted again before its event arrived leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.jobs.model import JobTimes
from shared.kernel.storage import Blob

CLOCKS = timedelta(seconds=5)  # a blob's time has whole seconds, and two services' clocks differ
NAMED = 5  # names in a sentence


class TrainedOn(StrEnum):
    """Verdicts in ascending order of severity. Of several checks of a run, the most severe verdict stays."""

    RECORDED = "recorded"
    UNKNOWN = "unknown"
    OTHER = "other"


@dataclass(frozen=True)
class ChangedFile:
    """A file with a write, addition or deletion since the record.

    `written` is the time of the last write, None if the file is deleted. `same`: whether the bytes are the same; None
    if unknown.
    """

    name: str
    written: datetime | None
    same: bool | None = None

    def in_place(self, then: datetime) -> bool:
        """Whether the current content already existed at `then`."""
        return self.written is not None and self.written + CLOCKS <= then


@dataclass(frozen=True)
class DataVerdict:
    """The verdict, and an explanation for people; '' if the data is as recorded."""

    trained_on: TrainedOn
    why: str = ""


def differences(recorded: Mapping[str, Blob], present: Mapping[str, Blob]) -> Iterator[ChangedFile]:
    """The files whose etags differ from the recorded etags, by name."""
    for name in sorted(recorded.keys() | present.keys()):
        before, now = recorded.get(name), present.get(name)
        if now is None:
            yield ChangedFile(name, None)
        elif before is None:
            yield ChangedFile(name, now.last_modified, same=False)
        elif before.etag.strip('"') != now.etag.strip('"'):
            yield ChangedFile(name, now.last_modified, _same_bytes(before, now))


def _same_bytes(before: Blob, now: Blob) -> bool | None:
    if before.size != now.size:
        return False
    return before.md5 == now.md5 if before.md5 and now.md5 else None


def judge(drop: str, found: Sequence[ChangedFile], jobs: Sequence[JobTimes], made: datetime) -> DataVerdict:
    """The verdict on these differences for a run from `made` with these jobs.

    Jobs that never started don't count. One job that read other data is proof, however unclear the other jobs and
    files.
    """
    begun = [job.began for job in jobs if job.began]
    other = [d.name for d in found if d.same is False and any(d.in_place(began) for began in begun)]
    if other:
        held = f"Drop {drop} had other data when the job started than when the run was created"
        return DataVerdict(TrainedOn.OTHER, f"{held}: {_some(other)}.")
    doubts = [d for d in found if not (d.same and d.in_place(made))]
    if not doubts:
        return DataVerdict(TrainedOn.RECORDED)
    what = _some([f"{d.name} {_words(d)}" for d in doubts])
    return DataVerdict(TrainedOn.UNKNOWN, f"Whether it trained on the recorded data is unknown: {what}. {_when(jobs)}")


def _words(difference: ChangedFile) -> str:
    if not difference.written:
        return "is gone"
    return f"was written {'again, with the same bytes, ' if difference.same else ''}at {_time(difference.written)}"


def _when(jobs: Sequence[JobTimes]) -> str:
    begun = sorted(job.began for job in jobs if job.began)
    if not begun:
        return "Azure ML does not report when its job started to read."
    ended = sorted(job.ended for job in jobs if job.began and job.ended)
    until = f", the last ended at {_time(ended[-1])}" if len(ended) == len(begun) else ""
    return f"Its first job began at {_time(begun[0])}{until}." if len(begun) > 1 else _one(begun[0], ended)


def _one(began: datetime, ended: Sequence[datetime]) -> str:
    return f"Its job began at {_time(began)}{f' and ended at {_time(ended[0])}' if ended else ''}."


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "an unknown time"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
