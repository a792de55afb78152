"""What a grant's runs may cost: reserved before a run, settled after the run, never above the budget."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from shared.grants import manage
from shared.grants.model import May, Then
from shared.kernel.errors import Conflict, Forbidden, Impossible
from shared.kernel.operation import CONTRIBUTOR
from shared.kernel.reply import Caller
from shared.money.api import CostsQuery, get_costs
from shared.money.decide import ALLOWANCE_SECONDS
from shared.runs.intake import retry_and_continue
from shared.runs.intake.request import SweepRequest
from shared.runs.model import RunState
from tests.fakes.world import World
from tests.shared.grants.granting import ANN, books, granted, now, submit, world_with_grants
from tests.shared.money.spending import goes, nodes, wait

MOST = 2 * (3600 + ALLOWANCE_SECONDS) * 3.6 / 3600  # two nodes for an hour, and the allowance: $10.80


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_with_grants(tmp_path)


def test_a_run_reserves_its_greatest_cost(world: World) -> None:
    """A run's worst cost is not available to another run; a repeated request reserves nothing more."""
    made = granted(world, budget=25.0)
    run = submit(world, made, "k")
    assert now(world, made).reserved[run.name].most == pytest.approx(MOST)
    assert submit(world, made, "k").name == run.name
    submit(world, made)
    with pytest.raises(Conflict, match=r"The run may cost \$10.80. Grant \w+ has \$3.40 left") as refused:
        submit(world, made)
    assert (refused.value.code, len(now(world, made).reserved)) == ("over_grant", 2)


def test_an_ended_run_gives_back_what_it_did_not_cost(world: World) -> None:
    """At a run's end its reservation shrinks to the most that it can have cost; the books then settle the actual
    cost."""
    made = granted(world)
    run = submit(world, made)
    world.run_until_idle()
    nodes(world, 2)
    goes(world, run, "Running")
    wait(world, 10, 2)
    goes(world, run, "Completed")
    shrunk = now(world, made).reserved[run.name]
    assert shrunk.most == pytest.approx(2 * 600 * 0.001 + 2 * 1800 * 0.001)
    wait(world, 5, 2)
    wait(world, 30, 0)
    books(world)
    grant = now(world, made)
    assert (grant.reserved, grant.ended) == ({}, 1)
    assert grant.spent == pytest.approx(2 * 1200 * 0.001)  # ten minutes of training, and ten of idle nodes
    (line,) = get_costs(world.system, CostsQuery(by="grant"))["lines"]
    assert (line["key"], line["name"], line["spent"]) == (grant.id, grant.person.name, pytest.approx(2.4))


def test_a_crash_before_the_record_gives_the_money_back(world: World) -> None:
    """A reservation whose run was never recorded is released after an hour, and not earlier."""
    made = granted(world, budget=15.0)
    world.runs.insert = lambda run: (_ for _ in ()).throw(Conflict("dead", "dead"))  # type: ignore[method-assign]
    with pytest.raises(Conflict, match="dead"):
        submit(world, made)
    del world.runs.insert
    wait(world, 30, 0)
    books(world)
    assert len(now(world, made).reserved) == 1
    wait(world, 40, 0)
    books(world)
    assert now(world, made).reserved == {}
    submit(world, made)


def test_retries_drops_and_sweeps_count(world: World) -> None:
    """A retry and a drop reserve like any run. A sweep reserves for all its trials, so its trials reserve nothing
    more."""
    made = granted(world, budget=100.0, runs=10)
    run = submit(world, made)
    world.run_until_idle()
    goes(world, run, "Failed")
    retry_and_continue.retry_run(world.system, run.name, by=made.grant.person)
    world.upload(f"mnist/grant-{made.grant.id}-a/_SUCCESS")
    world.upload(f"mnist/grant-{made.grant.id}-a/1.bin")
    world.deliver_all()
    world.clock.advance(10)
    world.run_until_idle()
    assert len(now(world, made).reserved) == 3
    space = {"epochs": "2,3,4,5"}
    sweep = {"metric": "accuracy", "trials": 4, "at_once": 1}
    parent = submit(world, made, parameters=space, sweep=msgspec.convert(sweep, SweepRequest))
    world.run_until_idle()
    grant = now(world, made)
    assert len(world.runs.newest()) == 5  # with one trial
    assert (len(grant.reserved), grant.runs) == (4, 7)
    assert grant.reserved[parent.name].most == pytest.approx(4 * MOST)


def test_numbers_and_scopes_are_limits(world: World) -> None:
    """A grant limits the number of runs, concurrent runs, routes, clusters and time; each refusal names its limit."""
    few = granted(world, runs=2, at_once=1)
    run = submit(world, few)
    with pytest.raises(Conflict, match="allows 1 runs at once"):
        submit(world, few)
    world.run_until_idle()
    goes(world, run, "Failed")
    submit(world, few)
    with pytest.raises(Conflict, match="runs at once"):
        submit(world, few)
    with pytest.raises(Conflict, match="may not use the cluster cpu-cluster"):
        submit(world, granted(world, clusters=("other",)))
    with pytest.raises(Conflict, match="may not use route 'mnist'"):
        submit(world, granted(world, routes=()))
    with pytest.raises(Conflict, match="may not keep nodes warm"):
        submit(world, granted(world, may=(May.SUBMIT,)), keep_warm_seconds=600)
    short = granted(world, until=manage.read_until("2026-01-10T09:00Z", world.clock()))
    wait(world, 61)
    with pytest.raises(Conflict, match="ended at 2026-01-10 09:00 UTC"):
        submit(world, short)


def test_kept_warm_nodes_count(world: World) -> None:
    """The nodes that a run keeps warm are reserved with the run, and charged to the run."""
    made = granted(world)
    run = submit(world, made, keep_warm_seconds=3600)
    warm = 2 * (3600 + 2 * 1800) * 0.001
    assert now(world, made).reserved[run.name].most == pytest.approx(MOST + warm)
    world.run_until_idle()
    nodes(world, 2)
    goes(world, run, "Running")
    wait(world, 10, 2)
    goes(world, run, "Completed")
    wait(world, 60, 2)
    wait(world, 70, 0)
    books(world)
    grant = now(world, made)
    assert grant.reserved == {}
    assert grant.spent == pytest.approx(2 * 4200 * 0.001, abs=0.7)  # the nodes were seen until five minutes later


@pytest.mark.parametrize("then", Then)
def test_runs_in_progress_end_as_the_grant_says(world: World, then: Then) -> None:
    """After the grant's end or its revocation, its runs continue or are canceled with the reason, as the grant
    says."""
    for revoked in (False, True):
        made = granted(world, then=then, until=manage.read_until("2026-01-10T08:30Z", world.clock()))
        run = submit(world, made)
        world.run_until_idle()
        goes(world, run, "Running")
        if revoked:
            manage.revoke(world.system, made.grant.id, ANN)
        else:
            world.clock.advance(31 * 60)
        books(world)
        after = world.runs.get(run.name).value
        assert bool(after.cancel.asked_at) is (then is Then.CANCEL)
        assert after.cancel.why.startswith("Grant") is (then is Then.CANCEL)
        world.clock.advance(-31 * 60 if not revoked else 0)


def test_a_run_that_costs_too_long_is_canceled(world: World) -> None:
    """A run that Azure ML does not end at its time limit is canceled before it costs more than its reservation."""
    made = granted(world)
    run = submit(world, made)
    world.run_until_idle()
    nodes(world, 2)
    goes(world, run, "Running")
    for _ in range(20):
        wait(world, 5, 2)
        books(world)
        if (after := world.runs.get(run.name).value).progress.state is RunState.CANCELED or after.cancel.asked_at:
            break
    assert "nearly all of the $10.80" in after.cancel.why
    assert (world.clock() - after.created_at).total_seconds() <= 3600 + 300 + 300


def test_notices_at_three_marks(world: World) -> None:
    """50, 80 and 100 percent are announced once each, and so is the first refusal because of the budget."""
    made = granted(world, budget=11.0)
    run = submit(world, made)
    with pytest.raises(Conflict, match="left"):
        submit(world, made)
    assert [event.kind for event in world.events.published].count("GrantUsed") == 1
    world.run_until_idle()
    assert now(world, made).told == 100
    manage.extend(world.system, made.grant.id, {"budget": 20.0}, ANN)
    assert now(world, made).told == 0
    nodes(world, 2)
    goes(world, run, "Running")
    wait(world, 90, 2)
    books(world)
    assert now(world, made).told == 50


def test_nobody_grants_more_than_they_may(world: World) -> None:
    """Each role has a largest budget, and only a coder may grant code; a change has the same limits as a new grant."""
    contributor = Caller("entra", ANN.person, True, CONTRIBUTOR)
    with pytest.raises(Forbidden, match=r"up to \$0.00"):
        manage.create(world.system, "x", granted(world).grant.terms, contributor)
    assert manage.largest({CONTRIBUTOR: 20.0}, CONTRIBUTOR) == 20.0
    made = granted(world, budget=90.0)
    with pytest.raises(Forbidden, match=r"up to \$100.00"):
        manage.extend(world.system, made.grant.id, {"budget": 101.0}, ANN)
    with pytest.raises(Impossible, match="budget would become more"):
        manage.narrow(world.system, made.grant.id, {"budget": 91.0}, ANN)
    with pytest.raises(Impossible, match="budget would become less"):
        manage.extend(world.system, made.grant.id, {"budget": 5.0}, ANN)
    manage.narrow(world.system, made.grant.id, {"budget": 5.0, "routes": ()}, ANN)
    manage.revoke(world.system, made.grant.id, ANN)
    with pytest.raises(Conflict, match="revoked"):
        manage.extend(world.system, made.grant.id, {"budget": 20.0}, ANN)
    assert [deed.what.partition(":")[0] for deed in now(world, made).history] == [
        "created with $90.00", "narrowed", "revoked",
    ]  # fmt: skip
