"""The scheduler's decisions as pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from emulators.azureml.kernel.models import Node, NodeState, Scale
from emulators.azureml.scheduling.decide import LEAVING_SECONDS, Decision, Waiting, decide

START = 2.0


def node(name: str, state: NodeState, since: float = 0.0, job: str | None = None) -> Node:
    return Node(name, 1, state, since, job)


def test_a_gang_starts_only_when_all_its_nodes_are_idle() -> None:
    """With two idle nodes a job of three nodes does not start. The missing node is allocated, and the reason is
    given."""
    nodes = [node("a", NodeState.IDLE), node("b", NodeState.IDLE)]
    decision = decide(Scale(0, 4, 60), nodes, [Waiting("wide", 3)], 1.0, START)
    assert (decision.start, decision.add) == ((), 1)
    assert decision.reasons == {"wide": "Waiting for 3 nodes: 2 idle, 1 being allocated."}
    nodes.append(node("c", NodeState.IDLE))
    assert [s.job for s in decide(Scale(0, 4, 60), nodes, [Waiting("wide", 3)], 1.0, START).start] == ["wide"]


def test_the_queue_is_first_in_first_out() -> None:
    """A small job behind a wide job waits, even if enough idle nodes for the small job exist."""
    queue = [Waiting("wide", 2), Waiting("small", 1)]
    decision = decide(Scale(0, 4, 60), [node("a", NodeState.IDLE)], queue, 1.0, START)
    assert decision.start == ()
    assert decision.reasons["small"] == "Job wide is ahead in the queue."


def test_a_job_beyond_the_maximum_holds_back_nobody() -> None:
    """A job larger than the maximum waits with a reason. No node is allocated, and the next job starts."""
    queue = [Waiting("huge", 9), Waiting("small", 1)]
    decision = decide(Scale(0, 2, 60), [node("a", NodeState.IDLE)], queue, 1.0, START)
    assert [s.job for s in decision.start] == ["small"]
    assert decision.add == 0
    assert decision.reasons == {"huge": "The job needs 9 nodes and the cluster may have 2."}


def test_idle_nodes_leave_after_their_idle_time_down_to_the_minimum() -> None:
    """No node is released before its idle time. The longest idle nodes are released first, and the minimum is kept."""
    nodes = [node("old", NodeState.IDLE, 0.0), node("new", NodeState.IDLE, 5.0)]
    early = decide(Scale(1, 4, 10), nodes, [], 9.0, START)
    assert (early.leave, early.wake_in) == ((), 1.0)
    assert [n.id for n in decide(Scale(1, 4, 10), nodes, [], 20.0, START).leave] == ["old"]
    assert {n.id for n in decide(Scale(0, 4, 10), nodes, [], 20.0, START).leave} == {"old", "new"}


def test_nodes_that_a_queued_job_needs_stay() -> None:
    """A node beyond its idle time is kept while a queued job waits for this node and another."""
    nodes = [node("a", NodeState.IDLE, 0.0), node("b", NodeState.PREPARING, 99.0)]
    assert decide(Scale(0, 4, 10), nodes, [Waiting("pair", 2)], 100.0, START).leave == ()


def test_a_lower_maximum_holds_at_once() -> None:
    """Nodes above a new maximum are released at once if they are idle or being prepared. Running nodes finish
    first."""
    nodes = [node("a", NodeState.RUNNING, job="j"), node("b", NodeState.IDLE), node("c", NodeState.PREPARING)]
    decision = decide(Scale(0, 1, 60), nodes, [Waiting("next", 1)], 0.1, START)
    assert {n.id for n in decision.leave} == {"b", "c"}
    assert decision.start == ()


def test_minimum_nodes_come_without_jobs() -> None:
    """Without jobs, a cluster allocates exactly its minimum."""
    assert decide(Scale(2, 4, 60), [], [], 0.0, START).add == 2


@dataclass
class World:
    """A cluster that applies the decisions, as the scheduler does."""

    scale: Scale
    now: float = 0.0
    nodes: list[Node] = field(default_factory=list)
    queue: list[Waiting] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    names: int = 0

    def submit(self, needs: int) -> None:
        self.names += 1
        self.queue.append(Waiting(f"job{self.names}", needs))

    def step(self) -> None:
        decision = decide(self.scale, self.nodes, self.queue, self.now, START)
        self.check(decision)
        self.nodes = [n for n in self.nodes if n not in decision.forget]
        for one in decision.ready:
            one.enter(NodeState.IDLE, self.now)
        for start in decision.start:
            self.started.append(start.job)
            for one in start.nodes:
                one.enter(NodeState.RUNNING, self.now, start.job)
        for one in decision.leave:
            one.enter(NodeState.LEAVING, self.now)
        for _ in range(decision.add):
            self.names += 1
            self.nodes.append(node(f"node{self.names}", NodeState.PREPARING, self.now))
        gone = {start.job for start in decision.start}
        self.queue = [w for w in self.queue if w.job not in gone]

    def check(self, decision: Decision) -> None:
        waiting = {w.job: w.needs for w in self.queue}
        used = [n.id for start in decision.start for n in start.nodes]
        assert len(used) == len(set(used))
        assert all(len(s.nodes) == waiting[s.job] for s in decision.start)
        assert not {n.id for n in decision.leave} & set(used)
        possible = [w.job for w in self.queue if w.needs <= self.scale.maximum]
        assert [s.job for s in decision.start] == possible[: len(decision.start)]
        live = sum(n.state not in (NodeState.LEAVING, NodeState.PREEMPTED) for n in self.nodes)
        assert decision.add == 0 or live + decision.add <= self.scale.maximum
        assert set(decision.reasons) == set(waiting) - {s.job for s in decision.start}

    def finish(self, index: int) -> None:
        jobs = sorted({n.job for n in self.nodes if n.job})
        if jobs:
            for one in self.nodes:
                if one.job == jobs[index % len(jobs)]:
                    one.enter(NodeState.IDLE if one.state is NodeState.RUNNING else one.state, self.now)

    def preempt(self, index: int) -> None:
        if self.nodes:
            victim = self.nodes[index % len(self.nodes)]
            job = victim.job
            victim.enter(NodeState.PREEMPTED, self.now)
            for one in self.nodes:
                if job and one.job == job:
                    one.enter(NodeState.IDLE, self.now)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 6)),
        st.tuples(st.just("wait"), st.integers(0, 20)),
        st.tuples(st.just("finish"), st.integers(0, 5)),
        st.tuples(st.just("preempt"), st.integers(0, 5)),
        st.tuples(st.just("scale"), st.integers(0, 5)),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(steps=STEPS)
def test_any_history_runs_every_possible_job_and_ends_at_the_minimum(steps: list[tuple[str, int]]) -> None:
    """For any order of submissions, completions, preemptions and resizes: gangs are whole, no node is added above
    the maximum, the queue keeps its order, and an idle cluster returns to its minimum."""
    world = World(Scale(0, 4, 5))
    for action, value in steps:
        if action == "wait":
            world.now += value / 2
        elif action == "scale":
            world.scale = Scale(min(1, value), value, 5)
        else:
            getattr(world, action)(value)
        world.step()
    world.scale = Scale(1, 4, 5)
    for _ in range(120):
        world.finish(0)
        world.now += START
        world.step()
    assert all(w.needs > 4 for w in world.queue)
    assert [n.state for n in world.nodes] == [NodeState.IDLE]
    assert LEAVING_SECONDS < START
