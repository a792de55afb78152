"""`admin smoke` while logs still grow, and when nothing answers; tests/e2e/test_api.py runs all of it on a cloud."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from cli.errors import CliError
from cli.nodes.smoke import FAILED, Smoke, _lines

SAID = b'warming up\nsmoke {"check": "events", "ok": true}\n'


@pytest.mark.parametrize("rest", [b"", b"smo", b'smoke {"check": "ann', b'smoke {"check": "announced", "ok": true}'])
def test_only_whole_lines_of_a_log_count(rest: bytes) -> None:
    """A log may end inside the line that is being written; the incomplete line is read in the next poll."""
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
    """A job's address is read from a whole line, because the first digits of a port are another port."""
    chunk = SimpleNamespace(data=log)
    api: Any = SimpleNamespace(get=lambda *_: {"state": "running"}, log=lambda *_: chunk)
    assert Smoke(api, "c", "r", 1.0, print)._address("run") == address


def test_a_check_that_fails_stops_no_other() -> None:
    """If neither the API nor the storage admits the caller, each check reports that, and the table is complete."""

    def refused(*_: Any, **__: Any) -> Any:
        raise CliError("The API answered 403.")

    def forbidden(*_: Any) -> None:
        raise HttpResponseError("no role")

    api: Any = SimpleNamespace(url="http://127.0.0.1:9/api", health=refused, get=refused, post=refused, send=refused)
    smoke = Smoke(api, "c", "r", 1.0, lambda _: None)
    checks = smoke.run(SimpleNamespace(upload_blob=forbidden))
    names = ["health", "forged caller", "drop to archive", "nodes", "scheduled events on a node"]
    assert [(check.name, check.result) for check in checks] == [(name, FAILED) for name in names]
    assert "The storage account refused" in checks[2].detail
