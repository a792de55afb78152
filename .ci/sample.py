"""Run the demo, and put what it printed into README.md, with most of the training log left out.

    .trainyard/venv/bin/python .ci/sample.py

tests/e2e/test_demo.py compares the sample with what the demo prints now, and says to run this where they differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=```text\n)Trainyard: drops/.*?(?=```)", re.DOTALL)
LOG = "  | "
KEPT = re.compile(r"processes \d|epoch (1|(\d+))/(?(2)\2|\d+) test|rank 0: done")  # first, last and in between nothing
MASKS = (
    (r"mnist-[0-9a-f]{16}", "RUN"),
    (r"received( > \w+)* > completed", "STATES"),  # an event that came late leaves one out
    (r"\d[\d.,:]*", "N"),
    (r" +", " "),
)


def main() -> int:
    env = {"EMULATORS_NODE_HOME": str(ROOT / ".trainyard" / "node"), **os.environ}  # as trainyard.py sets it
    done = subprocess.run([sys.executable, "-m", "local.demo"], cwd=ROOT, capture_output=True, text=True, env=env)
    if done.returncode:
        sys.stderr.write(f"The demo failed with exit status {done.returncode}.\n{done.stdout}{done.stderr}")
        return 1
    README.write_text(BLOCK.sub(lambda _: shorten(done.stdout), README.read_text("utf-8")), "utf-8")
    return 0


def block(readme: str) -> str:
    """The sample in the README. Raises ValueError if there is none."""
    if not (found := BLOCK.search(readme)):
        raise ValueError("README.md has no block that begins with `Trainyard: drops/`.")
    return found[0]


def shorten(printed: str) -> str:
    """What the demo printed, without most of the training log and without this machine's folders."""
    return "\n".join(_shortened(printed.replace(f"{ROOT}/", "").splitlines())) + "\n"


def _shortened(lines: list[str]) -> Iterator[str]:
    """`...` stands for all lines of the log that were left out."""
    left_out = False
    for line in map(str.rstrip, lines):
        if not line.startswith(LOG) or KEPT.search(line):
            yield line
        elif not left_out and "epoch 2/" in line:
            left_out = True
            yield f"{LOG}..."


def shape(text: str) -> list[str]:
    """The lines without what differs from run to run: names, numbers, and which states the history has."""
    lines = [line for line in text.splitlines() if not re.match(r"\d\d:\d\d:\d\d", line)]
    for pattern, word in MASKS:
        lines = [re.sub(pattern, word, line).rstrip() for line in lines]
    return lines


if __name__ == "__main__":
    sys.exit(main())
