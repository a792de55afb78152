"""admin replay on a real Azurite: poison messages and dead letters go back to their queues, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CliError
from cli.profiles import Profile
from cli.replay import Account, opened, replay
from emulators.storage import azurite
from local import record

QUEUES = ("drop-events", "job-events")
EVENT = {"id": "1", "eventType": "Microsoft.Storage.BlobCreated", "subject": "/s", "data": {"api": "PutBlob"}}
OBITUARY = {"deadLetterReason": "MaxDeliveryAttemptsExceeded", "deliveryAttempts": 30, "publishTime": "2026-01-01"}
Messages = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture
def account(storage: azurite.Azurite) -> Iterator[Account]:
    """The account with empty queues, and a container of dead letters that is empty too."""
    with opened(Profile("local", "", connection_string=storage.connection_string), "") as found:
        names = {queue.name for queue in found.queues.list_queues()}
        for name in (name + end for name in QUEUES for end in ("", "-poison")):
            if name in names:
                found.queues.get_queue_client(name).clear_messages()
            else:
                found.queues.create_queue(name)
        if found.dead_letters.exists():
            for blob in found.dead_letters.list_blobs():
                found.dead_letters.delete_blob(blob.name)
        else:
            found.dead_letters.create_container()
        yield found


def messages(account: Account, queue: str) -> list[str]:
    return [message.content for message in account.queues.get_queue_client(queue).peek_messages(32)]


def put(account: Account, queue: str, *texts: str) -> None:
    for text in texts:
        account.queues.get_queue_client(queue).send_message(text)


def test_poison_messages_go_back(account: Account) -> None:
    """Every message, more than one request gives, is in its queue as it was, and none is left or in another queue."""
    wanted = [f"no event {number}" for number in range(40)]
    put(account, "drop-events-poison", *wanted)
    done = replay(account)
    assert done.queues["drop-events"].poison == 40
    found = account.queues.get_queue_client("drop-events").receive_messages(messages_per_page=32)
    assert sorted(message.content for message in found) == sorted(wanted)
    assert messages(account, "drop-events-poison") == messages(account, "job-events") == []


def test_one_queue_alone(account: Account) -> None:
    """With a queue chosen, what belongs to others stays, and is not told as what belongs nowhere."""
    put(account, "drop-events-poison", "a")
    put(account, "job-events-poison", "b")
    account.dead_letters.upload_blob("DROP-EVENTS/2026/1/1/1/x.json", json.dumps([EVENT | OBITUARY]))
    done = replay(account, "job-events")
    assert (done.unreadable, len(list(account.dead_letters.list_blobs()))) == ([], 1)
    assert messages(account, "job-events") == ["b"]
    assert messages(account, "drop-events-poison") == ["a"]


def test_a_dry_run_moves_nothing(account: Account) -> None:
    """A dry run counts both kinds and leaves all where it is."""
    put(account, "drop-events-poison", "a")
    account.dead_letters.upload_blob("topic/JOB-EVENTS/2026/1/1/1/x.json", json.dumps([EVENT | OBITUARY]))
    done = replay(account, dry_run=True)
    assert (done.queues["drop-events"].poison, done.queues["job-events"].dead_letters) == (1, 1)
    assert messages(account, "drop-events-poison") == ["a"]
    assert messages(account, "job-events") == []


@pytest.mark.parametrize("below", ["DROP-EVENTS/2026/1/1/1", "a-topic/DROP-EVENTS/2026/1/1/1"])
@pytest.mark.parametrize("lower", [False, True])
def test_dead_letters_become_the_events_that_they_were(account: Account, below: str, lower: bool) -> None:
    """Each event of a dead letter, of either schema, comes back without what Event Grid added; its blob goes."""
    added = {key.lower() if lower else key: value for key, value in OBITUARY.items()}
    account.dead_letters.upload_blob(f"{below}/x.json", json.dumps([EVENT | added, EVENT | added | {"id": "2"}]))
    done = replay(account)
    assert done.queues["drop-events"].dead_letters == 2
    assert [json.loads(text) for text in messages(account, "drop-events")] == [EVENT, EVENT | {"id": "2"}]
    assert list(account.dead_letters.list_blobs()) == []


def test_what_belongs_nowhere_stays_and_is_named(account: Account) -> None:
    """A dead letter of another subscription, and one that is no JSON, are left and told."""
    account.dead_letters.upload_blob("SOMEBODY-ELSES/2026/1/1/1/x.json", "[]")
    account.dead_letters.upload_blob("DROP-EVENTS/2026/1/1/1/y.json", "no json")
    done = replay(account)
    assert done.unreadable == ["DROP-EVENTS/2026/1/1/1/y.json", "SOMEBODY-ELSES/2026/1/1/1/x.json"]
    assert len(list(account.dead_letters.list_blobs())) == 2


def test_an_interruption_repeats_one_and_loses_none(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between putting a message back and taking it away, the message is in its queue; the next time is whole."""
    put(account, "drop-events-poison", "a", "b")

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("azure.storage.queue.QueueClient.delete_message", killed)
        with pytest.raises(Killed):
            replay(account)
    assert messages(account, "drop-events") == ["a"]
    properties = account.queues.get_queue_client("drop-events-poison").get_queue_properties()
    assert properties.approximate_message_count == 2


def test_a_queue_that_is_none(account: Account) -> None:
    """A queue's name that is wrong is told, with those that there are."""
    with pytest.raises(CliError, match="Queues: drop-events, job-events"):
        replay(account, "drop-event")


def test_the_command(
    account: Account, storage: azurite.Azurite, run: Callable[..., int], server: Any, tmp_path: Path, capsys: Any
) -> None:
    """On the local cloud the command needs no address: it says what went back, in words and as JSON."""
    (tmp_path / "no-cloud").mkdir()
    place = {"api": server.url, "connection_string": storage.connection_string, "blob_url": storage.blob_url}
    record.Record(pid=1, azureml="", eventgrid="", certs="", workspace_id="", started_at="", **place).write(
        tmp_path / "no-cloud"
    )
    put(account, "drop-events-poison", "a")
    assert run("admin", "replay") == 0
    assert "drop-events: 1 poison messages and 0 dead letters went back" in capsys.readouterr().out
    assert run("admin", "replay", "--json") == 0
    assert json.loads(capsys.readouterr().out)["queues"]["drop-events"] == {"poison": 0, "dead_letters": 0}
