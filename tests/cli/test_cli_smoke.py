"""What `admin smoke` reads of logs that still grow; all else of it is shown on a whole cloud (tests/e2e/test_api.py)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cli.smoke import Smoke, _lines

SAID = b'warming up\nsmoke {"check": "events", "ok": true}\n'


@pytest.mark.parametrize("rest", [b"", b"smo", b'smoke {"check": "ann', b'smoke {"check": "announced", "ok": true}'])
def test_only_whole_lines_of_a_log_count(rest: bytes) -> None:
    """A log may end anywhere in the line that is being written: what is not whole yet is read with the next look."""
    assert [line["check"] for line in _lines(SAID + rest)] == ["events"]


@pytest.mark.parametrize(
    ("log", "address"),
    [
        (b"smoke-address ", None),
        (b"smoke-address 10.0.0.4:51", None),
        (b"smoke-address 10.0.0.4:5123\n", "10.0.0.4:5123"),
    ],
)
def test_an_address_is_waited_for_to_its_end(log: bytes, address: str | None) -> None:
    """A job's address is taken from a whole line: the first digits of a port are another port."""
    chunk = SimpleNamespace(data=log)
    api: Any = SimpleNamespace(get=lambda *_: {"state": "running"}, log=lambda *_: chunk)
    assert Smoke(api, "c", "r", 1.0, print)._address("run") == address
