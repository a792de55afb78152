"""Run the demo, and draw its output as an animated picture: docs/demo.svg.

    .trainyard/venv/bin/python .ci/recording.py

Each line appears when the demo printed it; pauses of more than two seconds become two. Most of the training log is left
out. tests/e2e/test_demo.py compares the picture's lines with the demo's present output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
COMMAND = "$ python3 trainyard.py demo"
LOG = "  | "
KEPT = re.compile(r"processes \d|epoch (1|(\d+))/(?(2)\2|\d+) test|rank 0: done")  # first, last and in between nothing
MASKS = (
    (r"mnist-[0-9a-f]{16}", "RUN"),
    (r"received( > \w+)* > completed", "STATES"),  # an event that came late leaves one out
    (r"\d[\d.,:]*", "N"),
    (r" +", " "),
)
LONGEST_PAUSE, LAST_PAUSE = 2.0, 6.0  # seconds
ROWS, COLUMNS, HEIGHT, WIDTH = 26, 112, 18, 7.83  # of the terminal; pixels of a line and of a character
Line = tuple[float, str]  # seconds since the beginning, and what was printed


def main() -> int:
    env = {"EMULATORS_NODE_HOME": str(ROOT / ".trainyard" / "node"), **os.environ}  # as trainyard.py sets it
    argv, began, lines = [sys.executable, "-m", "local", "demo"], time.monotonic(), list[Line]()
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env) as demo:
        assert demo.stdout is not None
        lines.extend((time.monotonic() - began, line.rstrip("\n")) for line in demo.stdout)
    if demo.returncode:
        sys.stderr.write(f"The demo failed with exit status {demo.returncode}.\n")
        return 1
    PICTURE.write_text(drawn(list(shortened(lines))), "utf-8")
    return 0


def shortened(lines: Iterable[Line]) -> Iterator[Line]:
    """Return the lines without most of the training log and without this machine's folders; `...` stands for the
    rest."""
    left_out = False
    for at, line in ((at, line.replace(f"{ROOT}/", "").rstrip()) for at, line in lines):
        if not line.startswith(LOG) or KEPT.search(line):
            yield at, line
        elif not left_out and "epoch 2/" in line:
            left_out = True
            yield at, f"{LOG}..."


def shape(lines: Iterable[str]) -> list[str]:
    """Return the lines without what differs between runs: names, numbers, and the states of the history."""
    kept = [line[:COLUMNS] for line in lines if not re.match(r"\d\d:\d\d:\d\d", line)]
    for pattern, word in MASKS:
        kept = [re.sub(pattern, word, line).rstrip() for line in kept]
    return kept


def printed_in(picture: str) -> list[str]:
    """Return the lines that the picture shows, without the command."""
    texts = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314  # our own file
    return [text.text or "" for text in texts][1:]


def drawn(lines: list[Line]) -> str:
    """Return the lines as an SVG that plays in a loop and needs no script."""
    times = _times(lines)
    whole = times[-1] + LAST_PAUSE
    rows = [(0.0, COMMAND), *((at, line) for at, (_, line) in zip(times, lines, strict=True))]
    texts = "\n".join(_row(number, line) for number, (_, line) in enumerate(rows))
    moves = [(0.0, 0), *((at / whole, number) for number, (at, _) in enumerate(rows, 1) if number > ROWS)]
    scroll = "".join(f"{at:.2%}{{transform:translateY({-HEIGHT * max(0, n - ROWS)}px)}}" for at, n in moves)
    wide, high = round(COLUMNS * WIDTH) + 32, ROWS * HEIGHT + 32
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img">
<title>python3 trainyard.py demo, recorded</title>
<style>
svg{{background:#101815;border-radius:8px}}
text{{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d7e3dc;white-space:pre}}
.good{{fill:#5fd38d}}.dim{{fill:#8aa196}}
g g{{animation:scroll {whole:.1f}s step-end infinite}}
text{{animation-duration:{whole:.1f}s;animation-timing-function:step-end;animation-iteration-count:infinite}}
@keyframes scroll{{{scroll}}}
{"".join(_keyframes(number, at / whole) for number, (at, _) in enumerate(rows))}
@media (prefers-reduced-motion:reduce){{text,g g{{animation:none}}}}
</style>
<clipPath id="screen"><rect x="0" y="8" width="{wide}" height="{high - 16}"/></clipPath>
<g clip-path="url(#screen)"><g>
{texts}
</g></g>
</svg>
"""


def _times(lines: list[Line]) -> list[float]:
    """Return when each line appears, with long pauses shortened."""
    pauses = [min(LONGEST_PAUSE, later - earlier) for (earlier, _), (later, _) in pairwise([(0.0, ""), *lines])]
    return [sum(pauses[: number + 1]) for number in range(len(pauses))]


def _row(number: int, line: str) -> str:
    kind = "good" if line.startswith("✓") or number == 0 else "dim" if line.startswith(LOG) else ""
    name = f' class="{kind}"' if kind else ""
    y = 28 + number * HEIGHT
    return f'<text x="16" y="{y}"{name} style="animation-name:l{number}">{escape(line[:COLUMNS])}</text>'


def _keyframes(number: int, share: float) -> str:
    return f"@keyframes l{number}{{0%{{opacity:0}}{max(share, 0.0001):.2%}{{opacity:1}}}}" if share else ""


if __name__ == "__main__":
    sys.exit(main())
