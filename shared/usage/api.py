"""The usage of a run over HTTP."""

from __future__ import annotations

import logging
from statistics import fmean
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from shared.kernel.encode import Json
from shared.kernel.errors import TrainyardError
from shared.money.admission import clusters, prices
from shared.money.ports import MoneyPorts
from shared.runs.intake.request import RunName
from shared.runs.model import Run
from shared.runs.ports import RunPorts
from shared.runs.views.metrics import series
from shared.usage.advice import Advice, advice
from shared.usage.model import NodeUsage, UsageSummary, rows, summary
from shared.usage.reading import usage_of
from shared.usage.words import sentence

log = logging.getLogger(__name__)
WAITED = "data_wait_share"  # written by Trainyard's trainers: the share of the time that went by until data were there


class NodeUsageAnswer(Struct):
    run: str
    sentence: Annotated[str, Meta(description="How the nodes were used, in words; '' if nothing was measured.")]
    summary: Annotated[UsageSummary | None, Meta(description="Null if nothing was measured.")]
    waited_for_data: Annotated[
        float | None, Meta(description="Share of the time, from 0 to 1; null if the training did not say it.")
    ]
    advice: Annotated[str | None, Meta(description="A smaller machine that would do; null without evidence.")]
    samples: Annotated[
        list[dict[str, Any]],
        Meta(description="Time (Unix seconds), node, device ('' for the node), and [value, peak] of each metric."),
    ]


def get_run_usage(ports: MoneyPorts, run: RunName) -> Annotated[Json, NodeUsageAnswer]:
    """Return how the nodes of a run were used. Raises NotFound, and Unavailable if Azure Monitor does not answer."""
    record = ports.runs.get(run).value
    usage = usage_of(ports, record)
    found, waited = summary(usage), waited_for_data(ports, record)
    advised = smaller_machine(ports, record, usage, found) if found else None
    return {
        "run": run,
        "sentence": sentence(found, waited) if found else "",
        "summary": msgspec.to_builtins(found),
        "waited_for_data": waited,
        "advice": str(advised) if advised else None,
        "samples": rows(usage),
    }


def waited_for_data(ports: RunPorts, run: Run) -> float | None:
    """Return the share of the time in which the training waited for data; None if its metrics do not say it."""
    points = series(ports, run.name, WAITED, printed=False).get(WAITED, [])
    shares = [value for _, value, _ in points if 0 <= value <= 1]
    return fmean(shares) if shares else None


def smaller_machine(ports: MoneyPorts, run: Run, usage: NodeUsage, found: UsageSummary) -> Advice | None:
    """Return advice for a run on one cluster; None if the cluster or its price is unknown."""
    try:
        cluster = clusters(ports).get(run.asked.cluster)
    except TrainyardError as error:
        log.warning("no advice for run %s: %s", run.name, error)
        return None
    if cluster is None:
        return None
    known, tier = prices(ports), cluster.tier

    def dollars(vm_size: str) -> float | None:
        price = known.find(vm_size, tier, ports.money.region)
        return price.dollars if price else None

    return advice(usage, found, cluster.vm_size, dollars)
