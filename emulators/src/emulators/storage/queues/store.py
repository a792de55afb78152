"""Queues and their messages, in one SQLite file. No HTTP here; the rules are those of Azure Queue Storage.

A message is found by its queue and the time from which it is visible, or by its id, so each operation costs the same
for any number of messages. Getting a message postpones this time, creates a new receipt and increments the dequeue
count. With the receipt of the last get or update, a client may delete or change the message, even if it is visible
again.
"""

from __future__ import annotations

import base64
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from emulators.storage.common.database import Store, transaction
from emulators.storage.common.errors import StorageError

FOR_EVER = 253402300799.0  # 9999-12-31T23:59:59Z, the service's word for a message that never expires
PURGED_AT_ONCE = 500

SCHEMA = """
CREATE TABLE IF NOT EXISTS queues (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, metadata TEXT);
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, queue INTEGER, id TEXT, receipt TEXT, inserted REAL, expires REAL,
    visible REAL, dequeues INTEGER, text TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS by_id ON messages (queue, id);
CREATE INDEX IF NOT EXISTS by_time ON messages (queue, visible);
CREATE INDEX IF NOT EXISTS by_end ON messages (expires);
"""
COLUMNS = "seq, id, receipt, inserted, expires, visible, dequeues, text"


@dataclass(frozen=True)
class Message:
    """A message. Times are Unix seconds. `receipt` is the latest pop receipt."""

    seq: int
    id: str
    receipt: str
    inserted: float
    expires: float
    visible: float
    dequeues: int
    text: str


class Queues(Store):
    """The queues of one account. Every method that takes a queue's name raises StorageError, 404, if it does not
    exist."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, SCHEMA, clock)
        self._ids = dict[str, int](self._db.execute("SELECT name, id FROM queues"))
        self._counts = Counter[int](dict(self._db.execute("SELECT queue, count(*) FROM messages GROUP BY queue")))

    # Queues

    def create(self, name: str, metadata: Mapping[str, str]) -> bool:
        """Create a queue. Returns False if the queue exists with the same metadata. Raises StorageError, 409, if
        the metadata differ."""
        if name in self._ids:
            if self.metadata(name) != dict(metadata):
                raise StorageError(409, "QueueAlreadyExists", "The specified queue already exists.")
            return False
        self._ids[name] = self._insert(name, json.dumps(dict(metadata)))
        return True

    def delete(self, name: str) -> None:
        """Delete a queue. `purge` removes its messages from the file in steps."""
        queue = self._id(name)
        with transaction(self._db):
            self._drop(queue)
            self.settings.drop(f"policies {name}")
        del self._ids[name]

    def clear(self, name: str) -> None:
        """Remove all messages by giving the queue a new number, under which there are no messages."""
        queue, metadata = self._id(name), self.metadata(name)
        with transaction(self._db):
            self._drop(queue)
            new = self._insert(name, json.dumps(metadata))
        self._ids[name] = new

    def metadata(self, name: str) -> dict[str, str]:
        (text,) = self._db.execute("SELECT metadata FROM queues WHERE id = ?", (self._id(name),)).fetchone()
        found: dict[str, str] = json.loads(text)
        return found

    def set_metadata(self, name: str, metadata: Mapping[str, str]) -> None:
        text = json.dumps(dict(metadata))
        self._db.execute("UPDATE queues SET metadata = ? WHERE id = ?", (text, self._id(name)))

    def policies(self, name: str) -> str:
        """Return the stored access policies as the XML that set them, or ''."""
        self._id(name)
        return self.settings.get(f"policies {name}")

    def set_policies(self, name: str, text: str) -> None:
        self._id(name)
        self.settings.put(f"policies {name}", text)

    def count(self, name: str) -> int:
        """Return the number of messages, including hidden ones. The number may include messages that expired in the
        last second."""
        return self._counts[self._id(name)]

    def listed(self, prefix: str, start: str, limit: int) -> list[tuple[str, dict[str, str]]]:
        """Return the names with this prefix, from `start` on, sorted, with their metadata."""
        found = self._db.execute(
            "SELECT name, metadata FROM queues WHERE name >= ? AND substr(name, 1, ?) = ? ORDER BY name LIMIT ?",
            (max(prefix, start), len(prefix), prefix, limit),
        )
        return [(name, json.loads(metadata)) for name, metadata in found]

    # Messages

    def put(self, name: str, text: str, delay: float, seconds_to_live: float | None) -> Message:
        """Add a message that becomes visible after `delay` seconds. With `seconds_to_live` None, the message never
        expires."""
        queue, now = self._id(name), self.clock()
        expires = FOR_EVER if seconds_to_live is None else min(now + seconds_to_live, FOR_EVER)
        values = (queue, str(uuid.uuid4()), _receipt(), now, expires, now + delay, 0, text)
        seq = self._db.execute(
            "INSERT INTO messages (queue, id, receipt, inserted, expires, visible, dequeues, text) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        ).lastrowid
        self._counts[queue] += 1
        return Message(seq or 0, *values[1:])

    def get(self, name: str, limit: int, seconds: float) -> list[Message]:
        """Return up to `limit` visible messages, longest visible first, and hide them for `seconds`."""
        queue, now = self._id(name), self.clock()
        taken = [
            replace(message, receipt=_receipt(), visible=now + seconds, dequeues=message.dequeues + 1)
            for message in self._visible(queue, now, limit)
        ]
        if not taken:
            return []
        with transaction(self._db):
            self._db.executemany(
                "UPDATE messages SET receipt = ?, visible = ?, dequeues = ? WHERE seq = ?",
                [(m.receipt, m.visible, m.dequeues, m.seq) for m in taken],
            )
        return taken

    def peek(self, name: str, limit: int) -> list[Message]:
        """Return the messages that `get` would return, without hiding them."""
        return list(self._visible(self._id(name), self.clock(), limit))

    def update(self, name: str, message: str, receipt: str, seconds: float, text: str | None) -> Message:
        """Hide a message for `seconds` from now, under a new pop receipt. If `text` is given, it replaces the
        message's text."""
        found, now = self._held(name, message, receipt), self.clock()
        new = replace(found, receipt=_receipt(), visible=now + seconds, text=found.text if text is None else text)
        self._db.execute(
            "UPDATE messages SET receipt = ?, visible = ?, text = ? WHERE seq = ?",
            (new.receipt, new.visible, new.text, new.seq),
        )
        return new

    def remove(self, name: str, message: str, receipt: str) -> None:
        """Delete a message permanently."""
        found = self._held(name, message, receipt)
        self._db.execute("DELETE FROM messages WHERE seq = ?", (found.seq,))
        self._counts[self._id(name)] -= 1

    def purge(self) -> bool:
        """Remove some expired messages and some messages of deleted queues. Returns whether there may be more."""
        gone = self._db.execute(
            "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE expires <= ? LIMIT ?) RETURNING queue",
            (self.clock(), PURGED_AT_ONCE),
        ).fetchall()
        for (queue,) in gone:
            self._counts[queue] -= 1
        return len(gone) == PURGED_AT_ONCE or self._dropped.purge(self._remove)

    def _id(self, name: str) -> int:
        if name not in self._ids:
            raise StorageError(404, "QueueNotFound", "The specified queue does not exist.")
        return self._ids[name]

    def _insert(self, name: str, metadata: str) -> int:
        return self._db.execute("INSERT INTO queues (name, metadata) VALUES (?, ?)", (name, metadata)).lastrowid or 0

    def _drop(self, queue: int) -> None:
        self._db.execute("DELETE FROM queues WHERE id = ?", (queue,))
        self._dropped.add(queue)

    def _visible(self, queue: int, now: float, limit: int) -> Iterator[Message]:
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM messages INDEXED BY by_time "  # noqa: S608 (a constant)
            "WHERE queue = ? AND visible <= ? AND expires > ? ORDER BY visible, seq LIMIT ?",
            (queue, now, now, limit),
        )
        return (Message(*row) for row in rows.fetchall())

    def _held(self, name: str, message: str, receipt: str) -> Message:
        queue, now = self._id(name), self.clock()
        row = self._db.execute(
            f"SELECT {COLUMNS} FROM messages WHERE queue = ? AND id = ? AND expires > ?",  # noqa: S608 (a constant)
            (queue, message, now),
        ).fetchone()
        if row is None:
            raise StorageError(404, "MessageNotFound", "The specified message does not exist.")
        found = Message(*row)
        if found.receipt != receipt:
            sentence = "The specified pop receipt did not match the pop receipt for a dequeued message."
            raise StorageError(400, "PopReceiptMismatch", sentence)
        return found

    def _remove(self, queue: int) -> int:
        """Remove some of the messages of a deleted queue. Returns the number of removed messages."""
        text = "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE queue = ? LIMIT ?)"
        gone = self._db.execute(text, (queue, PURGED_AT_ONCE)).rowcount
        if not gone:
            del self._counts[queue]
        return gone


def _receipt() -> str:
    return base64.b64encode(os.urandom(12)).decode()
