"""The state that survives a restart: documents by kind and name, jobs with their labels, and the outbox of events.

A document and the events about it are written in one transaction, so a crash keeps both or neither. Every write is
passed to the operating system before the method returns. (A power cut may still lose the last writes.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from emulators.azureml.kernel.database import opened
from emulators.azureml.kernel.models import Json

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (kind TEXT, name TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, name));
CREATE TABLE IF NOT EXISTS outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY, name TEXT UNIQUE, archived INTEGER, ended INTEGER, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS archived_jobs ON jobs (archived, number);
CREATE INDEX IF NOT EXISTS live_jobs ON jobs (number) WHERE NOT ended;
CREATE TABLE IF NOT EXISTS labels (
    kind TEXT, name TEXT, value TEXT, number INTEGER, PRIMARY KEY (kind, name, value, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS label_names ON labels (kind, name, number);
CREATE INDEX IF NOT EXISTS labels_of ON labels (number);
"""


JobKey = tuple[int, str, bool, bool]  # number, name, whether it is archived, whether it has ended


class Store:
    def __init__(self, path: Path) -> None:
        self._db = opened(path, SCHEMA)

    def close(self) -> None:
        self._db.close()

    def put(self, kind: str, name: str, body: Json, events: Iterable[Json] = ()) -> None:
        """Insert or replace a document, and add `events` to the outbox."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, name, json.dumps(body)))
            self._db.executemany("INSERT INTO outbox (body) VALUES (?)", [(json.dumps(e),) for e in events])

    def delete(self, kind: str, name: str) -> None:
        """Delete a document; a missing document is skipped."""
        with self._db:
            self._db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))

    def all(self, kind: str) -> list[Json]:
        rows = self._db.execute("SELECT body FROM documents WHERE kind = ?", (kind,))
        return [json.loads(body) for (body,) in rows]

    def put_job(
        self, key: JobKey, body: Json, events: Iterable[Json], labels: Iterable[tuple[str, str, str]] | None
    ) -> None:
        """Insert or replace a job and its `labels` (kind, name, value; None leaves the labels unchanged), and add
        events.
        """
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?)", (*key, json.dumps(body)))
            if labels is not None:
                self._db.execute("DELETE FROM labels WHERE number = ?", key[:1])
                self._db.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", [(*label, key[0]) for label in labels])
            self._db.executemany("INSERT INTO outbox (body) VALUES (?)", [(json.dumps(e),) for e in events])

    def delete_job(self, number: int) -> None:
        with self._db:
            self._db.execute("DELETE FROM labels WHERE number = ?", (number,))
            self._db.execute("DELETE FROM jobs WHERE number = ?", (number,))

    def job(self, name: str) -> Json | None:
        found = self._db.execute("SELECT body FROM jobs WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else None

    def live_jobs(self) -> list[Json]:
        """Return the unfinished jobs, oldest first."""
        return [
            json.loads(body) for (body,) in self._db.execute("SELECT body FROM jobs WHERE NOT ended ORDER BY number")
        ]

    def newest_job(self) -> int:
        """Return the highest number of a job, or 0 without jobs."""
        return int(self._db.execute("SELECT coalesce(max(number), 0) FROM jobs").fetchone()[0])

    def jobs(
        self,
        archived: bool | None,
        labels: Sequence[tuple[str, str, str | None]],
        before: int | None,
        limit: int,
        without: str = "",
        job_type: str | None = None,
    ) -> list[Json]:
        """Return jobs, newest first, with all of the labels (value None matches any), without labels of the kind
        `without`, and of one jobType. The first label's index is searched first, so a listing by a rare label
        reads few rows. Without labels, the jobs' own order is used."""
        source, order = ("labels CROSS JOIN jobs USING (number)", "labels") if labels else ("jobs", "jobs")
        where, values = [f"{order}.number < ?"], list[object]([2**62 if before is None else before])
        if labels:
            where.append(_has(labels[0], "labels", values))
        for label in labels[1:]:
            condition = _has(label, "other", values)
            other = f"SELECT 1 FROM labels AS other WHERE other.number = jobs.number AND {condition}"  # noqa: S608
            where.append(f"EXISTS ({other})")
        if without:
            where.append("NOT EXISTS (SELECT 1 FROM labels AS own WHERE own.number = jobs.number AND own.kind = ?)")
            values.append(without)
        if job_type is not None:
            where.append("json_extract(jobs.body, '$.properties.jobType') = ?")
            values.append(job_type)
        if archived is not None:
            where.append("jobs.archived = ?")
            values.append(archived)
        rows = self._db.execute(
            f"SELECT jobs.body FROM {source} WHERE {' AND '.join(where)} "  # noqa: S608 (of constants)
            f"ORDER BY {order}.number DESC LIMIT ?",
            (*values, limit),
        )
        return [json.loads(body) for (body,) in rows]

    def pending(self, limit: int) -> list[tuple[int, Json]]:
        """Return the oldest events of the outbox, with the numbers for `delivered`."""
        rows = self._db.execute("SELECT number, body FROM outbox ORDER BY number LIMIT ?", (limit,))
        return [(number, json.loads(body)) for number, body in rows]

    def delivered(self, numbers: Iterable[int]) -> None:
        with self._db:
            self._db.executemany("DELETE FROM outbox WHERE number = ?", [(number,) for number in numbers])


def _has(label: tuple[str, str, str | None], table: str, values: list[object]) -> str:
    """Return the SQL condition for a label of a row of `table`. The values for the placeholders are added to
    `values`.
    """
    kind, name, value = label
    values += [kind, name] if value is None else [kind, name, value]
    return f"{table}.kind = ? AND {table}.name = ?" + ("" if value is None else f" AND {table}.value = ?")
