"""The queue service's REST interface: how requests map to operations.

https://learn.microsoft.com/rest/api/storageservices/queue-service-rest-api
"""

from __future__ import annotations

import re
from typing import ClassVar

from emulators.storage.common.account import Account
from emulators.storage.common.calls import Answer, Call, http_date
from emulators.storage.common.errors import StorageError, bad_parameter, not_served
from emulators.storage.common.naming import as_headers, checked_name, metadata
from emulators.storage.common.rights import Right
from emulators.storage.common.service import XML, Service
from emulators.storage.queues import xml
from emulators.storage.queues.store import Queues

WEEK = 7 * 24 * 3600
ANY_LIFE = "2017-07-29"  # the version from which a message may live longer than a week
MOST_MESSAGES, MOST_QUEUES = 32, 5000
QUEUE_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9]){1,62}")


class QueueService(Service[Account]):
    """Answers requests to the queues of one account. A request that is not allowed raises StorageError."""

    largest_body: ClassVar[int] = 8 * xml.LONGEST_TEXT  # a text of 64 KiB, each of its characters escaped

    def __init__(self, queues: Queues, account: Account, endpoint: str = "") -> None:
        super().__init__(account, queues.settings, endpoint)
        self._queues = queues

    async def _answered(self, call: Call) -> Answer:
        match call.resource.rstrip("/").split("/"):
            case [""]:
                return self._service(call)
            case [name]:
                return self._queue(call, checked_name(name, QUEUE_NAME))
            case [name, "messages"]:
                return self._messages(call, checked_name(name, QUEUE_NAME))
            case [name, "messages", message]:
                return self._message(call, checked_name(name, QUEUE_NAME), message)
        raise not_served(call.method, call.path)

    def _policies_text(self, name: str) -> str:
        return self._queues.policies(name)

    def purge(self) -> bool:
        return self._queues.purge()

    # /

    def _service(self, call: Call) -> Answer:
        if (call.method, call.text("restype"), call.text("comp")) == ("GET", "", "list"):
            self._admit(call, "s", "l")
            return self._list(call)
        return self._of_service(call)

    def _list(self, call: Call) -> Answer:
        limit = call.number("maxresults", MOST_QUEUES, 1, 2**31 - 1)
        found = self._queues.listed(call.text("prefix"), call.text("marker"), min(limit, MOST_QUEUES) + 1)
        page, rest = found[: min(limit, MOST_QUEUES)], found[min(limit, MOST_QUEUES) :]
        body = xml.queue_list(self.endpoint, call.query, page, rest[0][0] if rest else "")
        return Answer(200, body, XML)

    # /QUEUE

    def _queue(self, call: Call, name: str) -> Answer:
        match call.method, call.text("comp"):
            case "PUT", "":
                self._admit(call, "c", "c", "w", name=name)
                return Answer(201 if self._queues.create(name, metadata(call.headers)) else 204)
            case "DELETE", "":
                self._admit(call, "c", "d", name=name)
                self._queues.delete(name)
                return Answer(204)
            case "GET" | "HEAD", "metadata":
                self._admit(call, "c", "r", name=name)
                return Answer(200, headers=self._properties(name))
            case "PUT", "metadata":
                self._admit(call, "c", "w", name=name)
                self._queues.set_metadata(name, metadata(call.headers))
                return Answer(204)
            case _, "acl":
                return self._of_policies(call, name, self._queues.set_policies)
        raise not_served(call.method, call.path)

    def _properties(self, name: str) -> dict[str, str]:
        return {
            **as_headers(self._queues.metadata(name)),
            "x-ms-approximate-messages-count": str(self._queues.count(name)),
        }

    # /QUEUE/messages

    def _messages(self, call: Call, name: str) -> Answer:
        match call.method:
            case "POST":
                self._admit(call, "o", "a", name=name)
                return self._put(call, name)
            case "GET" if call.text("peekonly").lower() == "true":
                self._admit(call, "o", "r", name=name)
                limit = call.number("numofmessages", 1, 1, MOST_MESSAGES)
                return Answer(200, xml.peeked(self._queues.peek(name, limit)), XML)
            case "GET":
                self._admit(call, "o", "p", name=name)
                limit = call.number("numofmessages", 1, 1, MOST_MESSAGES)
                seconds = call.number("visibilitytimeout", 30, 1, WEEK)
                return Answer(200, xml.received(self._queues.get(name, limit, seconds)), XML)
            case "DELETE":
                self._admit(call, "o", "d", name=name)
                self._queues.clear(name)
                return Answer(204)
        raise not_served(call.method, call.path)

    def _put(self, call: Call, name: str) -> Answer:
        longest = 2**31 - 1 if call.headers.get("x-ms-version", ANY_LIFE) >= ANY_LIFE else WEEK
        seconds_to_live = call.number("messagettl", WEEK, -1, longest)
        if seconds_to_live == 0:
            raise bad_parameter("messagettl", 0, "Value must be at least 1, or -1 for a message that never expires.")
        delay = call.number("visibilitytimeout", 0, 0, WEEK)
        if 0 < seconds_to_live <= delay:
            raise bad_parameter("visibilitytimeout", delay, "messagettl must be greater than visibilitytimeout.")
        text = xml.message_text(call.body)
        message = self._queues.put(name, text, delay, None if seconds_to_live == -1 else seconds_to_live)
        return Answer(201, xml.added(message), XML)

    # /QUEUE/messages/ID

    def _message(self, call: Call, name: str, message: str) -> Answer:
        match call.method:
            case "PUT":
                self._admit(call, "o", "u", name=name)
                _required(call, "visibilitytimeout")
                seconds = call.number("visibilitytimeout", 0, 0, WEEK)
                text = xml.message_text(call.body) if call.body else None
                new = self._queues.update(name, message, _required(call, "popreceipt"), seconds, text)
                headers = {"x-ms-popreceipt": new.receipt, "x-ms-time-next-visible": http_date(new.visible)}
                return Answer(204, headers=headers)
            case "DELETE":
                self._admit(call, "o", "p", "d", name=name)
                self._queues.remove(name, message, _required(call, "popreceipt"))
                return Answer(204)
        raise not_served(call.method, call.path)

    def _admit(self, call: Call, kind: str, *any_of: str, name: str = "") -> None:
        self.account.admit(call, Right(kind, any_of, name))


def _required(call: Call, name: str) -> str:
    value = call.query.get(name)
    if value is None:
        sentence = "A query parameter that's mandatory for this request is not specified."
        raise StorageError(400, "MissingRequiredQueryParameter", sentence, {"QueryParameterName": name})
    return value
