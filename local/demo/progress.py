"""How far a training is, read from its log: the trainers print `epoch 3/20` and, within it, `step 40/180`."""

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
    """The last lines of a log that arrives in pieces, and the share of the epochs that it says are done."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    total: int = 0  # lines so far, kept or not
    share: float = 0.0
    _pieces: Lines = field(default_factory=Lines)

    def add(self, text: str) -> None:
        """Take the next piece. Its last line counts once its end has come."""
        for line in self._pieces.add(text):
            self.lines.append(line)
            self.total += 1
            self.share = max(self.share, share_done(line))


def share_done(line: str) -> float:
    """What share of all epochs this line says is done; 0 if it doesn't say. With a step, its epoch still runs."""
    epoch, step = EPOCH.search(line), STEP.search(line)
    if not epoch or not int(epoch[2]):
        return 0.0
    done, of = int(epoch[1]), int(epoch[2])
    if step and int(step[2]):
        return min(1.0, (done - 1 + int(step[1]) / int(step[2])) / of)
    return min(1.0, done / of)
