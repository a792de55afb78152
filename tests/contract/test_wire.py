"""Requests to tables: what is tried again, what a refusal says, and rows that come back as they were written."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.adapters import rows, storage
from shared.adapters.rows import READ
from shared.adapters.storage import StorageClients
from shared.adapters.table import Ask, Table, create, delete, merge, put
from shared.adapters.translation import code_of, reason_of
from shared.adapters.wire import KeySigner, TokenSigner, Wire
from shared.kernel.errors import BadInput

LOST = 0  # instead of a status: the connection ends without an answer


@contextmanager
def service(*answers: int, body: bytes = b"{}") -> Iterator[tuple[Wire, list[str]]]:
    """A table service that gives these statuses, one a request, and the requests that it got."""
    left, seen = list(answers), list[str]()

    class Scripted(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append(f"{self.command} {self.headers['Authorization']}")
            status = left.pop(0)
            if status == LOST:
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Wire(f"http://127.0.0.1:{server.server_port}/acme", KeySigner("acme", b"key", tables=True), "1") as wire:
            yield wire, seen
        server.shutdown()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_what_the_service_could_not_do_is_asked_again(method: str) -> None:
    """Throttling and faults of the service are waited out, whatever was asked."""
    with service(503, 429, 200) as (wire, seen):
        assert wire.send(method, "/runs", READ).status == 200
        assert len(seen) == 3


@pytest.mark.parametrize(("method", "tries"), [("GET", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)])
def test_a_write_that_may_have_happened_is_not_repeated(method: str, tries: int) -> None:
    """Where the answer got lost, a POST or PATCH ends without an answer; the others mean the same twice."""
    with service(LOST, 200) as (wire, seen):
        with pytest.raises(ServiceRequestError) if tries == 1 else nullcontext():
            wire.send(method, "/runs", READ)
        assert len(seen) == tries


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b'{"odata.error":{"code":"TooBig","message":{"value":"Too big.\\nRequestId:1"}}}', "TooBig", "Too big."),
        (b"<html>proxy</html>", "", "The service answered 400."),
        (b"[1]", "", "The service answered 400."),
    ],
)  # fmt: skip
def test_a_refusal_says_the_services_code_and_first_sentence(body: bytes, code: str, says: str) -> None:
    """Or the status alone, where something else than the service answered."""
    with service(400, body=body) as (wire, _), pytest.raises(HttpResponseError) as caught:
        wire.send("PUT", "/runs", READ)
    assert code_of(caught.value) == code
    assert reason_of(caught.value) == " ".join(filter(None, ("400", code, says)))


def test_a_token_is_asked_for_once_until_shortly_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that ends within five minutes is another's turn; one that lasts serves every request."""
    asked, now = list[str](), [1000.0]
    monkeypatch.setattr("shared.adapters.wire.time.time", lambda: now[0])

    class Identity:
        def get_token(self, *scopes: str, **_: Any) -> AccessToken:
            asked.append(scopes[0])
            return AccessToken(f"t{len(asked)}", int(now[0]) + 3600)

    signer = TokenSigner(Identity())
    assert [signer.authorization("GET", "/", {}) for _ in range(3)] == ["Bearer t1"] * 3
    now[0] += 3301
    assert signer.authorization("GET", "/", {}) == "Bearer t2"
    assert asked == ["https://storage.azure.com/.default"] * 2


@pytest.mark.parametrize("text", ["AccountName=a;TableEndpoint=http://x", "UseDevelopmentStorage=true", "AccountKey=%"])
def test_a_connection_string_without_key_is_refused_in_words(text: str) -> None:
    """It says what is missing, and never what is there."""
    with pytest.raises(BadInput, match=r"needs AccountName and AccountKey") as caught:
        storage.tables(text)
    assert text not in str(caught.value)


VALUES = st.one_of(
    st.text(), st.booleans(), st.floats(), st.integers(-(2**63), 2**63 - 1).map(lambda n: (n, "Edm.Int64"))
)


@settings(max_examples=60)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), VALUES, max_size=6))
def test_a_row_comes_back_from_its_json(row: dict[str, Any]) -> None:
    """Text, numbers of 64 bits, truths and every float, those that JSON lacks too."""
    found = rows.from_json(json.loads(rows.to_json(row)))
    for name, value in row.items():
        expected = value[0] if isinstance(value, tuple) else value
        assert found[name] == expected or (isinstance(expected, float) and math.isnan(expected))


@pytest.mark.parametrize("side", ["tables", "own_tables"])
def test_rows_of_any_key_are_written_found_and_taken_away(side: str, request: pytest.FixtureRequest) -> None:
    """Quotes, percent signs, text like a boundary, and letters of any script, alone and in a transaction."""
    clients: StorageClients = request.getfixturevalue(side)
    table = Table(clients.table, "odd")
    keys = ["it's", "100%41", "--batch_trainyard--", "äöü 🚂", "a+b&c=d"]
    body = {"text": "'\r\n--changeset_trainyard--\r\n", "number": (2**62 + 1, "Edm.Int64"), "share": 0.5}
    made = table.write(*(create({"PartitionKey": "p'1", "RowKey": key, **body}) for key in keys))
    assert len(set(made)) == len(made) > 0
    for key, etag in zip(keys, made, strict=True):
        found = table.get("p'1", key)
        assert found is not None
        assert (found[rows.ETAG], found["text"], found["number"]) == (etag, body["text"], 2**62 + 1)
        alone = table.write(merge({"PartitionKey": "p'1", "RowKey": key, "text": key}, etag))
        assert table.write(put({"PartitionKey": "p'1", "RowKey": key, "text": f"{key}!"})) != alone
    ask = Ask("PartitionKey eq @partition and text eq @text", {"partition": "p'1", "text": "it's!"}, ["text"])
    assert [row["text"] for row in table.all(ask)] == ["it's!"]
    assert sorted(str(row["RowKey"]) for row in table.query("p'1", "", "\U0010ffff", 2)) == sorted(keys)
    assert table.write(*(delete("p'1", key) for key in keys)) == [""] * len(keys)
    assert table.get("p'1", keys[0]) is None
