"""The usage of a run over HTTP."""

from __future__ import annotations

import logging
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
from shared.usage.words import TimeWent, sentence

log = logging.getLogger(__name__)
# Shares of the time since the previous row, written by Trainyard's trainers (the third: by any training).
WAITED, SAVED, OTHERS = "data_wait_share", "save_share", "others_wait_share"


class NodeUsageAnswer(Struct):
    run: str
    sentence: Annotated[str, Meta(description="How the nodes were used, in words; '' if nothing was measured.")]
    summary: Annotated[UsageSummary | None, Meta(description="Null if nothing was measured.")]
    waited_for_data: Annotated[
        float | None, Meta(description="Share of the time, from 0 to 1; null if the training did not say it.")
    ]
    time_went: Annotated[TimeWent, Meta(description="Shares of the training's time, from 0 to 1, where it says them.")]
    advice: Annotated[str | None, Meta(description="A smaller machine that would do; null without evidence.")]
    samples: Annotated[
        list[dict[str, Any]],
        Meta(description="Time (Unix seconds), node, device ('' for the node), and [value, peak] of each metric."),
    ]


def get_run_usage(ports: MoneyPorts, run: RunName) -> Annotated[Json, NodeUsageAnswer]:
    """Return how the nodes of a run were used. Raises NotFound, and Unavailable if Azure Monitor does not answer."""
    record = ports.runs.get(run).value
    usage = usage_of(ports, record)
    found, went = summary(usage), time_went(ports, record)
    advised = smaller_machine(ports, record, usage, found) if found else None
    return {
        "run": run,
        "sentence": sentence(found, went) if found else "",
        "summary": msgspec.to_builtins(found),
        "waited_for_data": went.data,
        "time_went": msgspec.to_builtins(went),
        "advice": str(advised) if advised else None,
        "samples": rows(usage),
    }


def time_went(ports: RunPorts, run: Run) -> TimeWent:
    """Return how the training spent its time, from its metrics. A row without a share adds nothing to the share."""
    found = series(ports, run.name, f"{WAITED},{SAVED},{OTHERS}", printed=False)
    shares = {name: [value for _, value, _ in points if 0 <= value <= 1] for name, points in found.items()}
    rows = max(map(len, shares.values()), default=0)
    means = {name: sum(values) / rows for name, values in shares.items() if values}
    return TimeWent.of(means.get(WAITED), means.get(SAVED), means.get(OTHERS))


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
