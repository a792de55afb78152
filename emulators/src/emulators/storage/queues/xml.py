"""The XML bodies of the queue service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from emulators.storage.common.calls import http_date
from emulators.storage.common.errors import bad_xml, too_large
from emulators.storage.common.service_xml import HEAD, listing, pairs, parsed, text_of
from emulators.storage.queues.store import Message

LONGEST_TEXT = 64 * 1024


Listed = tuple[str, dict[str, str]]  # a queue's name and its metadata


def message_text(body: bytes) -> str:
    """Return the text of a QueueMessage document. Raises StorageError for another document, and for more than 64
    KiB."""
    root = parsed(body)
    found = root.find("MessageText")
    if root.tag != "QueueMessage" or found is None:
        raise bad_xml("QueueMessage with a MessageText is expected.")
    text = found.text or ""
    if len(text.encode()) > LONGEST_TEXT:
        raise too_large(LONGEST_TEXT)
    return text


def added(message: Message) -> bytes:
    return _messages([_identity(message) + _hold(message)])


def received(messages: Iterable[Message]) -> bytes:
    return _messages(_identity(m) + _hold(m) + _content(m) for m in messages)


def peeked(messages: Iterable[Message]) -> bytes:
    return _messages(_identity(m) + _content(m) for m in messages)


def _messages(found: Iterable[str]) -> bytes:
    inner = "".join(f"<QueueMessage>{one}</QueueMessage>" for one in found)
    return f"{HEAD}<QueueMessagesList>{inner}</QueueMessagesList>".encode()


def _identity(message: Message) -> str:
    return (
        f"<MessageId>{message.id}</MessageId><InsertionTime>{http_date(message.inserted)}</InsertionTime>"
        f"<ExpirationTime>{http_date(message.expires)}</ExpirationTime>"
    )


def _hold(message: Message) -> str:
    return f"<PopReceipt>{message.receipt}</PopReceipt><TimeNextVisible>{http_date(message.visible)}</TimeNextVisible>"


def _content(message: Message) -> str:
    return f"<DequeueCount>{message.dequeues}</DequeueCount><MessageText>{text_of(message.text)}</MessageText>"


def queue_list(endpoint: str, asked: Mapping[str, str], found: Iterable[Listed], after: str) -> bytes:
    """Return a list of queues as XML. `asked` are the parameters of the request. `after` is the next name, or '' at
    the end."""
    with_metadata = "metadata" in asked.get("include", "")
    queues = "".join(
        f"<Queue><Name>{name}</Name>{pairs('Metadata', metadata) if with_metadata else ''}</Queue>"
        for name, metadata in found
    )
    return listing(endpoint, asked, f"<Queues>{queues}</Queues>", after)
