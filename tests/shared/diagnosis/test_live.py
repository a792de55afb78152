"""The log and the nodes of a running run show what is wrong; quiet but healthy phases show nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmarks._healthy_runs import Healthy, alarms
from benchmarks._slow_runs import named_after
from shared.diagnosis.live import ailments, patience
from shared.runs.pulse import NodePulse, Pulse

BEGAN = datetime(2026, 11, 28, 12, tzinfo=UTC)
NOW = BEGAN + timedelta(hours=1)
STEPS = "".join(f"epoch 1 step {step}/900 loss 0.5{step}\n" for step in range(30))


def node(name: str = "n0", cores: float = 3.0, gpu: float | None = None, **more: Any) -> NodePulse:
    """Return a node with the same load in each of the last ten minutes."""
    used = (gpu,) * 10 if gpu is not None else ()
    given = {"cores_in_all": 8.0, "moved": 0.0, "memory": 4_000.0, "memory_in_all": 16_000.0, **more}
    return NodePulse(name, NOW - timedelta(minutes=1), (cores,) * 10, gpu=used, **given)


def pulse(silent: float = 5, text: str = STEPS, **more: Any) -> Pulse:
    """Return an hour-old run that wrote 30 steps a minute, and whose log has been silent for these seconds."""
    known = Pulse(NOW, BEGAN, {0: NOW - timedelta(seconds=silent)}, paces=(30.0,) * 6, text=text, nodes=(node(),))
    return replace(known, **more)


def causes(of: Pulse) -> list[str]:
    return [each.cause for each in ailments(of)]


def test_a_silent_run_with_idle_nodes_hangs() -> None:
    """A hang is found within a minute; if the nodes work, or are not measured, only after an hour."""
    idle = (node(cores=0.01), node("n1", cores=0.02))
    assert causes(pulse(50, nodes=idle)) == ["deadlock"]
    assert causes(pulse(40, nodes=idle)) == []
    for nodes in ((), (node(),), (node(cores=0.01, gpu=100.0),), (node(cores=0.01, moved=40.0),)):
        assert causes(pulse(3_500, nodes=nodes)) == []
        assert causes(pulse(3_700, nodes=nodes)) == ["deadlock"]
    assert causes(pulse(50, nodes=(node(cores=0.01), node("n1", cores=1.0)))) == []


def test_a_measurement_from_before_the_silence_shows_nothing() -> None:
    """Each node's newest sample must begin after the last line, or just before it."""
    old = replace(node(cores=0.01), at=NOW - timedelta(minutes=4))
    assert causes(pulse(50, nodes=(old,))) == []


def test_a_run_may_be_silent_for_as_long_as_it_was_before() -> None:
    """The limit is three times the longest pause that the run recovered from; a log with few lines may be silent
    longer."""
    idle = (node(cores=0.01),)
    assert patience(pulse(50, nodes=idle, pause=timedelta(minutes=8))) == timedelta(minutes=24)
    assert patience(pulse(50, nodes=idle, paces=(0.5,) * 6)) == timedelta(minutes=3)
    assert patience(pulse(50, text="", paces=(), nodes=idle)) == timedelta(minutes=15)


def test_the_summary_and_the_evidence_have_figures() -> None:
    """The figures show how long the log has been silent, and the load of each node."""
    (found,) = ailments(pulse(50, nodes=(node(cores=0.01),)))
    assert found.summary == "The training hangs: no step and no line for 50 s, and its nodes are idle."
    assert found.evidence[0] == "no line in the log of any rank since 12:59:10 UTC"
    assert found.evidence[1].startswith("node n0 at 12:59 UTC: 0.0 processors in use")
    assert found.advice


def test_a_slow_node_is_named_by_the_work_that_the_others_lack() -> None:
    """With gloo, waiting nodes are idle; with NCCL, their GPUs spin. The pace alone identifies no node."""
    slower = (30.0, 30.0, 30.0, 6.0, 5.0)
    once = (30.0, 30.0, 30.0, 30.0, 5.0)  # rank 0 evaluated for a while
    (found,) = ailments(pulse(paces=slower, nodes=(node("a", cores=0.1), node("b", cores=1.0))))
    assert (found.cause, found.summary) == ("straggler", "Node b is slower than the others, which wait for it.")
    (found,) = ailments(pulse(paces=slower, nodes=(node("a", gpu=40.0), node("b", gpu=99.0))))
    assert found.summary.startswith("Node a")
    assert causes(pulse(paces=slower, nodes=(node("a"), node("b")))) == []
    assert causes(pulse(paces=once, nodes=(node("a", cores=0.1), node("b", cores=1.0)))) == []
    assert causes(pulse(nodes=(node("a", cores=0.1), node("b", cores=1.0)))) == []  # rank 0 may do more


def test_one_gpu_node_of_many_that_always_lags_is_a_straggler() -> None:
    """A node that was slow from the beginning is a straggler too."""
    assert causes(pulse(nodes=(node("a", gpu=98.0), node("b", gpu=50.0), node("c", gpu=97.0)))) == ["straggler"]
    assert causes(pulse(nodes=(node("a", gpu=98.0), node("b", gpu=50.0), node("c", gpu=60.0)))) == []


@pytest.mark.parametrize(
    "line",
    ["epoch 1 step {0}/90 Time 0.3100 (0.3000) Data 0.2400 (0.2200) Loss 0.5", "step {0} loss 0.5 data_wait_share=0.71",
     "epoch 1/3 step {0}/90  Loss 0.5  Data 70.5%"],
)  # fmt: skip
def test_a_run_that_waits_for_data_is_starved(line: str) -> None:
    """The run's own lines show it, in the formats of PyTorch's examples and of Trainyard's trainers."""
    assert causes(pulse(text="\n".join(line.format(step) for step in range(9)))) == ["input_bound"]
    assert causes(pulse(text="\n".join(line.format(step) for step in range(3)))) == []


def test_gpus_wait_for_processors_that_are_fully_used() -> None:
    """Ten minutes of idle GPUs and fully used processors show it without a log line."""
    assert causes(pulse(nodes=(node(cores=7.9, gpu=12.0),))) == ["input_bound"]
    assert causes(pulse(nodes=(node(cores=7.9, gpu=80.0),))) == []


def test_a_loss_that_is_not_a_number_is_named_at_its_third_report() -> None:
    """A loss scaler may skip a single such loss; the last report counts."""
    bad = "step {0} loss nan\n"
    assert causes(pulse(text=STEPS + "".join(bad.format(n) for n in range(3)))) == ["nan_loss"]
    assert causes(pulse(text=STEPS + bad.format(1))) == []
    assert causes(pulse(text="".join(bad.format(n) for n in range(9)) + STEPS)) == []


def test_memory_and_disk_close_to_their_limits() -> None:
    """A large disk may be fuller than a small one."""
    assert causes(pulse(nodes=(node(memory=15_300.0),))) == ["host_oom"]
    assert causes(pulse(nodes=(node(memory=15_000.0),))) == []
    assert causes(pulse(nodes=(node(disk_free=1_000.0, disk_in_all=60_000.0),))) == ["disk_full"]
    assert causes(pulse(nodes=(node(disk_free=30_000.0, disk_in_all=900_000.0),))) == []


def test_the_first_node_alone_at_work_is_no_straggler() -> None:
    """The first node evaluates or saves: no step is reported meanwhile, and the pause makes the next step look
    slow."""
    slower, nodes = (30.0, 30.0, 30.0, 6.0, 5.0), (node("a", cores=0.1), node("b", cores=1.0))
    steps: dict[str, Any] = {"stepped_at": NOW - timedelta(seconds=20), "steady_since": BEGAN}
    assert causes(pulse(paces=slower, nodes=nodes, **steps)) == ["straggler"]
    assert causes(pulse(paces=slower, nodes=nodes, **steps | {"stepped_at": NOW - timedelta(minutes=3)})) == []
    assert causes(pulse(paces=slower, nodes=nodes, **steps | {"steady_since": NOW})) == []


@pytest.mark.parametrize("seed", [3, 39, 75, 105, 193])
def test_a_node_that_becomes_slow_is_named_although_steps_are_rare(seed: int) -> None:
    """Simulated runs log a line every one to ten minutes; the benchmark `diagnose` has 200 runs of all paces."""
    assert named_after(seed) is not None


def test_good_runs_raise_no_alarm() -> None:
    """Simulated runs with start, compilation, evaluation, large checkpoints, ends of epochs, and logs of any pace.

    The benchmark `diagnose` has 1,000 of them.
    """
    assert alarms(range(12)) == []


def test_the_simulation_can_fail() -> None:
    """The same runs are reported when they stop in the middle of their last phase."""
    for seed in range(3):
        run = Healthy(seed)
        run.lines = [(at, line) for at, line in run.lines if at < run.ends - 60]
        run.work = [*run.work[:-1], (run.ends - 60, *run.work[-1][1:]), (run.ends + 9_000, 0.01, 0.0, 0.0)]
        run.ends += 9_000
        assert "deadlock" in {found.cause for each in run.pulses() for found in ailments(each)}
