"""The progress of a training, read from its log: the trainers print `epoch 3/20` and, within an epoch, `step
40/180`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from cli.show.live import Lines

EPOCH = re.compile(r"\bepoch\s+(\d+)/(\d+)", re.IGNORECASE)
STEP = re.compile(r"\bstep\s+(\d+)/(\d+)", re.IGNORECASE)
LINES_KEPT = 200


@dataclass
class Log:
    """The last lines of a log in pieces, and the log's share of finished epochs."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    total: int = 0  # lines so far, kept or not
    share: float = 0.0
    _pieces: Lines = field(default_factory=Lines)

    def add(self, text: str) -> None:
        """Add the next piece. The last line counts once it is complete."""
        for line in self._pieces.add(text):
            self.lines.append(line)
            self.total += 1
            self.share = max(self.share, share_done(line))


def share_done(line: str) -> float:
    """Return the completed share of all epochs according to this line; 0 if the line does not state it. A line with
    a step belongs to a running epoch.
    """
    epoch, step = EPOCH.search(line), STEP.search(line)
    if not epoch or not int(epoch[2]):
        return 0.0
    done, of = int(epoch[1]), int(epoch[2])
    if step and int(step[2]):
        return min(1.0, (done - 1 + int(step[1]) / int(step[2])) / of)
    return min(1.0, done / of)
