"""Policies of others for a job with a deadline: dedicated nodes alone, low-priority nodes until the last moment,
and Uniform Progress of Wu et al., Can't Be Late (NSDI 2024), section 5.2.2. All have the same safety net as our
policy."""

from __future__ import annotations

from benchmarks._spot import Policy
from shared.deadlines.decide import is_safe
from shared.deadlines.plan import NodeChoice, Terms, WorkLeft


def dedicated_only(_: WorkLeft) -> NodeChoice:
    return NodeChoice.DEDICATED


def until_the_last_moment(terms: Terms) -> Policy:
    """Use low-priority nodes when available, otherwise none. Use dedicated nodes once nothing else meets the
    deadline."""

    def policy(now: WorkLeft) -> NodeChoice:
        wish = (
            NodeChoice.LOW
            if now.available
            else NodeChoice.DEDICATED
            if now.holds is NodeChoice.DEDICATED
            else NodeChoice.NONE
        )
        return wish if is_safe(terms, now, wish) else NodeChoice.DEDICATED

    return policy


def uniform_progress(terms: Terms, left: float, work: float, hysteresis: bool = True) -> Policy:
    """Follow the straight line from the start to the deadline. `hysteresis` adds the third rule, as published.

    Idle and behind the line: take dedicated nodes. Low-priority nodes: keep them until they are taken away. Dedicated
    nodes: keep them until the job is ahead of the line by two changes.
    """

    def policy(now: WorkLeft) -> NodeChoice:
        done, gone, pace = work - now.work, left - now.left, work / left
        ahead = pace * (gone + 2 * terms.change) if hysteresis else 0.0
        if now.holds is NodeChoice.DEDICATED and done < ahead:
            return NodeChoice.DEDICATED
        wish = NodeChoice.LOW if now.available else NodeChoice.DEDICATED if done < pace * gone else NodeChoice.NONE
        return wish if is_safe(terms, now, wish) else NodeChoice.DEDICATED

    return policy
