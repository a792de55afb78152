"""Gives back to the queues what was set aside: poison messages, and events that Event Grid could not deliver.

A message is put into its queue before it is taken from where it lay, so an interruption repeats one and loses none;
the app takes a repeated message well. Only what lay there at the beginning is moved: a message that fails again goes
back to its poison queue and waits there for the next time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import CliError, NotFound, extra
from .profiles import Profile
from .upload import translated

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient
    from azure.storage.queue import QueueServiceClient

POISON = "-poison"
DEAD_LETTERS = "deadletter"
AT_A_TIME = 32  # the most that one request gives
HIDDEN_SECONDS = 60  # while a message is moved nobody else gets it
FOR_EVER = -1
# What Event Grid adds to an event that it gives up, in either schema.
OBITUARY = {"deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "publishtime", "lastdeliveryattempttime"}


@dataclass(frozen=True)
class Account:
    """The storage account's queues and its container of dead letters."""

    queues: QueueServiceClient
    dead_letters: ContainerClient


@dataclass
class Moved:
    """What came back into one queue."""

    poison: int = 0
    dead_letters: int = 0


@dataclass
class Replayed:
    """`unreadable` are names of dead letters that belong to no queue here, or are no JSON; they stay."""

    queues: dict[str, Moved] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def of(self, queue: str) -> Moved:
        return self.queues.setdefault(queue, Moved())

    def told(self) -> dict[str, Any]:
        return asdict(self)


@contextmanager
def opened(profile: Profile, account_url: str) -> Iterator[Account]:
    """The account: by the local cloud's connection string, else at `account_url` as whoever is signed in here."""
    try:
        from azure.identity import DefaultAzureCredential
        from azure.storage.blob import ContainerClient
        from azure.storage.queue import QueueServiceClient
    except ImportError as exc:
        raise CliError(f"Replaying needs three more packages: {extra('admin')}.") from exc
    address = account_url or profile.account_url
    if profile.connection_string and not account_url:
        queues = QueueServiceClient.from_connection_string(profile.connection_string)
        letters = ContainerClient.from_connection_string(profile.connection_string, DEAD_LETTERS)
    elif address:
        credential = DefaultAzureCredential()
        queues = QueueServiceClient(address.replace(".blob.", ".queue."), credential)
        letters = ContainerClient(address, DEAD_LETTERS, credential)
    else:
        raise CliError("Say which storage account: --account-url https://<account>.blob.core.windows.net")
    with queues, letters:
        yield Account(queues, letters)


def replay(account: Account, only: str = "", dry_run: bool = False) -> Replayed:
    """Move everything back, or with `only` what belongs to that queue; a dry run counts alone. Raises CliError."""
    done = Replayed()
    with translated():
        names = {queue.name for queue in account.queues.list_queues()}
        working = sorted(name.removesuffix(POISON) for name in names if name.endswith(POISON))
        if only and only not in working:
            raise NotFound(f"There is no queue {only} with a poison queue. Queues: {', '.join(working)}.")
        for queue in [only] if only else working:
            moved = _count(account, queue) if dry_run else _poison(account, queue)
            done.of(queue).poison = moved
        _dead_letters(account, working, dry_run, done)
    return done


def _count(account: Account, queue: str) -> int:
    properties = account.queues.get_queue_client(queue + POISON).get_queue_properties()
    return int(properties.approximate_message_count or 0)


def _poison(account: Account, queue: str) -> int:
    """Move as many messages as there are now: those that fail again meanwhile come behind them."""
    moved, left = 0, _count(account, queue)
    with account.queues.get_queue_client(queue + POISON) as poison, account.queues.get_queue_client(queue) as target:
        while left > 0:
            some = min(left, AT_A_TIME)
            messages = list(poison.receive_messages(max_messages=some, visibility_timeout=HIDDEN_SECONDS))
            for message in messages:
                target.send_message(message.content, time_to_live=FOR_EVER)
                poison.delete_message(message)
            moved += len(messages)
            left = left - len(messages) if messages else 0
    return moved


def _dead_letters(account: Account, queues: list[str], dry_run: bool, done: Replayed) -> None:
    """Dead letters lie under SUBSCRIPTION/year/..., in Azure below their topic; subscriptions are named as queues.

    Those of a queue that was not chosen stay, and are not told.
    """
    from azure.core.exceptions import ResourceNotFoundError

    try:
        names = [blob.name for blob in account.dead_letters.list_blobs()]
    except ResourceNotFoundError:
        return
    for name in names:
        queue = next((queue for queue in queues if queue.upper() in name.upper().split("/")), "")
        if not queue:
            done.unreadable.append(name)
            continue
        if queue not in done.queues:
            continue
        events = _events(account, name)
        if events is None:
            done.unreadable.append(name)
            continue
        if not dry_run:
            _give_back(account, queue, name, events)
        done.of(queue).dead_letters += len(events)


def _events(account: Account, name: str) -> list[dict[str, Any]] | None:
    """The events of a dead-letter blob as they were sent, or None if it holds something else."""
    try:
        found = json.loads(account.dead_letters.download_blob(name).readall())
    except ValueError:
        return None
    events = found if isinstance(found, list) else [found]
    if not all(isinstance(event, dict) for event in events):
        return None
    return [{key: value for key, value in event.items() if key.lower() not in OBITUARY} for event in events]


def _give_back(account: Account, queue: str, name: str, events: list[dict[str, Any]]) -> None:
    with account.queues.get_queue_client(queue) as target:
        for event in events:
            target.send_message(json.dumps(event), time_to_live=FOR_EVER)
    account.dead_letters.delete_blob(name)
