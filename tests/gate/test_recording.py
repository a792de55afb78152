"""The animated picture of the README."""

from __future__ import annotations

import re

from tests.gate.scripts import load

recording = load("recording")


def test_each_line_appears_when_it_was_printed_and_long_pauses_are_short() -> None:
    """The picture has all lines in order, and no pause between lines is longer than two seconds."""
    lines = [(0.5, "Trainyard: <drops>"), (60.0, "training 1 s"), (60.0, "| log"), (61.0, "✓ done")]
    picture = recording.drawn(lines)
    assert recording.printed_in(picture) == [line for _, line in lines]
    whole = 0.5 + recording.LONGEST_PAUSE + 1.0 + recording.LAST_PAUSE
    shares = [float(share) for share in re.findall(r"@keyframes l\d+\{0%\{opacity:0\}([\d.]+)%", picture)]
    assert shares == [round(at / whole * 100, 2) for at in (0.5, 2.5, 2.5, 3.5)]
    assert "<script" not in picture


def test_the_log_is_shortened() -> None:
    """The first and the last epoch stay, `...` replaces those between, and folders of this machine are removed."""
    log = [f"{recording.LOG}epoch {number}/3 test  Loss 1" for number in (1, 2, 3)]
    printed = [(0.0, line) for line in (*log, f"curves {recording.ROOT}/.trainyard/a.png")]
    kept = [line for _, line in recording.shortened(printed)]
    assert kept == [log[0], f"{recording.LOG}...", log[2], "curves .trainyard/a.png"]
