"""What survives a stop and a kill of the process."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from emulator_tests import azurites
from emulators.process import wait_for


def test_writes_made_while_it_was_down_are_told_after_a_restart(
    new_grid: Any, to_queue: Any, in_container: Any, store: Any
) -> None:
    """After a restart the log is read from the last position, and no delivered event is repeated."""
    queue, container = store.queue(), store.container()
    grid = new_grid([to_queue("storage", queue, filter=in_container(container.container_name))])
    container.upload_blob("before", b"x")
    grid.barrier()
    assert grid.part.stop() == 0
    container.upload_blob("while", b"x")
    grid.start()
    container.upload_blob("after", b"x")
    grid.barrier()
    told = sorted(store.messages(queue), key=lambda event: str(event["data"]["sequencer"]))
    assert [event["subject"].rsplit("/")[-1] for event in told] == ["before", "while", "after"]


def test_a_write_is_not_passed_over_while_azurite_is_away(
    new_grid: Any, to_queue: Any, tmp_path: Path, custom_event: Any
) -> None:
    """A write in the log waits until Azurite is back, and its event then has the blob's facts."""
    with azurites.started(tmp_path) as storage:
        with (
            BlobServiceClient.from_connection_string(storage.connection_string) as blobs,
            QueueServiceClient.from_connection_string(storage.connection_string) as queues,
        ):
            queues.create_queue("told").close()
            blobs.create_container("drops")
            grid = new_grid([to_queue("storage", "told")], storage)
            assert grid.part.stop() == 0
            blobs.get_blob_client("drops", "waiting").upload_blob(b"12345")
            storage.stop()
            grid.start()
            assert grid.get("/control/barrier?timeout=1").status_code == 504
            assert storage.restart_if_dead()
            grid.barrier()
            with queues.get_queue_client("told") as queue:
                (message,) = queue.receive_messages()
        assert json.loads(base64.b64decode(message.content))["data"]["contentLength"] == 5
        grid.part.stop()


def test_a_killed_process_loses_nothing(new_grid: Any, to_queue: Any, in_container: Any, store: Any) -> None:
    """After a kill during a burst with delayed deliveries, every event arrives. A repeated event has the same id."""
    queue, container = store.queue(), store.container()
    grid = new_grid([to_queue("storage", queue, filter=in_container(container.container_name))])
    grid.faults(delay_seconds=[0, 1], seed=1)
    for number in range(60):
        container.upload_blob(f"{number:02}", b"x")
        if number == 30:
            grid.kill()
            grid.start()
    grid.barrier()
    told = store.messages(queue)
    ids = {event["subject"].rsplit("/")[-1]: event["id"] for event in told}
    assert sorted(ids) == [f"{number:02}" for number in range(60)]
    assert all(ids[event["subject"].rsplit("/")[-1]] == event["id"] for event in told)
    assert max(Counter(event["id"] for event in told).values()) <= 2


def test_published_events_are_safe_once_accepted(new_grid: Any, to_queue: Any, custom_event: Any, store: Any) -> None:
    """An event that was answered with 200 is delivered even after an immediate kill, and so is the next event."""
    queue = store.queue()
    grid = new_grid([to_queue("team", queue)])
    grid.faults(delay_seconds=[1, 1])
    grid.publish(*[custom_event(str(number)) for number in range(5)]).raise_for_status()
    grid.kill()
    assert store.messages(queue) == []
    grid.start()
    grid.publish(custom_event("5")).raise_for_status()
    assert grid.barrier()["pending"] == 0
    assert sorted(event["id"] for event in store.messages(queue)) == ["0", "1", "2", "3", "4", "5"]


def test_attempts_are_counted_over_a_restart(new_grid: Any, to_queue: Any, custom_event: Any, store: Any) -> None:
    """After a restart a failed delivery continues with its next attempt. The schedule does not start again."""
    rest = {"retryPolicy": {"maxDeliveryAttempts": 2}}
    grid = new_grid([to_queue("team", "not-there", **rest)], retry_time_scale=0.003)
    grid.publish(custom_event()).raise_for_status()
    wait_for(lambda: grid.counts()["attempts_failed"], 60, "the first attempt")
    grid.kill()
    grid.start()
    state = grid.barrier()
    assert (state["attempts_failed"], state["dropped"]) == (0, 1)


def test_events_of_a_removed_subscription_are_forgotten(
    new_grid: Any, to_queue: Any, custom_event: Any, store: Any
) -> None:
    """Removing a subscription from the configuration drops its undelivered events."""
    grid = new_grid([to_queue("team", "not-there")])
    grid.publish(custom_event()).raise_for_status()
    grid.kill()
    grid.config.write_text(grid.config.read_text().replace("to-not-there", "another-name"))
    grid.start()
    assert grid.barrier()["pending"] == 0
