"""What is done once a day: what has had its time is let go, what must not end is renewed."""

from __future__ import annotations

from functools import partial

from shared.kernel.attempts import Attempts
from shared.messages.poison import keep_poison
from shared.notices import deliver
from shared.notices.ports import Post
from shared.ports import AllPorts
from shared.removals import retention
from shared.removals.ports import Removals
from shared.removals.remove import send_again


def look_after(ports: AllPorts, removals: Removals, post: Post) -> None:
    """Poison messages, old notices, lost removals, retention. One that fails stops no other; raises the first error."""
    steps = Attempts("daily")
    steps.do("poison messages", partial(keep_poison, ports))
    steps.do("notices", partial(deliver.prune, ports, post))
    steps.do("removals", partial(send_again, ports, removals))
    steps.do("retention", partial(retention.enforce, ports, removals))
    steps.end()
