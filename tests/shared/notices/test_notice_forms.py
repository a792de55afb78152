"""The forms and addresses of notices: accepted, refused and masked addresses, and what each channel receives."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kernel.errors import Impossible
from shared.notices import address, render
from shared.notices.address import is_public
from shared.notices.model import Channel, Notice, NoticeKind, Subscription, masked

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOOK = "https://example.com/hook/secret-part"
NOTICE = Notice(
    "RunArchived:mnist-1", NoticeKind.FAILED, "Run mnist-1 failed.", NOW, {"why": "no luck"}, "mnist-1", "mnist"
)


def subscription(channel: Channel = Channel.WEBHOOK, on: tuple[NoticeKind, ...] = (NoticeKind.FAILED,)) -> Subscription:
    secret = render.SECRET_PREFIX + base64.b64encode(b"k" * 32).decode()
    return Subscription("n-1", on, channel, HOOK, NOW, secret=secret)


def test_a_webhook_is_signed() -> None:
    """The signature is that of Standard Webhooks: HMAC-SHA256 with the secret over id, time and the exact bytes
    sent."""
    body, headers = render.request(subscription(), NOTICE, NOW)
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))


def test_chat_channels_get_their_own_form() -> None:
    """Slack gets blocks, Teams an Adaptive Card in a message; neither gets a signature, or markup from a name."""
    odd = replace(NOTICE, title="Run of [click](https://evil) failed.")
    slack, _ = render.request(subscription(Channel.SLACK), odd, NOW)
    teams, headers = render.request(subscription(Channel.TEAMS), odd, NOW)
    (card,) = json.loads(teams)["attachments"]

    assert json.loads(slack)["blocks"][0]["text"]["type"] == "plain_text"
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["content"]["type"] == "AdaptiveCard"
    assert card["content"]["body"][1]["facts"] == [{"title": "why", "value": "no luck"}]
    assert "[click]" not in card["content"]["body"][0]["text"]
    assert "webhook-signature" not in headers


@pytest.mark.parametrize(
    ("text", "channel", "found"),
    [
        ("https://hooks.slack.com/services/T/B/x", "", Channel.SLACK),
        ("https://prod-1.westeurope.logic.azure.com:443/workflows/x?sig=y", "", Channel.TEAMS),
        ("https://default1.2.environment.api.powerplatform.com/powerautomate/x", "", Channel.TEAMS),
        ("https://example.com/x", "", Channel.WEBHOOK),
        ("https://example.com/x", "slack", Channel.SLACK),
        ("mailto:ada@example.org", "", Channel.MAIL),
    ],
)
def test_an_address_tells_its_channel(text: str, channel: str, found: Channel) -> None:
    """Slack, Teams and mail follow from the address; any other address is a webhook unless the request names a
    channel."""
    assert address.read_address(text, channel, plain_http=False)[0] is found


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com/secret-part", "ftp://example.com/secret-part", "https://localhost/secret-part",
        "https://user:secret-part@example.com/", "https://example.com\\@evil/secret-part", "https:///secret-part",
        "https://intranet/secret-part", "https://example.com:0/secret-part", "https://example.com/secret-part\r\nx: y",
        "https://[::1/secret-part", "javascript:secret-part", "https://example.com/" + "x" * 2000,
    ],
)  # fmt: skip
def test_an_address_that_can_not_be_is_refused_unshown(text: str) -> None:
    """Private addresses, and addresses without TLS, with passwords or odd characters, are refused without being
    repeated in the error."""
    with pytest.raises(Impossible) as refused:
        address.read_address(text, "", plain_http=False)
    assert "secret-part" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "10.0.0.4", "172.16.3.1", "192.168.1.1", "169.254.169.254", "168.63.129.16", "100.64.0.1",
        "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1",
        "2002:7f00:1::", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::",
        "64:ff9b:1::1", "fec0::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "192.0.0.8", "192.88.99.1",
        "2001:db8::1", "5f00::1",
    ],
)  # fmt: skip
def test_addresses_inside_are_not_public(text: str) -> None:
    """These are loopback, private, link-local, shared, multicast, Azure's own agent, and the IPv6 forms of all."""
    assert not is_public(text)


def test_public_addresses_are() -> None:
    """Internet addresses of both families are public."""
    assert all(map(is_public, ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101"]))


@given(st.text(max_size=200))
def test_a_masked_address_shows_little(text: str) -> None:
    """Everything after an address's host, or before the @ of a mail address, is hidden."""
    assert masked(f"https://hooks.slack.com/services/{text}") == "https://hooks.slack.com/..."
    assert masked("secret.name@example.org") == "s...@example.org"
