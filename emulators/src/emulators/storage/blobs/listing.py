"""The blobs on a page of a list, sorted by name. Each blob follows its snapshots and previous versions, which are
sorted by time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace

from emulators.storage.blobs.model import Blob, Listed, after, blob_of

FEW_ROWS, ROWS_AT_ONCE = 16, 1000
ITSELF = "~"  # in place of a snapshot's or version's time; sorts after all times
PREVIOUS = "coalesce(json_extract(facts, '$.previous'), 0)"  # whether a deleted row is a previous version

Place = tuple[str, str]  # a name, and the time of a snapshot, or ITSELF, or '' for the first entry
Row = tuple[str, str, str | None, int]  # name, time, facts, and whether no current version exists


@dataclass(frozen=True)
class Wanted:
    """A page of a listing: at most `limit` entries from `start` on. Names that contain the delimiter after the
    prefix are grouped into one entry for each part up to the delimiter. With `uncommitted`, blobs that have only
    uncommitted blocks are listed too. With `versions`, previous versions are listed. With `orphans`, the last
    version of each blob without a current version is listed. With `deleted`, deleted blobs that can be restored
    are listed, with `snapshots` also their snapshots, and with `versions` also their versions."""

    prefix: str
    delimiter: str
    start: Place
    limit: int
    uncommitted: bool = False
    snapshots: bool = False
    versions: bool = False
    orphans: bool = False
    deleted: bool = False


def listed(db: sqlite3.Connection, container: int, wanted: Wanted) -> Iterator[Listed]:
    prefix, delimiter, limit = wanted.prefix, wanted.delimiter, wanted.limit
    start, end = max((prefix, ""), wanted.start), after(prefix)
    batch = FEW_ROWS if delimiter else ROWS_AT_ONCE
    while limit > 0:
        asked = min(limit, batch)
        rows = _rows(db, wanted, {"container": container, "start": start[0], "time": start[1], "end": end}, asked)
        group = ""
        for name, _, facts, alone in rows:
            limit -= 1
            at = name.find(delimiter, len(prefix)) if delimiter else -1
            if at >= 0:
                group = name[: at + len(delimiter)]
                yield group, None
                break  # continue after all names with this prefix
            blob = blob_of(facts) if facts else Blob("BlockBlob")
            yield name, replace(blob, alone=True) if alone else blob
        following = (after(group), "") if group else (rows[-1][0], rows[-1][1] + "\0") if len(rows) == asked else None
        if following is None or following[0] is None:
            return
        start, batch = (following[0], following[1]), FEW_ROWS if group else min(2 * batch, ROWS_AT_ONCE)


def _rows(db: sqlite3.Connection, wanted: Wanted, values: dict[str, object], limit: int) -> list[Row]:
    below = "" if values["end"] is None else "AND name < :end"
    # The blob itself is the last row of its name, so it is on the page unless the page begins after it.
    at_start = ">=" if str(values["time"]) <= ITSELF else ">"
    within = f"container = :container AND name {at_start} :start {below}"
    text = f"SELECT name, '{ITSELF}' AS time, facts, 0 FROM blobs WHERE {within}"  # noqa: S608
    if wanted.uncommitted:
        text += (
            f" UNION ALL SELECT DISTINCT name, '{ITSELF}', NULL, 0 FROM blocks AS b WHERE {within} AND NOT EXISTS"  # noqa: S608
            " (SELECT 1 FROM blobs WHERE container = b.container AND name = b.name)"
        )
    behind = f"container = :container AND (name, time) >= (:start, :time) {below}"
    alone = "NOT EXISTS (SELECT 1 FROM blobs WHERE container = v.container AND name = v.name)"
    if wanted.snapshots:
        text += f" UNION ALL SELECT name, time, facts, 0 FROM snapshots WHERE {behind}"  # noqa: S608
    if wanted.versions:
        text += f" UNION ALL SELECT name, time, facts, {alone} FROM versions AS v WHERE {behind}"  # noqa: S608
    elif wanted.orphans:  # of several rows of a name, SQLite returns the one with max(time)
        text += (
            f" UNION ALL SELECT name, max(time), facts, 1 FROM versions AS v WHERE {behind} AND {alone} GROUP BY name"  # noqa: S608
        )
    if wanted.deleted:
        which = [f"time = '{ITSELF}' AND {alone}"]
        which += [f"time < '{ITSELF}' AND NOT {PREVIOUS}"] if wanted.snapshots else []
        which += [PREVIOUS] if wanted.versions else []
        text += f" UNION ALL SELECT name, time, facts, 0 FROM deleted AS v WHERE {behind} AND ({' OR '.join(which)})"  # noqa: S608
    order = "name, time" if wanted.snapshots or wanted.versions or wanted.orphans or wanted.deleted else "name"
    return db.execute(f"{text} ORDER BY {order} LIMIT :limit", {**values, "limit": limit}).fetchall()
