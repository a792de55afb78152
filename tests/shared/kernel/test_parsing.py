from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TWO_THREADS = """
import threading
from dataclasses import dataclass, field
from shared.kernel.parsing import convert, decode

inside, asked, about = threading.Event(), threading.Event(), threading.Event()

def slow():
    inside.set()
    asked.wait(30)
    return int

@dataclass
class Inner:
    number: "slow()" = 0

@dataclass
class Outer:
    inner: Inner = field(default_factory=Inner)
    text: str = ""

first = threading.Thread(target=convert, args=({}, Outer))
first.start()
inside.wait()
second = threading.Thread(target=lambda: (about.set(), print(READ)))
second.start()
about.wait()
second.join(0.5)  # unguarded, it ends the process meanwhile
asked.set()
first.join()
second.join()
"""


def test_two_threads_convert_to_one_class_for_the_first_time() -> None:
    """The second waits until msgspec knows the whole class; unguarded, the process ends with a segmentation fault."""
    for read in ("convert({'text': 'a'}, Outer)", 'decode(\'{"text": "a"}\', Outer)'):
        program = TWO_THREADS.replace("READ", read)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False
        )
        assert (done.returncode, done.stdout) == (0, "Outer(inner=Inner(number=0), text='a')\n"), done.stderr
