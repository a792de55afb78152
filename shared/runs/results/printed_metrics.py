"""Numbers printed by a job, as rows of curves. Pure.

Without a pattern, every `name=value` counts, except variables of the environment (`CUDA_LAUNCH_BLOCKING=1`, in a hint)
and the settings that Lightning quotes in its hints (`Trainer(log_every_n_steps=50)`). A pattern gives the text before
each number, and the metric's name in braces: `Epoch {epoch} val loss: {val_loss}`. In each line, every number that
follows its text counts, in this order.
Regular expressions are not supported, because a user's expression could run forever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from shared.kernel.errors import Impossible

TAG = "metrics_pattern"  # the run's tag that holds the pattern
LONGEST_LINE = 10_000  # longer lines are skipped
_NUMBER = r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
_PAIR = re.compile(
    rf"(?<![\w.])(?<!\bTrainer\()(?![A-Z][A-Z0-9]*_[A-Z0-9_]*=)([A-Za-z_][\w./-]{{0,99}})={_NUMBER}(?=[\s,;%)\]|]|$)"
)
_BRACES = re.compile(r"([^{}]*)\{([A-Za-z_][\w./-]{0,99})\}")
Reader = Callable[[str], dict[str, Any]]


def reader(pattern: str = "") -> Reader:
    """A function from a line to a row. The row is empty if the line has no metric.

    Raises Impossible for a pattern without a name in braces, or with a number that has no text before it.
    """
    if not pattern:
        return _pairs
    parts = _BRACES.findall(pattern)
    if not parts or not all(text.strip() for text, _ in parts):
        raise Impossible(
            f"The tag {TAG} is {pattern[:80]!r}; write the text before each number, and the metric's name in braces, "
            'such as "Epoch {epoch} val loss: {val_loss}".',
            "bad_parameter",
        )
    steps = [(re.compile(r"\s+".join(map(re.escape, text.split())) + r"\s*" + _NUMBER), name) for text, name in parts]

    def read(line: str) -> dict[str, Any]:
        row, at = dict[str, Any](), 0
        for step, name in steps if len(line) <= LONGEST_LINE else ():
            if match := step.search(line, at):
                row[name], at = float(match[1]), match.end()
        return row

    return read


def _pairs(line: str) -> dict[str, Any]:
    pairs = _PAIR.findall(line) if len(line) <= LONGEST_LINE else ()
    return {name: float(number) for name, number in pairs}
