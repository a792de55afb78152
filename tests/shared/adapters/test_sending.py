"""Notices that leave this machine over HTTP and SMTP, sent to real servers."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from shared.adapters.outgoing import sending
from shared.adapters.outgoing.sending import NoticeSender
from shared.kernel.errors import Impossible, Unavailable
from shared.kernel.settings import Mail


class Hook(BaseHTTPRequestHandler):
    """A server that keeps each request and answers with the status in the path."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        status = int(self.path.strip("/").partition("?")[0])
        self.send_response(status)
        self.send_header("retry-after", "7")
        self.send_header("location", f"http://127.0.0.1:{self.server.server_port}/200")
        ends = "endless" not in self.path
        self.send_header("content-length", "0" if ends else "9999")
        self.end_headers()
        if not ends:
            self.wfile.write(b"x")
            self.rfile.read(1)  # wait until the client closes

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Smtp(socketserver.StreamRequestHandler):
    """The part of a mail server that a client without TLS needs (RFC 5321)."""

    server: Any

    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline().decode().strip():
            if line.upper().startswith("DATA"):
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.got.append(b"".join(lines).decode())
            self._say("221 bye" if line.upper() == "QUIT" else "250 fine")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture(params=[Hook, Smtp], ids=["http", "smtp"])
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    kind = ThreadingHTTPServer if request.param is Hook else socketserver.ThreadingTCPServer
    with kind(("127.0.0.1", 0), request.param) as serving:
        serving.daemon_threads = True
        setattr(serving, "got", [])  # noqa: B010  # the handlers find it there
        threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True).start()
        yield serving
        serving.shutdown()


def port(server: Any) -> int:
    return int(server.server_address[1])


only_http = pytest.mark.parametrize("server", [Hook], indirect=True)
only_smtp = pytest.mark.parametrize("server", [Smtp], indirect=True)


@only_http
def test_a_post_arrives_whole_and_follows_no_redirect(server: Any) -> None:
    """Body, headers, path and query arrive; status and Retry-After are returned; a redirect is returned, not
    followed."""
    sender = NoticeSender(None, inside=True)
    for status in (200, 503, 307):
        address = f"http://localhost:{port(server)}/{status}?sig=x"
        answer = sender.post(address, b"{}", {"webhook-id": "e1"})
        assert (answer.status, answer.retry_after) == (status, 7.0)
    assert [path for path, _, _ in server.got] == ["/200?sig=x", "/503?sig=x", "/307?sig=x"]
    _, headers, body = server.got[0]
    assert (headers["webhook-id"], headers["host"], body) == ("e1", f"localhost:{port(server)}", b"{}")


@only_http
def test_an_answer_without_an_end_is_one(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the status counts: an endpoint whose answer never ends delays nothing, and counts as notified."""
    monkeypatch.setattr(sending, "READ_SECONDS", 2.0)
    answer = NoticeSender(None, inside=True).post(f"http://localhost:{port(server)}/200?endless", b"{}", {})
    assert answer.status == 200


@only_http
def test_a_name_that_leads_inside_is_not_connected_to(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When only public addresses are allowed, a name with one private address is refused before any connection."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port(server))) for ip in ("93.184.216.34", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Impossible, match=r"https://public\.example/\.\.\. points to a machine inside"):
        NoticeSender(None).post(f"https://public.example:{port(server)}/200", b"", {})
    assert server.got == []


def test_nobody_there_is_told_without_the_address() -> None:
    """A refused connection and an unknown host may be retried; neither error contains the secret part of the
    address."""
    for address in ("http://127.0.0.1:9/secret-part", "http://no-such-host.invalid/secret-part"):
        with pytest.raises(Unavailable) as refused:
            NoticeSender(None, inside=True).post(address, b"", {})
        assert "secret-part" not in str(refused.value)
        assert refused.value.__cause__ is None or "secret-part" not in str(refused.value.__cause__)


@only_smtp
def test_a_mail_arrives(server: Any) -> None:
    """Subject and text arrive, a newline in a title starts no header, and the same event has the same Message-ID."""
    sender = NoticeSender(Mail(f"smtp://127.0.0.1:{port(server)}", "trainyard@example.org"))
    for _ in range(2):
        sender.mail("ada@example.org", "Run größe\nBcc: eve@example.org", "text", "e1")
    first, second = server.got
    assert "To: ada@example.org" in first
    assert "\nBcc:" not in first
    ids = [line for mail in (first, second) for line in mail.splitlines() if line.lower().startswith("message-id")]
    assert ids[0] == ids[1]


@only_smtp
def test_a_password_is_not_sent_in_the_clear(server: Any) -> None:
    """A server without TLS gets no password, and the error does not contain the password."""
    sender = NoticeSender(Mail(f"smtp://ada:secret-part@127.0.0.1:{port(server)}", "trainyard@example.org"))
    with pytest.raises(Unavailable) as refused:
        sender.mail("ada@example.org", "s", "t", "e1")
    assert "secret-part" not in str(refused.value)
    assert server.got == []
