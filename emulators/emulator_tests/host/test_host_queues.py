"""The queue trigger with Azurite."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator_tests import azurites
from emulator_tests.host.conftest import SampleHost, StartHost
from emulators.host.queues.listener import Backoff, poison_name
from emulators.process import wait_for


def test_a_message_runs_once_and_is_deleted(sample_host: SampleHost) -> None:
    """The function gets body, id and dequeue count, and the message is deleted afterwards."""
    sample_host.send('{"name": "once"}')
    (seen,) = sample_host.wait_for_records("work", text="once")
    assert seen["tries"] == 1
    wait_for(lambda: sample_host.count() == 0, 60, "the deletion")


def test_a_failing_message_is_tried_again_then_poison(sample_host: SampleHost) -> None:
    """A failing message runs maxDequeueCount times, then moves to the poison queue unchanged. A message that
    succeeds in time does not move."""
    sample_host.send('{"fail": 9, "text": "\u00e4"}')
    sample_host.send('{"fail": 2}')
    wait_for(lambda: sample_host.bodies("-poison") and sample_host.count() == 0, 60, "the poison message")
    for text in ('"fail": 9', '"fail": 2'):
        assert [entry["tries"] for entry in sample_host.wait_for_records("work", text=text)] == [1, 2, 3]
    assert sample_host.bodies("-poison") == ['{"fail": 9, "text": "\u00e4"}']


def test_members_of_the_body_replace_metadata(sample_host: SampleHost) -> None:
    """A member "id" of a JSON body replaces the function's msg.id, in any case, as in Azure."""
    sample_host.send('{"ID": "mine", "name": "hijack"}')
    assert sample_host.wait_for_records("work", text="hijack")[0]["id"] == "mine"


def test_text_parameters_and_queue_outputs(sample_host: SampleHost) -> None:
    """A `str` parameter gets the body. The return value and Out become messages after the function succeeds."""
    sample_host.send("just text", "-plain")
    assert sample_host.wait_for_records("plain", 1)[0]["body"] == "just text"
    sample_host.send("this", "-in")
    wait_for(lambda: sample_host.count("-out") == 1 and sample_host.count("-more") == 2, 60, "the outputs")
    assert (sample_host.bodies("-out"), sample_host.bodies("-more")) == (["copied this"], ["one", "two"])


def test_a_slow_message_stays_hidden(start_host: StartHost) -> None:
    """The visibility timeout is renewed at half time, so a longer function runs once and deletes its message."""
    host = start_host(invisibility_seconds=2)
    host.send('{"seconds": 2.6}')
    host.wait_for_records("work", 1)
    wait_for(lambda: host.count() == 0, 60, "the deletion")
    assert len(host.records("work")) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_hosts_message_comes_back_after_its_lease(start_host: StartHost) -> None:
    """A killed host's message runs on the next host once the visibility timeout has passed, and not before."""
    first = start_host(invisibility_seconds=3)
    first.send('{"seconds": 60, "text": "held"}')
    first.wait_for_records("work", 1, text="held")
    os.kill(first.part.process.pid, signal.SIGKILL)
    second = start_host(like=first, invisibility_seconds=3)
    second.wait_for_records("work", 2, text="held")
    assert [entry["tries"] for entry in second.records("work")] == [1, 2]


def test_messages_run_at_the_same_time(sample_host: SampleHost) -> None:
    """Twenty messages of one second each take less than twenty seconds, because a batch does not wait for the
    earlier batch."""
    begin = time.monotonic()
    for number in range(20):
        sample_host.send(json.dumps({"seconds": 1, "number": number}))
    seen = sample_host.wait_for_records("work", 20, text='"number"')
    wait_for(lambda: sample_host.count() == 0, 60, "the deletions")
    assert time.monotonic() - begin < 20
    assert sorted(json.loads(entry["body"])["number"] for entry in seen) == list(range(20))


def test_base64_encoding_and_undecodable_messages(
    start_host: StartHost, sample_copy: Callable[[dict[str, Any]], Path]
) -> None:
    """With messageEncoding base64 a body is decoded. A body that is not base64 moves to the poison queue unchanged,
    without a run."""
    app = sample_copy({"extensions": {"queues": {"maxPollingInterval": "00:00:00.100"}}})
    host = start_host(app=str(app))
    host.send("eyJzZWNvbmRzIjogMH0=")
    host.send("not base64!")
    wait_for(lambda: host.count("-poison") == 1 and host.count() == 0, 60, "both messages")
    assert [entry["body"] for entry in host.records("work")] == ['{"seconds": 0}']
    assert host.bodies("-poison") == ["not base64!"]


def test_an_outage_of_storage_is_survived(start_host: StartHost, tmp_path: Path) -> None:
    """When Azurite returns after an outage, the queues continue within seconds. HTTP works during the outage."""
    with azurites.started(tmp_path / "azurite") as own:
        host = start_host({"AzureWebJobsStorage": own.connection_string})
        host.connection = own.connection_string
        host.send('{"name": "before"}')
        host.wait_for_records("work", text="before")
        own.stop()
        assert host.call("/api/text").text == "plain text"
        own.restart_if_dead()
        host.send('{"name": "after"}')
        host.wait_for_records("work", text="after")
        host.part.stop()


def test_an_empty_queue_is_asked_less_and_less() -> None:
    """The wait between polls doubles from 100 ms to the maximum, within a fifth, and is reset by a message."""
    backoff = Backoff(1.0)
    waits = [backoff.next() for _ in range(6)]
    for wait, expected in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0], strict=True):
        assert 0.8 * expected <= wait <= 1.2 * expected
    backoff.reset()
    assert backoff.next() <= 0.12


def test_poison_queues_have_no_poison_queue() -> None:
    """A poison queue, and a queue whose poison name would be too long, have no poison queue. Their messages stay
    hidden."""
    assert poison_name("work") == "work-poison"
    assert poison_name("work-poison") is None
    assert poison_name("q" * 57) is None
