"""Find out why a running run makes no progress, by thresholds that quiet but healthy phases do not reach.

A healthy run is quiet while it starts, compiles, evaluates, saves a large checkpoint, or ends an epoch. In most of
these phases the nodes work or move data. So silence of the log counts early only if every node is measured and idle,
and late otherwise. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from statistics import fmean, median, quantiles

from shared.diagnosis.advice import advice
from shared.diagnosis.causes import Cause
from shared.diagnosis.lines import LogLine, lines_of
from shared.diagnosis.progress import of_metrics, wait_shares
from shared.diagnosis.steps import reports_step
from shared.runs.pulse import STEPPED, Ailment, NodePulse, Pulse

IDLE_CORES, IDLE_GPU, IDLE_MOVED = 0.1, 5.0, 1.0  # processors, percent, megabytes a second
SAMPLE_BEFORE = timedelta(seconds=30)  # an idle sample may begin this long before the last line
DENSE = 10.0  # reports of steps a minute; a log with fewer is quiet for longer
IDLE_DENSE, IDLE_SPARSE, IDLE_START = timedelta(seconds=45), timedelta(minutes=3), timedelta(minutes=15)
BUSY, BUSY_START = timedelta(hours=1), timedelta(hours=2)  # without measurements, too; NCCL gives up after 10 minutes
PAUSES = 3  # times the longest pause from which the run recovered
SLOWED, SLOW_CHECKS, PACES = 0.5, 2, 5  # of the earlier pace; number of slower checks, and of all checks needed
APART_GPU, ALIKE_GPU, APART_CORES = 40.0, 15.0, 0.08  # points of percent, processors
LASTING, MANY = 10, 3  # samples, nodes
STARVED, REPORTS = 0.5, 5  # share of the time spent waiting for data; number of such reports
WORKING_GPU, ALL_CORES = 30.0, 0.9  # percent, share of the processors
FULL_MEMORY, FULL_DISK, ROOMY_DISK = 0.95, 0.05, 20_000.0  # shares; free megabytes that suffice at any share
NOT_NUMBERS = 3  # losses
GIGABYTE = 1000.0


def ailments(pulse: Pulse) -> list[Ailment]:
    """Return the problems of the run, the most serious first; empty for a run that makes progress."""
    lines = lines_of(pulse.text)
    found = [*_hang(pulse), *_losses(lines), *_straggler(pulse), *_starved(pulse, lines)]
    return [*found, *(each for node in pulse.nodes for each in (*_memory(node), *_disk(node)))]


def patience(pulse: Pulse) -> timedelta:
    """Return how long the run may be silent before it counts as hanging."""
    idle, pauses = is_idle(pulse), PAUSES * pulse.pause
    if not (any(pulse.paces) or any(reports_step(line) for line in pulse.text.splitlines())):
        return max(IDLE_START if idle else BUSY_START, pauses)
    if not idle:
        return max(BUSY, pauses)
    return max(IDLE_DENSE if max(pulse.paces, default=0) >= DENSE else IDLE_SPARSE, pauses)


def is_idle(pulse: Pulse) -> bool:
    """Return whether every node was measured since the last write to the log, and is idle."""
    since = pulse.last_line_at - SAMPLE_BEFORE
    return bool(pulse.nodes) and all(node.at >= since and _does_nothing(node) for node in pulse.nodes)


def _does_nothing(node: NodePulse) -> bool:
    busy_gpu = bool(node.gpu) and node.gpu[-1] >= IDLE_GPU
    return bool(node.cores) and node.cores[-1] < IDLE_CORES and not busy_gpu and (node.moved or 0) < IDLE_MOVED


def _hang(pulse: Pulse) -> Iterator[Ailment]:
    if pulse.silence < patience(pulse):
        return
    evidence = [f"no line in the log of any rank since {pulse.last_line_at:%H:%M:%S} UTC"]
    evidence += [_use(node) for node in pulse.nodes]
    words = f"The training hangs: no step and no line for {_minutes(pulse.silence)}"
    yield _ailment(Cause.DEADLOCK, f"{words}{', and its nodes are idle' if is_idle(pulse) else ''}.", evidence)


def _losses(lines: Sequence[LogLine]) -> Iterator[Ailment]:
    """Find a loss that is not a number in the last NOT_NUMBERS reports, or a loss that leaps and stays high."""
    for sign in of_metrics(lines, NOT_NUMBERS):
        if sign.cause is Cause.NAN_LOSS:
            yield _ailment(Cause.NAN_LOSS, "The loss is not a number.", [sign.line.text.strip()[:300]])
            return
        if sign.cause is Cause.DIVERGING:
            yield _ailment(Cause.DIVERGING, "The loss has leapt and stays high.", [sign.line.text.strip()[:300]])
            return


def _straggler(pulse: Pulse) -> Iterator[Ailment]:
    """Find a straggler: steps take twice as long as before while one node works and others wait, or one GPU node of
    many always lags.

    Two checks must show the straggler, because rank 0 alone may evaluate for most of a minute.
    """
    if (odd := _odd_one(pulse.nodes)) is None or not pulse.makes_steps:
        return
    before, now = pulse.paces[:-SLOW_CHECKS], pulse.paces[-SLOW_CHECKS:]
    slower = len(pulse.paces) >= PACES and all(0 < pace < SLOWED * quantiles(before, n=4)[2] for pace in now)
    slower = slower and pulse.is_steady(pulse.now - STEPPED)  # a pause before a step looks like a slow step
    lags = _always_lags(odd, pulse.nodes) and pulse.is_steady(odd.at - (LASTING - 1) * timedelta(minutes=1))
    if not slower and not lags:
        return
    evidence = [f"steps a minute: {', '.join(f'{pace:.1f}' for pace in pulse.paces[-PACES:])}"] if slower else []
    words = f"Node {odd.node} is slower than the others"
    yield _ailment(Cause.STRAGGLER, f"{words}, which wait for it.", [*evidence, *map(_use, pulse.nodes)])


def _odd_one(nodes: Sequence[NodePulse]) -> NodePulse | None:
    """Return the node that the others wait for. A waiting node has idle processors (gloo), but busy GPUs (NCCL
    spins).
    """
    if len(nodes) < 2:
        return None
    if all(node.gpu for node in nodes):
        by_gpu = sorted(nodes, key=lambda node: fmean(node.gpu[-2:]))
        return by_gpu[0] if fmean(by_gpu[1].gpu[-2:]) - fmean(by_gpu[0].gpu[-2:]) >= APART_GPU else None
    if not all(node.cores for node in nodes):
        return None
    by_cores = sorted(nodes, key=lambda node: -fmean(node.cores[-2:]))
    first, second = (fmean(node.cores[-2:]) for node in by_cores[:2])
    return by_cores[0] if first - second >= APART_CORES and first >= 3 * second else None


def _always_lags(odd: NodePulse, nodes: Sequence[NodePulse]) -> bool:
    """Return whether one of at least MANY nodes used its GPUs less than all others in each of the last samples."""
    if len(nodes) < MANY or any(len(node.gpu) < LASTING for node in nodes):
        return False
    others = [node.gpu[-LASTING:] for node in nodes if node is not odd]
    return all(
        max(each) - min(each) <= ALIKE_GPU and min(each) - own >= APART_GPU
        for own, *each in zip(odd.gpu[-LASTING:], *others, strict=True)
    )


def _starved(pulse: Pulse, lines: Sequence[LogLine]) -> Iterator[Ailment]:
    reports = wait_shares(lines)[-REPORTS:]
    if len(reports) == REPORTS and min(share for _, share in reports) > STARVED:
        words = f"The training waits for data in {100 * median(share for _, share in reports):.0f} % of its time."
        yield _ailment(Cause.INPUT_BOUND, words, [line.text.strip()[:300] for line, _ in reports])
        return
    for node in pulse.nodes:
        enough = len(node.gpu) >= LASTING and len(node.cores) >= LASTING and node.cores_in_all
        if enough and max(node.gpu) < WORKING_GPU and min(node.cores) >= ALL_CORES * (node.cores_in_all or 0):
            words = f"The GPUs of node {node.node} wait for data, because its processors are fully used."
            yield _ailment(Cause.INPUT_BOUND, words, [_use(node)])
            return


def _memory(node: NodePulse) -> Iterator[Ailment]:
    if node.memory and node.memory_in_all and node.memory >= FULL_MEMORY * node.memory_in_all:
        used, whole = node.memory / GIGABYTE, node.memory_in_all / GIGABYTE
        words = f"Node {node.node} has almost no memory left: it uses {used:.1f} of {whole:.1f} GB."
        yield _ailment(Cause.HOST_OOM, words, [_use(node)], node.node)


def _disk(node: NodePulse) -> Iterator[Ailment]:
    if node.disk_free is None or not node.disk_in_all or node.disk_free >= ROOMY_DISK:
        return
    if node.disk_free < FULL_DISK * node.disk_in_all:
        free, whole = node.disk_free / GIGABYTE, node.disk_in_all / GIGABYTE
        words = f"The disk of node {node.node} is nearly full: {free:.1f} of {whole:.1f} GB are free."
        yield _ailment(Cause.DISK_FULL, words, [_use(node)], node.node)


def _ailment(cause: Cause, summary: str, evidence: Iterable[str], name: str = "") -> Ailment:
    return Ailment(cause.value, summary, tuple(evidence)[:REPORTS], advice(cause), name)


def _use(node: NodePulse) -> str:
    """Describe a node's measurements."""
    parts = [f"{node.cores[-1]:.1f} processors in use"] if node.cores else []
    parts += [f"GPUs at {node.gpu[-1]:.0f} %"] if node.gpu else []
    parts += [f"{node.moved:.1f} MB/s through disks and network"] if node.moved is not None else []
    return f"node {node.node} at {node.at:%H:%M} UTC: {', '.join(parts) or 'nothing measured'}"


def _minutes(time: timedelta) -> str:
    seconds = time.total_seconds()
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
