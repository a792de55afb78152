"""Completion in a real bash, in a clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli import completion

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(os.name == "nt" or not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["comp"], {"compare", "completion"}),
        (["schedule", "re"], {"remove", "resume"}),
        (["submit", "--from"], {"--from"}),
    ],
)
def test_bash_completes_what_was_begun(words: list[str], offered: set[str]) -> None:
    """What a clone's script makes of Tab: the commands and options that begin so."""
    script = completion.script("bash", clone=True)
    typed = f"COMP_WORDS=(trainyard {' '.join(words)}); COMP_CWORD={len(words)}; _trainyard_completion trainyard"
    shown = f'{typed}; complete -p trainyard >&2; type trainyard >&2; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{shown}"], capture_output=True, text=True, timeout=60, cwd="/")
    assert set(done.stdout.split()) == offered, done.stderr
    assert "trainyard is a function" in done.stderr
    assert "-F _trainyard_completion trainyard" in done.stderr


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_asks_the_program_of_the_clone(shell: str) -> None:
    """Each shell's script calls this clone's Python, and defines the command; the installed one's calls the command."""
    script, installed = (completion.script(shell, clone=clone) for clone in (True, False))
    asks = [line for line in script.splitlines() if completion.VARIABLE in line]
    assert asks
    assert all(f"{sys.executable} -m cli" in line for line in asks)
    assert str(ROOT / "trainyard.py") in script.splitlines()[0]
    assert str(ROOT) not in installed
