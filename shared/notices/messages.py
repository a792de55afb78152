"""The messages of notices."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import BACKGROUND, Message


@dataclass(frozen=True)
class DeliverNotice(
    Message,
    queue=BACKGROUND,
    handler="shared.notices.deliver:deliver",
    done="shared.notices.deliver:is_delivered",
    news_since="shared.notices.deliver:pending_since",
):
    """Try to deliver a notice to a subscription."""

    subscription: str
    notice: str
