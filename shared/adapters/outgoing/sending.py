"""Send notices: HTTP with urllib3, mail with SMTP.

Anyone who may add a subscription chooses where this app connects to. So a web address must be https, its host is
resolved here, all resolved addresses must be public, and the connection goes to the checked address: a host name that
resolves differently a moment later gains nothing. Redirects are not followed. `inside` lifts these rules, for a laptop.
"""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
from email.message import EmailMessage
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from shared.kernel.errors import Impossible, Unavailable
from shared.kernel.settings import Mail
from shared.notices.address import is_public
from shared.notices.model import masked
from shared.notices.ports import Answer
from shared.notices.render import one_line

if TYPE_CHECKING:
    from urllib3 import HTTPConnectionPool

CONNECT_SECONDS, READ_SECONDS = 5.0, 20.0  # together less than the time that a try holds a delivery
_LONGEST_WAIT = 3600.0


class NoticeSender:
    def __init__(self, mail: Mail | None, inside: bool = False) -> None:
        self._mail, self._inside = mail, inside

    @property
    def reaches_inside(self) -> bool:
        return self._inside

    def post(self, address: str, body: bytes, headers: dict[str, str]) -> Answer:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        pool = _pool(parts.scheme, host, self._address_of(address, host, port), port)
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        try:
            with pool:
                answer = pool.urlopen(
                    "POST",
                    target,
                    body=body,
                    headers={**headers, "host": parts.netloc},
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    timeout=Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
                )
                answer.close()  # close without reading: only the status matters, and a body may be endless
        except (HTTPError, OSError) as exc:
            raise Unavailable(f"{masked(address)} did not answer: {type(exc).__name__}.") from None  # exc holds the URL
        return Answer(answer.status, _seconds(answer.headers.get("retry-after", "")))

    def mail(self, to: str, subject: str, text: str, event: str) -> None:
        if self._mail is None:
            raise Impossible("No mail server is configured: TRAINYARD_SMTP_URL is not set.", "no_mail")
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._mail.sender, to, one_line(subject)
        domain = self._mail.sender.rpartition("@")[2]
        message["Message-ID"] = f"<{hashlib.sha256(f'{event} {to}'.encode()).hexdigest()[:32]}@{domain}>"
        message.set_content(text)
        try:
            with _smtp(self._mail) as server:
                server.send_message(message)
        except (smtplib.SMTPException, OSError) as exc:
            raise Unavailable(f"The mail server rejected the message: {type(exc).__name__}.") from None

    def _address_of(self, address: str, host: str, port: int) -> str:
        """Return the IP address to connect to. Raises Impossible for an internal address."""
        try:
            addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except (OSError, UnicodeError) as exc:
            raise Unavailable(f"{masked(address)}: its host name has no address.") from exc
        if not self._inside and not all(map(is_public, addresses)):
            raise Impossible(
                f"{masked(address)} points to a machine inside the network; notices are sent to public addresses only.",
                "inside",
            )
        return addresses[0]


def _pool(scheme: str, host: str, ip: str, port: int) -> HTTPConnectionPool:
    """Return a pool that connects to this IP address and checks the certificate against the host's name."""
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    if scheme != "https":
        return HTTPConnectionPool(ip, port, maxsize=1)
    context = ssl.create_default_context()
    return HTTPSConnectionPool(ip, port, maxsize=1, ssl_context=context, server_hostname=host, assert_hostname=host)


def _smtp(mail: Mail) -> smtplib.SMTP:
    """Open a connection. It is encrypted unless the address says smtp:// and the server offers no encryption."""
    parts = urlsplit(mail.url)
    host, timeout, context = parts.hostname or "", CONNECT_SECONDS + READ_SECONDS, ssl.create_default_context()
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=timeout, context=context)
    else:
        server = smtplib.SMTP(host, parts.port or 587, timeout=timeout)
    try:
        _greet(server, parts, context)
    except Exception:
        server.close()
        raise
    return server


def _greet(server: smtplib.SMTP, parts: SplitResult, context: ssl.SSLContext) -> None:
    """Start encryption if it is not on yet, and sign in. A password is never sent without encryption."""
    server.ehlo()
    if parts.scheme == "smtp" and server.has_extn("starttls"):
        server.starttls(context=context)
    elif parts.scheme == "smtp" and parts.username:
        raise smtplib.SMTPNotSupportedError
    if parts.username:
        server.login(unquote(parts.username), unquote(parts.password or ""))


def _seconds(retry_after: str) -> float:
    """Return Retry-After in seconds; 0 if the header has a date, which no supported endpoint needs."""
    return min(float(retry_after), _LONGEST_WAIT) if retry_after.isascii() and retry_after.isdigit() else 0.0
