"""Render a notice as the bytes for each channel. Pure.

Webhooks are signed as https://www.standardwebhooks.com describes: each try has the same id, so that a receiver can
recognize duplicates. Slack receives blocks, Teams an Adaptive Card (Workflows, "when a webhook request is received").
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import datetime
from typing import Any

from shared.notices.model import Channel, Notice, NoticeKind, Subscription

SECRET_PREFIX = "whsec_"  # noqa: S105  # prefix of a Standard Webhooks secret
_MARK = {NoticeKind.COMPLETED: "✅", NoticeKind.FAILED: "❌", NoticeKind.CANCELED: "🚫", NoticeKind.TEST: "👋"}
_COLOUR = {NoticeKind.COMPLETED: "Good", NoticeKind.FAILED: "Attention", NoticeKind.TEST: "Accent"}
_FACT_LIMIT = 1000  # characters


def request(subscription: Subscription, notice: Notice, now: datetime) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers for an HTTP channel."""
    shapes = {Channel.WEBHOOK: _event, Channel.SLACK: _slack, Channel.TEAMS: _teams}
    body = json.dumps(shapes[subscription.channel](notice)).encode()
    headers = {"content-type": "application/json", "user-agent": "trainyard"}
    if subscription.channel is Channel.WEBHOOK:
        stamp = str(int(now.timestamp()))
        headers |= {
            "webhook-id": notice.id,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(subscription.secret, notice.id, stamp, body),
        }
    return body, headers


def signature(secret: str, event: str, stamp: str, body: bytes) -> str:
    """Return `v1,` and the base64 of HMAC-SHA256 over id, time and body."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(key, f"{event}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def mail(notice: Notice) -> tuple[str, str]:
    """Return the mail's subject and text."""
    lines = [f"{name}: {value}" for name, value in _facts(notice)]
    return one_line(notice.title), "\n".join([notice.title, "", *lines, "", f"Event {notice.id}"])


def one_line(text: str) -> str:
    """Return the text without newlines, because a newline would start another header."""
    return " ".join(text.split())[:200]


def _facts(notice: Notice) -> list[tuple[str, str]]:
    return [(name, value[:_FACT_LIMIT]) for name, value in notice.facts.items() if value]


def _event(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.id,
        "type": f"trainyard.{notice.kind}",
        "timestamp": notice.at.isoformat(),
        "data": {
            "title": notice.title,
            "run": notice.run,
            "route": notice.route,
            "experiment": notice.experiment,
            "facts": dict(_facts(notice)),
        },
    }


def _slack(notice: Notice) -> dict[str, Any]:
    title = f"{_MARK.get(notice.kind, '⚠️')} {notice.title}"
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "plain_text", "text": title[:3000]}}]
    fields = [{"type": "plain_text", "text": f"{name}: {value}"[:2000]} for name, value in _facts(notice)]
    if fields:
        blocks.append({"type": "section", "fields": fields[:10]})  # Slack's limit
    return {"text": title, "blocks": blocks}


def _teams(notice: Notice) -> dict[str, Any]:
    facts = [{"title": name, "value": value} for name, value in _facts(notice)]
    heading = {
        "type": "TextBlock",
        "text": _no_markdown(notice.title),
        "weight": "Bolder",
        "size": "Medium",
        "wrap": True,
        "color": _COLOUR.get(notice.kind, "Warning"),
    }
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [heading, {"type": "FactSet", "facts": facts}] if facts else [heading],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _no_markdown(text: str) -> str:
    """Return the text without Markdown, because a drop's name must not become a link."""
    return text.replace("[", "(").replace("]", ")")
