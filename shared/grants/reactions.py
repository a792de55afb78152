"""Reactions of grants to facts."""

from __future__ import annotations

from shared.events.announce import announce, queue_notice
from shared.events.ports import EventPorts
from shared.grants.admission import shrink_at_end
from shared.grants.facts import GrantUsed
from shared.runs import facts as runs
from shared.runs.ports import RunPorts


def shrink_reservation(ports: RunPorts, fact: runs.RunEnded) -> None:
    shrink_at_end(ports, fact.run)


def announce_use(ports: EventPorts, fact: GrantUsed) -> None:
    data = {"grant": fact.grant, "percent": fact.percent, "why": fact.why}
    announce(ports, "GrantUsed", f"{fact.grant}/{fact.percent}", data)
    queue_notice(ports, "GrantUsed", f"{fact.grant}/{fact.percent}", data)
