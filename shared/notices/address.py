"""Parse an address, and decide whether Trainyard may send to it. No error shows a whole address."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from shared.kernel.errors import Impossible
from shared.notices.model import Channel, masked

_TEAMS = (".logic.azure.com", ".powerplatform.com", ".powerautomate.com", ".webhook.office.com")
_MAIL = re.compile(r"(?:mailto:)?([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)")
_AZURE_HOST = ipaddress.ip_address("168.63.129.16")  # Azure's agent on every machine, although this address is public
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Addresses that the IANA special-purpose registries don't call globally reachable, or have retired, although Python's
# `is_global` accepts them: https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-special-registry.
_PUBLIC_V6 = ipaddress.ip_network(
    "2000::/3"
)  # all global unicast addresses of IPv6, which excludes site-local, mapped and others
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "2001::/23",
            "2001:db8::/32",
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)
ADDRESS_LIMIT = 2000  # characters


def read_address(text: str, channel: str, plain_http: bool) -> tuple[Channel, str]:
    """Return the channel of an address, and the address to use. Raises Impossible without showing the address.

    `plain_http` also allows http:// and hosts inside the network, for a laptop.
    """
    text = text.strip()
    if mail := _MAIL.fullmatch(text):
        if channel not in ("", Channel.MAIL):
            raise Impossible(
                f"{masked(mail[1])} is a mail address, and {channel} can't deliver to mail addresses.", "bad_address"
            )
        return Channel.MAIL, mail[1]
    host = _host_of(text, plain_http)
    if channel == Channel.MAIL:
        raise Impossible(f"{masked(text)} is not a mail address.", "bad_address")
    if channel:
        return Channel(channel), text
    if host == "hooks.slack.com":
        return Channel.SLACK, text
    return (Channel.TEAMS if host.endswith(_TEAMS) else Channel.WEBHOOK), text


def _host_of(text: str, plain_http: bool) -> str:
    """Return the host of a web address, if the text of the address is allowed."""
    forms = "https://... of a webhook, Slack or Teams workflow, or a mail address"
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as exc:
        raise Impossible(f"The address can't be read. Use {forms}.", "bad_address") from exc
    if parts.scheme not in (("https", "http") if plain_http else ("https",)) or not host:
        raise Impossible(f"The address must be {forms}; this one begins with {text[:8]!r}.", "bad_address")
    if parts.username is not None or "@" in parts.netloc or re.search(r"[\s\\\x00-\x1f\x7f]", text):
        raise Impossible(
            f"{masked(text)} contains a user name or characters that are not allowed in an address.", "bad_address"
        )
    if len(text) > ADDRESS_LIMIT or port == 0 or not text.isascii():
        raise Impossible(f"{masked(text)} is longer than {ADDRESS_LIMIT} characters, or not ASCII.", "bad_address")
    if not plain_http and (host == "localhost" or ("." not in host and ":" not in host)):
        raise Impossible(
            f"{masked(text)} points to a machine inside the network; notices are sent to public addresses only.",
            "bad_address",
        )
    return host


def is_public(address: str) -> bool:
    """Return whether an IP address is on the internet, and is not an internal address: private, link-local, metadata.

    An IPv6 address that embeds an IPv4 address is judged by the IPv4 address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1])
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner:
            return is_public(str(inner))
        if ip not in _PUBLIC_V6:
            return False
    return ip.is_global and not ip.is_multicast and ip != _AZURE_HOST and not any(ip in net for net in _NOT_PUBLIC)
