"""How the host treats odd keys, message bodies and log records, without a running host."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from azure.storage.queue import QueueMessage

from emulators.host.config import Keys
from emulators.host.http.keys import Gate
from emulators.host.logs import _OneLine
from emulators.host.queues.messages import body_value, metadata
from emulators.host.worker.backend import Value


@pytest.mark.parametrize("given", ["\udcff", "other", ""])
def test_a_wrong_key_opens_nothing(given: str) -> None:
    """A key with a byte that is not UTF-8 is a wrong key."""
    request: Any = SimpleNamespace(headers={"x-functions-key": given}, query={})
    assert Gate(Keys("master", "function", "grid"), required=True).refusal(request, "function") == 401


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000, "{", "[1]", "5"])
def test_a_body_without_members_adds_nothing(body: str) -> None:
    """A message whose body is not a JSON object, or is nested too deep, has only its own metadata."""
    message = QueueMessage(content=body)
    message.id, message.dequeue_count = "1", 1
    found = metadata(message, body_value(body.encode()))
    assert (found["Id"], found["QueueTrigger"]) == (Value("string", "1"), Value("string", body))


def test_a_record_is_one_line_that_a_terminal_shows_as_it_is() -> None:
    """Line ends of every kind and escape sequences, which external names may contain, are escaped."""
    record = logging.LogRecord("x", logging.INFO, "", 0, "a %s", ("\n\r\x1b[2J\x85\u2028\tb",), None)
    line = _OneLine(lambda: None).format(record)
    assert line.endswith("a \\n\\r\\x1b[2J\\x85\\u2028\tb")
    assert len(line.splitlines()) == 1
