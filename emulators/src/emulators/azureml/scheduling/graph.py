"""The next actions of a pipeline, decided from the states of its steps. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from emulators.azureml.kernel.models import TERMINAL, Status


@dataclass(frozen=True)
class GraphDecision:
    """The next actions. `failed` are the steps that ended without completing. `never` are the steps that can't
    start because of them."""

    start: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    ended: bool = False


def decide(
    needs: Mapping[str, set[str]],
    begun: Mapping[str, Status],
    *,
    continues: bool,
    canceled: bool = False,
    skipped: Collection[str] = (),
) -> GraphDecision:
    """Decide for a pipeline with these statuses of the `begun` steps. A repeated decision is harmless. `skipped` are
    steps that a condition excludes; neither these nor dependent steps start, and the pipeline completes without them.

    A failed step ends the pipeline: no other step starts, and running steps are canceled. With `continues` only the
    steps that depend on the failed step, directly or indirectly, don't start.
    """
    failed = tuple(step for step in needs if begun.get(step) in (Status.FAILED, Status.CANCELED))
    running = tuple(step for step, status in begun.items() if status not in TERMINAL)
    lost = _lost(needs, (*failed, *skipped))
    if canceled or (failed and not continues):
        never = tuple(step for step in needs if step not in begun)
        return GraphDecision(cancel=running, failed=failed, never=never, ended=not running)
    start = tuple(
        step
        for step, wanted in needs.items()
        if step not in begun and step not in lost and all(begun.get(each) is Status.COMPLETED for each in wanted)
    )
    never = tuple(step for step in needs if step in lost and step not in begun)
    return GraphDecision(start=start, failed=failed, never=never, ended=not running and not start)


def _lost(needs: Mapping[str, set[str]], failed: Iterable[str]) -> set[str]:
    """Return the failed steps and every dependent step."""
    lost = set(failed)
    while more := {step for step, wanted in needs.items() if wanted & lost} - lost:
        lost |= more
    return lost
