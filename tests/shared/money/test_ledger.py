"""The ledger charges every second of every node exactly once: to a run, to a lease, or as unexplained."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.clusters.samples import HOLDS, Sample
from shared.elastic.model import Elastic, Size
from shared.money.ledger import LeasedNodes, Share, default_seconds, split
from shared.money.paid import Paid, paid
from shared.runs.model import Moment, Run, RunState
from shared.runs.node_use import ClusterUse, NodeSpan, use_of_one_job
from shared.runs.progress.workloads import workload

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def sample(minutes: float, nodes: int, maximum: int = 0, steady_since: float | None = None) -> Sample:
    state, since = ("", None) if steady_since is None else ("Steady", at(steady_since))
    return Sample(
        "gpu", at(minutes), "Standard_NC4as_T4_v3", "low_priority", nodes,
        idle=nodes, allocation=state, maximum=maximum, allocation_since=since,
    )  # fmt: skip


def spell(begin: float, end: float, nodes: int) -> NodeSpan:
    return NodeSpan(at(begin), at(end), nodes)


def use(run: str, waited: NodeSpan, ran: NodeSpan) -> ClusterUse:
    return ClusterUse(run, "gpu", waited.begin, (waited,), (ran,), ran.end)


def told(shares: list[Share]) -> list[tuple[str, str, float, float, int]]:
    def minutes(moment: datetime) -> float:
        return (moment - NOW) / timedelta(minutes=1)

    return [(s.kind, s.who, minutes(s.begin), minutes(s.end), s.nodes) for s in shares]


def test_a_run_pays_for_its_allocation_its_training_and_the_idle_tail() -> None:
    """A run pays for its nodes from its submission until they stop; later costs are unexplained."""
    run = use("a", spell(0, 5, 2), spell(5, 20, 2))
    assert told(split(spell(-10, 60, 2), [run])) == [
        ("unexplained", "", -10, 0, 2),
        ("allocation", "a", 0, 5, 2),
        ("training", "a", 5, 20, 2),
        ("idle", "a", 20, 50, 2),
        ("unexplained", "", 50, 60, 2),
    ]


def test_who_comes_first() -> None:
    """A node is charged to a training run first, then to a waiting run, a lease, and the run that ended last."""
    runs = [
        use("ended", spell(-20, -15, 1), spell(-15, 0, 1)),
        use("trains", spell(-10, 0, 1), spell(0, 10, 1)),
        use("waits", spell(0, 10, 1), spell(10, 11, 1)),
    ]
    lease = LeasedNodes("lease", "gpu", spell(0, 10, 1))
    kinds = {n: [(s.kind, s.who) for s in split(spell(0, 10, n), runs, [lease])] for n in (1, 2, 3, 5)}
    assert kinds[1] == [("training", "trains")]
    assert kinds[2] == [*kinds[1], ("allocation", "waits")]
    assert kinds[3] == [*kinds[2], ("lease", "lease")]
    assert kinds[5] == [*kinds[2], ("idle", "ended"), ("lease", "lease"), ("unexplained", "")]


def test_a_sample_holds_until_the_next_one() -> None:
    """Between two samples a cluster has the nodes of the earlier one. The last sample holds for 15 minutes only,
    because the nodes may be gone."""
    had = paid([sample(0, 2), sample(5, 3), sample(10, 0), sample(15, 1)], [], at(2), at(200))
    assert [(p.spell.begin, p.spell.end, p.spell.nodes) for p in had] == [
        (at(2), at(5), 2),
        (at(5), at(10), 3),
        (at(15), at(15) + HOLDS, 1),
    ]
    assert had[0] == Paid(spell(2, 5, 2), "Standard_NC4as_T4_v3", "low_priority")


def test_nodes_that_came_before_anybody_looked_are_paid() -> None:
    """A run that starts between two counts, or before the first one, pays for its nodes from its start and for its
    wait before. The wait counts for five minutes at most, and uses the free nodes of the count first."""
    first, second = use("a", spell(0, 2, 1), spell(2, 30, 1)), use("b", spell(5, 20, 1), spell(20, 25, 1))

    def had(*counts: Sample) -> list[tuple[float, float, int]]:
        return [(b, e, nodes) for b, e, nodes, _ in stretches(paid(counts, [first, second], at(-10), at(30)))]

    assert had(sample(3, 1)) == [(0, 15, 1), (15, 25, 2), (25, 30, 1)]
    assert had(sample(3, 2)) == [(0, 3, 1), (3, 25, 2), (25, 30, 1)], "the second has a free one"
    assert had(sample(3, 1), sample(18, 1)) == [(0, 18, 1), (18, 25, 2), (25, 30, 1)], "counted while it waited"
    assert had(sample(3, 1), sample(17, 1), sample(22, 0)) == [(0, 17, 1), (17, 22, 2)], "fewer were counted"


def stretches(had: list[Paid]) -> list[tuple[float, float, int, int]]:
    """Return begin and end in minutes, nodes, and unknown nodes; equal neighbors are merged."""
    merged: list[tuple[float, float, int, int]] = []
    for part in had:
        begin, end = ((moment - NOW) / timedelta(minutes=1) for moment in (part.spell.begin, part.spell.end))
        nodes = (part.spell.nodes, part.unknown)
        if merged and merged[-1][1:] == (begin, *nodes):
            begin = merged.pop()[0]
        merged.append((begin, end, *nodes))
    return merged


def node_seconds(had: list[Paid]) -> float:
    return sum(part.spell.nodes * (part.spell.end - part.spell.begin).total_seconds() for part in had)


def test_runs_that_take_turns_need_their_nodes_once() -> None:
    """Forty runs of one node, four at a time on a cluster of four nodes, are counted every five minutes. Never more
    than four nodes are paid, and all four are paid from the first wait to the last end."""
    ends = [0.5] * 4
    runs = []
    for number in range(40):
        begin = ends[number % 4]
        ends[number % 4] = begin + 1.167
        runs.append(use(f"{number:02}", spell(0, begin, 1), spell(begin, ends[number % 4], 1)))
    had = paid([sample(0, 0, 4), sample(5, 4, 4), sample(10, 4, 4), sample(15, 0, 4)], runs, at(0), at(20))
    assert max(part.spell.nodes for part in had) == 4
    assert node_seconds(had) == 4 * 15 * 60
    unlimited = paid([sample(0, 0), sample(15, 0)], runs, at(0), at(20))
    assert max(part.spell.nodes for part in unlimited) == 4, "also where the maximum was not recorded"


def test_a_cluster_never_has_more_nodes_than_its_maximum() -> None:
    """The nodes that run records add to a count are capped at the maximum; a count above the maximum is believed."""
    runs = [use(name, spell(0, 2, 3), spell(2, 4, 3)) for name in "ab"]
    assert stretches(paid([sample(0, 1, 4), sample(5, 0, 4)], runs, at(0), at(9))) == [(0, 4, 4, 0), (4, 5, 1, 0)]
    assert stretches(paid([sample(0, 5, 4), sample(5, 0, 4)], runs, at(0), at(9))) == [(0, 5, 5, 0)]


def test_a_gap_between_counts_is_not_paid_as_if_the_last_count_went_on() -> None:
    """In a gap between counts only known nodes are paid: the size since the last change, and runs that both counts
    show. The rest, up to the maximum, is unknown."""
    unknown = paid([sample(0, 2, 4), sample(100, 0, 4)], [], at(0), at(110))
    assert stretches(unknown) == [(0, 5, 2, 0), (5, 100, 0, 4)]
    gone = paid([sample(0, 2, 4), sample(100, 0, 4, steady_since=12)], [], at(0), at(110))
    assert stretches(gone) == [(0, 5, 2, 0), (5, 12, 0, 4)]
    stayed = paid([sample(0, 2, 4), sample(100, 2, 4, steady_since=-9)], [], at(0), at(100))
    assert stretches(stayed) == [(0, 100, 2, 0)]
    came = paid([sample(0, 0, 4), sample(100, 3, 4, steady_since=90)], [], at(0), at(100))
    assert stretches(came) == [(5, 90, 0, 4), (90, 100, 3, 0)]
    for end, known in ((130, 2), (101, 0)):
        trains = use("a", spell(-9, -5, 2), spell(-5, end, 2))
        through = paid([sample(0, 2, 4), sample(100, 3, 4)], [trains], at(0), at(100))
        assert stretches(through) == [(0, 5, 2, 0), (5, 100, known, 4 - known)], "its end may have been seen late"
    assert stretches(paid([sample(0, 2), sample(100, 0)], [], at(0), at(110))) == [(0, 5, 2, 0), (5, 100, 0, 2)]


minutes = st.integers(0, 120)
spells = st.tuples(minutes, minutes, st.integers(1, 4)).map(lambda t: spell(min(t[:2]), max(t[:2]) + 1, t[2]))
uses = st.builds(
    lambda name, begin, wait, run, nodes, over: ClusterUse(
        f"run-{name}",
        "gpu",
        at(begin),
        (spell(begin, begin + wait, nodes),),
        (spell(begin + wait, begin + wait + run, nodes),),
        at(begin + wait + run) if over else None,
    ),
    st.integers(0, 5), minutes, minutes, minutes, st.integers(1, 4), st.booleans(),
)  # fmt: skip


@given(st.lists(uses, max_size=5, unique_by=lambda u: u.run), st.lists(spells, max_size=2), spells)
@settings(max_examples=150)
def test_every_node_second_is_charged_once(runs: list[ClusterUse], leases: list[NodeSpan], had: NodeSpan) -> None:
    """At each moment the shares add up to the paid nodes, and no share exceeds its demand."""
    holds = [LeasedNodes(f"lease-{i}", "gpu", hold) for i, hold in enumerate(leases)]
    shares = split(had, runs, holds)
    wanted = {run.run: run.nodes for run in runs} | {hold.lease: hold.spell.nodes for hold in holds}
    moments = {had.begin, *(s.begin for s in shares), *(s.end for s in shares)} - {had.end}
    for moment in moments:
        there = [s for s in shares if s.begin <= moment < s.end]
        assert sum(s.nodes for s in there) == had.nodes
        assert all(s.nodes <= wanted[s.who] for s in there if s.who)
    assert sum(s.node_seconds for s in shares) == had.nodes * (had.end - had.begin).total_seconds()


def test_what_azure_ml_alone_would_have_cost() -> None:
    """With Azure ML's default each node idles 120 s after its last use, and shorter gaps are bridged."""
    work = [Share("training", "a", at(0), at(10), 2), Share("training", "b", at(11), at(20), 1)]
    used = 2 * 600 + 540
    assert default_seconds([*work, Share("idle", "b", at(20), at(50), 1)], at(60)) == used + 60 + 120 + 120
    assert default_seconds([], at(60)) == 0


def run_of(*history: Moment, kind: str = "") -> Run:
    return Run.of(
        name="a",
        drop="",
        route="",
        fingerprint="",
        experiment="e",
        cluster="gpu",
        nodes=2,
        created_at=history[0].at,
        state=history[-1].state,
        history=history,
        kind=kind,
    )


def moment(state: RunState, minutes: float) -> Moment:
    return Moment(state, at(minutes))


S = RunState


def test_a_run_waits_again_when_it_loses_its_nodes() -> None:
    """A preempted run waits between its two training periods; a live run has its nodes until now."""
    history = [(S.RECEIVED, 0), (S.SUBMITTED, 1), (S.RUNNING, 5), (S.QUEUED, 8), (S.RUNNING, 10)]
    run = run_of(*(moment(state, minutes) for state, minutes in history))
    (found,) = workload(run).uses(run, at(30))
    assert found.waited == (spell(1, 5, 2), spell(8, 10, 2))
    assert found.ran == (spell(5, 8, 2), spell(10, 30, 2))
    assert found.ended is None
    assert use_of_one_job(run_of(*run.progress.history, moment(S.FAILED, 12)), at(30)).ended == at(12)


def test_a_completed_run_that_nobody_saw_running_had_its_nodes() -> None:
    """A run that ended before the first count pays for its wait until the end, and for the idle tail after it."""
    use = use_of_one_job(run_of(moment(S.SUBMITTED, 0), moment(S.COMPLETED, 2)), at(9))
    shares = [share for part in paid([sample(3, 2)], [use], at(0), at(9)) for share in split(part.spell, [use])]
    assert told(shares) == [("allocation", "a", 0, 2, 2), ("idle", "a", 3, 9, 2)]
    canceled = use_of_one_job(run_of(moment(S.SUBMITTED, 0), moment(S.CANCELED, 2)), at(9))
    assert [part.spell for part in paid([sample(3, 2)], [canceled], at(0), at(9))] == [spell(3, 9, 2)]


def test_an_elastic_run_has_as_many_nodes_as_members() -> None:
    """An elastic run trains on as many nodes as its size, and waits for the others, up to its maximum."""
    sizes = (Size(at(2), 1), Size(at(5), 2), Size(at(9), 1))
    run = run_of(moment(S.SUBMITTED, 1), moment(S.RUNNING, 2), kind="elastic").having(Elastic(1, 3, at(90), (), sizes))
    (found,) = workload(run).uses(run, at(20))
    assert found.ran == (spell(2, 5, 1), spell(5, 9, 2), spell(9, 20, 1))
    assert {(s.kind, s.nodes) for s in split(spell(10, 11, 4), [found])} == {
        ("training", 1),
        ("allocation", 1),
        ("unexplained", 2),
    }


moments = st.integers(0, 300)
counted = st.lists(st.tuples(moments, st.integers(0, 3)), min_size=1, max_size=6, unique_by=lambda pair: pair[0])


def there(minute: int, counts: list[tuple[int, int]], runs: list[ClusterUse]) -> int:
    """Return the nodes of one minute by trying each later minute: the nodes of the last count, plus those that the
    current runs use at once."""
    looked, nodes = max(((at, nodes) for at, nodes in counts if at <= minute), default=(-99, 0))
    next_look, next_nodes = min(((at, nodes) for at, nodes in counts if at > minute), default=(360, None))
    gap = looked >= 0 and next_nodes is not None and next_look - looked > 15
    least = nodes if minute - looked < (5 if gap else 15) else 0
    surely, most = (min(nodes, next_nodes), max(nodes, next_nodes)) if gap and next_nodes is not None else (nodes, 99)

    def at_once(later: int) -> int:
        old = new = 0
        for ran, waited in ((u.ran[0], u.waited[0]) for u in runs):
            runs_then = ran.begin <= at(later) < ran.end
            if not at(looked) <= ran.begin < at(next_look):
                lasts = not gap or (ran.begin < at(looked) and ran.end >= at(next_look + 15))
                old += ran.nodes * (runs_then and lasts)
            elif at(minute) < ran.begin:
                waits = waited.begin <= at(minute) < waited.end and ran.begin <= at(minute + 5)
                new += ran.nodes * (waits and (runs_then or ran.begin == at(later)))
            else:
                new += ran.nodes * runs_then
        return min(surely, old) + new

    return min(most, max(least, *(at_once(later) for later in range(minute, next_look))))


@given(counted, st.lists(uses, max_size=4, unique_by=lambda u: u.run), st.lists(spells, max_size=2))
@settings(max_examples=50)
def test_an_independent_integral_finds_the_same(
    counts: list[tuple[int, int]], runs: list[ClusterUse], leases: list[NodeSpan]
) -> None:
    """A second computation, minute by minute: the nodes counted or necessarily added since, split into training,
    waiting and leased."""
    samples = [sample(minute, nodes) for minute, nodes in sorted(counts)]
    holds = [LeasedNodes(f"l{number}", "gpu", each) for number, each in enumerate(leases)]
    shares = [s for part in paid(samples, runs, at(0), at(360)) for s in split(part.spell, runs, holds)]
    expected: Counter[str] = Counter()
    for minute in range(360):
        now = at(minute)
        left = there(minute, counts, runs)
        training = sum(max((s.nodes for s in u.ran if s.begin <= now < s.end), default=0) for u in runs)
        waiting = sum(
            max(0, max((s.nodes for s in u.waited if s.begin <= now < s.end), default=0)
                - max((s.nodes for s in u.ran if s.begin <= now < s.end), default=0))
            for u in runs
        )  # fmt: skip
        leased = sum(s.nodes for s in leases if s.begin <= now < s.end)
        ends = [(u.ended, u.nodes) for u in runs if u.ran and u.ended] + [(s.end, s.nodes) for s in leases]
        idle = sum(nodes for end, nodes in ends if end <= now < end + timedelta(minutes=30))
        demands = {"training": training, "allocation": waiting, "lease": leased, "idle": idle, "unexplained": left}
        for kind, demand in demands.items():
            expected[kind] += 60 * min(left, demand)
            left -= min(left, demand)
    found: Counter[str] = Counter()
    for share in shares:
        found[share.kind] += round(share.node_seconds)
    assert +found == +expected
