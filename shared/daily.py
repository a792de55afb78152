"""The daily jobs: delete expired data, and renew data that must not expire."""

from __future__ import annotations

from functools import partial

from shared.kernel.attempts import Attempts
from shared.messages.poison import keep_poison
from shared.notices import deliver
from shared.notices.ports import Post
from shared.removals import retention
from shared.removals.ports import RemovalPorts, Removals
from shared.removals.remove import send_again


def run_daily(ports: RemovalPorts, removals: Removals, post: Post) -> None:
    """Run the daily jobs: poison messages, old notices, lost removals, retention.

    A job that fails does not stop the others. Raises the first error at the end.
    """
    steps = Attempts("daily")
    steps.do("poison messages", partial(keep_poison, ports.queues))
    steps.do("notices", partial(deliver.prune, ports.clock, post))
    steps.do("removals", partial(send_again, ports.queues, ports.clock, removals))
    steps.do("retention", partial(retention.enforce, ports, removals))
    steps.end()
