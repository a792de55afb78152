"""A fake of Azure Monitor: the test sets what jobs used, and each request is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.usage.model import OF_GPUS, NodeUsage
from shared.usage.ports import MOST_JOBS, NODE_METRICS
from tests.fakes.ports import Crashing


@dataclass
class FakeNodeMetrics:
    """See shared.usage.ports.NodeMetrics. `used` is by job; `requests` has the jobs of each request."""

    used: dict[str, NodeUsage] = field(default_factory=dict)
    requests: list[tuple[str, ...]] = field(default_factory=list)

    def nodes(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        return self._ask(jobs, since, until, gpus=False)

    def gpus(self, jobs: Sequence[str], since: datetime, until: datetime) -> dict[str, NodeUsage]:
        return self._ask(jobs, since, until, gpus=True)

    def _ask(self, jobs: Sequence[str], since: datetime, until: datetime, *, gpus: bool) -> dict[str, NodeUsage]:
        if not jobs or since >= until:
            return {}
        self.requests.append(tuple(jobs))
        found = {}
        for job in jobs[:MOST_JOBS]:
            series = (each for each in self.used.get(job, NodeUsage()).series if (each.metric in OF_GPUS) == gpus)
            if usage := NodeUsage(tuple(series)).between(since, until):
                found[job] = usage
        return found


def stores(journals: dict[str, Any], words: Iterable[str] = ()) -> dict[str, Any]:
    """Return the store of usage, as the System has it. The nodes' usage is in `journals`."""
    return {NODE_METRICS.name: Crashing(journals.setdefault("node_metrics", FakeNodeMetrics()), iter(words))}
