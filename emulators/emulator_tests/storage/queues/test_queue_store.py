"""What our queues store: compared with a model, across restarts and kills, and with many messages."""

from __future__ import annotations

import signal
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.storage.queue import QueueClient
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from emulator_tests.storage import inside
from emulators import process
from emulators.process import wait_for
from emulators.storage import services
from emulators.storage.common.errors import StorageError
from emulators.storage.common.naming import checked_name
from emulators.storage.queues.service import QUEUE_NAME
from emulators.storage.queues.store import PURGED_AT_ONCE, Queues


class Time:
    """A clock that the test moves."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Expected:
    """A message in the model."""

    text: str
    receipt: str
    visible: float
    expires: float
    dequeues: int = 0


class QueueRules(RuleBasedStateMachine):
    """For any order of operations, with a moving clock and reopened files, the store equals the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "queues.sqlite"
        self.clock = Time()
        self.store = Queues(self.path, self.clock)
        self.store.create("q", {})
        self.model: dict[str, Expected] = {}
        self.old: list[tuple[str, str]] = []  # invalid receipts

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def alive(self) -> dict[str, Expected]:
        return {key: one for key, one in self.model.items() if one.expires > self.clock.now}

    @rule(delay=st.sampled_from([0, 0, 3, 10]), life=st.sampled_from([None, 4, 20]))
    def put(self, delay: float, life: float | None) -> None:
        text = f"text {len(self.model)}"
        sent = self.store.put("q", text, delay, life)
        expires = float("inf") if life is None else self.clock.now + life
        self.model[sent.id] = Expected(text, sent.receipt, self.clock.now + delay, expires)

    @rule(limit=st.integers(1, 5), seconds=st.sampled_from([1, 5]))
    def get(self, limit: int, seconds: float) -> None:
        waiting = {key: one for key, one in self.alive().items() if one.visible <= self.clock.now}
        order = sorted(waiting, key=lambda key: waiting[key].visible)  # stable: equal times keep their order
        found = self.store.get("q", limit, seconds)
        assert [message.id for message in found] == order[:limit]
        for message in found:
            one = self.model[message.id]
            self.old.append((message.id, one.receipt))
            one.receipt, one.visible, one.dequeues = message.receipt, self.clock.now + seconds, one.dequeues + 1
            assert (message.text, message.dequeues) == (one.text, one.dequeues)

    @rule(data=st.data(), text=st.sampled_from([None, "other"]))
    def update(self, data: st.DataObject, text: str | None) -> None:
        if alive := self.alive():
            key = data.draw(st.sampled_from(list(alive)))
            one = self.model[key]
            new = self.store.update("q", key, one.receipt, 2, text)
            self.old.append((key, one.receipt))
            one.receipt, one.visible, one.text = new.receipt, self.clock.now + 2, text or one.text

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if alive := self.alive():
            key = data.draw(st.sampled_from(list(alive)))
            self.store.remove("q", key, self.model.pop(key).receipt)

    @rule(data=st.data())
    def use_an_old_receipt(self, data: st.DataObject) -> None:
        if self.old:
            key, receipt = data.draw(st.sampled_from(self.old))
            code = "PopReceiptMismatch" if key in self.alive() else "MessageNotFound"
            with pytest.raises(StorageError, match=code):
                self.store.remove("q", key, receipt)

    @rule()
    def clear(self) -> None:
        self.store.clear("q")
        self.model.clear()

    @rule(seconds=st.sampled_from([1, 2, 5]))
    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Queues(self.path, self.clock)

    @invariant()
    def counted(self) -> None:
        while self.store.purge():
            pass
        assert self.store.count("q") == len(self.alive())


QueueRules.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestQueueRules = QueueRules.TestCase


@pytest.mark.parametrize("name", ["a-b", "abc", "0-0-0", "a" * 63])
def test_a_queues_name_has_3_to_63_characters(name: str) -> None:
    """The shortest and the longest names are accepted, also with a hyphen in the middle."""
    assert checked_name(name, QUEUE_NAME) == name


def test_what_is_deleted_leaves_the_file(tmp_path: Path) -> None:
    """Messages of deleted and cleared queues are purged in bounded steps, and other messages are kept."""
    queues = Queues(tmp_path / "queues.sqlite")
    for name in ("deleted", "cleared", "kept"):
        queues.create(name, {})
        for number in range(PURGED_AT_ONCE + 1 if name == "deleted" else 3):
            queues.put(name, str(number), 0, None)
    queues.delete("deleted")
    queues.clear("cleared")
    queues.put("cleared", "new", 0, None)
    steps = 0
    while queues.purge():
        steps += 1
    assert steps == 5  # three for the first, the last of which finds nothing; two for the second
    assert [message.text for message in queues.peek("cleared", 5)] == ["new"]
    assert len(queues.peek("kept", 5)) == 3
    queues.close()
    assert Queues(tmp_path / "queues.sqlite").count("kept") == 3


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """After SIGKILL during sending, a restart at the same address has every message whose send returned."""
    running = services.start(tmp_path)
    client = QueueClient.from_connection_string(running.connection_string, "work", retry_total=0)
    client.create_queue()
    sent: list[str] = []

    def send() -> None:
        for number in range(100_000):
            try:
                client.send_message(str(number))
            except AzureError:
                return
            sent.append(str(number))

    sender = threading.Thread(target=send)
    sender.start()
    wait_for(lambda: len(sent) > 50, 60, "some messages")
    running.part.process.send_signal(signal.SIGKILL)
    sender.join(30)
    running.part.stop()
    with services.start(tmp_path) as again:
        assert again.queue_url == running.queue_url
        found = {message.content for message in client.receive_messages(messages_per_page=32)}
        assert set(sent) <= found
        assert len(found) - len(sent) <= 1  # a message whose answer was lost


def test_no_operation_scans(tmp_path: Path) -> None:
    """Each SQL statement of an operation uses an index, so its cost does not grow with the number of messages."""
    queues = Queues(tmp_path / "queues.sqlite")
    queues.create("q", {})
    statements: list[str] = []
    queues._db.set_trace_callback(statements.append)
    queues.put("q", "x", 0, None)
    (got,) = queues.get("q", 1, 30)
    new = queues.update("q", got.id, got.receipt, 0, "y")
    queues.peek("q", 1)
    queues.remove("q", new.id, new.receipt)
    queues.purge()
    queues._db.set_trace_callback(None)
    asked = [text for text in statements if text.startswith(("SELECT", "UPDATE", "DELETE")) and "dropped" not in text]
    plans = [row[3] for text in asked for row in queues._db.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert len(plans) >= len(asked) >= 7
    assert [line for line in plans if line.startswith("SCAN")] == []


def test_one_process_serves_a_folder(tmp_path: Path) -> None:
    """A second process on the same data is refused with the file's name, and the first keeps running."""
    with (
        inside.start(tmp_path) as running,
        QueueClient.from_connection_string(running.connection_string, "one") as queue,
    ):
        queue.create_queue()
        with pytest.raises(process.PartFailed, match=r"blobs\.sqlite can't be opened; is another process serving it"):
            services.start(tmp_path)
        queue.send_message("x")
