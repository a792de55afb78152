"""Find members of a running elastic run that do nothing while the others train, by the measurements of their nodes.

Azure ML reports such a member as running: its process is stopped, hangs, or waits outside of the team. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from statistics import fmean

from shared.elastic.model import Elastic, Member, member_job
from shared.runs.model import Run, RunState
from shared.runs.pulse import Ailment, NodePulse, Pulse

STRAGGLER = "straggler"  # of the causes of shared/diagnosis
SAMPLE = timedelta(minutes=1)
SAMPLES = 2  # in a row that must show it
IDLE_CORES, IDLE_GPU = 0.1, 5.0  # processors, percent
WORKING_CORES, WORKING_GPU = 0.08, 20.0
FEWER = 8.0  # times fewer processors than the working members use
SETTLED = timedelta(minutes=3)  # a new member joins at the next round


def lagging(run: Run, pulse: Pulse) -> Iterator[Ailment]:
    """Yield an ailment for each member that does nothing while another member works. Its name is `member N`."""
    elastic = run.feature(Elastic)
    trains = pulse.stepped_at is not None and pulse.makes_steps and pulse.is_steady(pulse.now - SAMPLES * SAMPLE)
    if elastic is None or not trains:  # while one member evaluates or saves, the others wait for it
        return
    nodes = {node.job: node for node in pulse.nodes}
    at = {each.index: nodes[job] for each in elastic.members if (job := _job(run, each)) in nodes}
    if not (working := [node for node in at.values() if _works(node)]):
        return
    used = fmean(node.cores[-1] for node in working)
    for member in elastic.members:
        settled = member.state is RunState.RUNNING and pulse.now - member.at >= SETTLED
        if settled and (node := at.get(member.index)) is not None and (idle := _idle_samples(node, used)) >= SAMPLES:
            yield _ailment(member, node, idle, used)


def _job(run: Run, member: Member) -> str:
    return member_job(run.name, member.index, member.attempt)


def _works(node: NodePulse) -> bool:
    """Return whether the node worked in the last samples."""
    by_gpu = len(node.gpu) >= SAMPLES and min(node.gpu[-SAMPLES:]) >= WORKING_GPU
    by_cores = len(node.cores) >= SAMPLES and min(node.cores[-SAMPLES:]) >= WORKING_CORES
    return bool(node.cores) and (by_gpu or by_cores)


def _idle_samples(node: NodePulse, used: float) -> int:
    """Return how many samples up to the newest show an idle node; a GPU without samples counts as idle.

    `used` are the processors that a working member uses.
    """
    idle = 0
    for number in range(1, len(node.cores) + 1):
        gpu = node.gpu[-number] if len(node.gpu) >= number else 0.0
        if node.cores[-number] >= min(IDLE_CORES, used / FEWER) or gpu >= IDLE_GPU:
            break
        idle += 1
    return idle


def _ailment(member: Member, node: NodePulse, idle: int, used: float) -> Ailment:
    since = node.at - (idle - 1) * SAMPLE
    earlier = " or earlier" if idle == len(node.cores) else ""
    return Ailment(
        STRAGGLER,
        f"Member {member.index} does not answer: it has done nothing since {since:%H:%M} UTC{earlier}, "
        "while other members work.",
        (f"node {node.node} uses {node.cores[-1]:.2f} processors, the working members {used:.2f} on average",),
        (f"Replace it: python3 trainyard.py evict RUN --node {member.index}",),
        f"member {member.index}",
    )
