"""People who evict members, and the rules for an elastic run."""

from __future__ import annotations

from functools import partial
from typing import Any

from shared.deadlines.messages import CheckPace
from shared.deadlines.model import Date
from shared.deadlines.plan import NodeChoice
from shared.elastic.api import evict
from shared.elastic.model import DEDICATED_FROM, Elastic, member_job
from shared.kernel.message import Message
from shared.runs.model import Run, RunState
from tests.fakes.world import World
from tests.simulation.rules import Actions, Rules
from tests.simulation.scheduler import check


class ElasticRules(Rules):
    def actions(self, simulation: Any) -> Actions:
        return [(partial(_evict, simulation), 0.2)]

    def stepped(self, _simulation: Any, _before: Run, run: Run) -> bool:
        elastic, date = run.feature(Elastic), run.feature(Date)
        if elastic is None:
            return False
        if date is None:
            spent, budget = elastic.resubmitted, elastic.resubmissions
            check(spent <= budget, f"run {run.name} spent {spent} of {budget} resubmissions")
        elif date.pace.holds in (NodeChoice.LOW, NodeChoice.NONE):
            check(not elastic.dedicated, f"run {run.name} holds {date.pace.holds}, and dedicated nodes too")
        return True

    def handled(self, simulation: Any, message: Message | None) -> None:
        """Check that after a check of a run with a date, every job that its row no longer needs was told to end."""
        row = simulation.world.runs.rows.get(message.paced) if isinstance(message, CheckPace) else None
        elastic = row.value.feature(Elastic) if row else None
        if row is None or elastic is None:
            return
        most = DEDICATED_FROM + elastic.dedicated
        surplus = {member_job(row.value.name, m.index, m.attempt) for m in elastic.members if m.index >= most}
        left = surplus.intersection(simulation.jobs.live()).difference(simulation.jobs.to_end)
        busy = any(f"msg {CheckPace.queue}" in each.name for each in simulation.scheduler.alive)
        check(busy or not left, f"run {row.value.name} does not need {left}, which nobody told to end")

    def healed(self, simulation: Any) -> None:
        """Check that exactly the canceled and failed runs have a closed rendezvous, so that a late node leaves."""
        world: World = simulation.world
        closed = world.journals["rendezvous"].closed
        over = {RunState.CANCELED, RunState.FAILED}
        elastic = [row.value for row in world.runs.rows.values() if row.value.feature(Elastic)]
        left = {run.name for run in elastic if run.progress.state in over} ^ closed.keys()
        check(not left, f"the rendezvous of {sorted(left)} should be closed for canceled and failed runs alone")

    def count(self, run: Run) -> dict[str, int]:
        elastic = run.feature(Elastic)
        return {"resubmissions": elastic.resubmitted} if elastic else {}


def _evict(simulation: Any) -> None:
    if run := simulation.some_run():
        simulation.host.call("evict", partial(evict, simulation.system, run, simulation.random.randrange(3)))


RULES = ElasticRules()
