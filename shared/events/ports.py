"""Where our own events go."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol


class Events(Protocol):
    """Lifecycle events of our own, to whoever subscribes to the custom topic."""

    def publish(self, kind: str, subject: str, data: dict[str, Any], event_id: str, at: datetime) -> None:
        """Send one event. The same event_id twice is one event to a consumer that looks at ids."""
