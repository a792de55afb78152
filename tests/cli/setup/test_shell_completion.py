"""Completion in real shells, in a clone: the tests press Tab at a terminal, and ask fish for its candidates."""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.setup import shell_completion

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
RUN = "mnist-0123456789abcdef"
EVIL = "mnist-$(touch evil)"
COLON = "hello:first-1"
LONG = {"run": "bert-0123456789abcdef", "drop": "", "experiment": "words of its own " * 9}
STARTS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x07\r]")


def needed(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(
            f"COMPLETION IN {shell.upper()} IS NOT TESTED: there is no {shell} here. Debian: apt-get install {shell}"
        )


class Terminal:
    """A shell on its own terminal."""

    def __init__(self, fd: int) -> None:
        self.fd, self.seen = fd, ""

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.fd, text.encode())

    def shows(self, *wanted: str) -> None:
        """Wait until all these texts have appeared since the last input."""
        deadline = time.monotonic() + PATIENCE
        while not all(each in self.seen for each in wanted):
            assert time.monotonic() < deadline, self.seen
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += ESCAPES.sub("", os.read(self.fd, 65536).decode(errors="replace"))


@contextmanager
def terminal(shell: str, folder: Path, env: dict[str, str]) -> Iterator[Terminal]:
    import pty  # not on Windows

    main, other = pty.openpty()
    program = subprocess.Popen(
        STARTS[shell], stdin=other, stdout=other, stderr=other, cwd=folder, env=env, start_new_session=True
    )
    os.close(other)
    try:
        yield Terminal(main)
    finally:
        program.kill()
        program.wait()
        os.close(main)


@pytest.fixture
def world(server: Any, tmp_path: Path) -> dict[str, str]:
    """A Trainyard with a run, one of whose names a shell could take for a command."""
    row = {"run": RUN, "state": "completed", "drop": "mnist/d1", "experiment": "mnist"}
    others = [{"run": EVIL, "drop": "x/`touch evil`"}, LONG, {"run": COLON}]
    server.says("/api/rows?limit=200", {"rows": [row, *(row | other for other in others)]})
    (tmp_path / "home").mkdir()
    known = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    return known | {"TRAINYARD_URL": server.url, "TRAINYARD_CONFIG": str(tmp_path / "config"), "COLUMNS": "200"}


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes_what_was_begun(shell: str, world: dict[str, str], tmp_path: Path) -> None:
    """In a shell without start files, Tab lists commands, and completes an option and the name of a run."""
    needed(shell)
    (tmp_path / "script").write_text(shell_completion.script(shell, clone=True), "utf-8")
    with terminal(shell, tmp_path, world) as keys:
        keys.type(f"PS1='ready> '; . {shlex.quote(str(tmp_path / 'script'))}; echo so''urced\n")
        keys.shows("sourced\n", "ready> ")
        keys.type("trainyard comp\t\t")
        keys.shows("compare", "completion")
        keys.type("\x15trainyard submit --dry\t")
        keys.shows("--dry-run")
        keys.type("\x15trainyard logs mnist-\t")
        keys.shows(RUN)
        for begun, whole in (("mnist@la", "mnist@latest"), ("@la", "@latest"), ("hello:fi", COLON)):
            keys.type(f"\x15: trainyard; trainyard logs {begun}\t")
            keys.shows(f"logs {whole} ")
        keys.type("\x15trainyard logs mnist@latest --ran\t")
        keys.shows("--rank ")
    assert not (tmp_path / "evil").exists()


def test_fish_completes_what_was_begun(world: dict[str, str], tmp_path: Path) -> None:
    """fish's candidates include commands, options and the names of runs, each with its description."""
    needed("fish")
    (tmp_path / "script").write_text(shell_completion.script("fish", clone=True), "utf-8")
    asked = ["trainyard comp", "trainyard submit --dry", "trainyard logs "]
    said = "; ".join(f"complete -C {shlex.quote(line)}" for line in asked)
    line = f"source {shlex.quote(str(tmp_path / 'script'))}; {said}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", line], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, env=world
    )
    offered = dict(each.partition("\t")[::2] for each in done.stdout.splitlines())
    assert set(offered) == {
        "compare",
        "completion",
        "--dry-run",
        RUN,
        LONG["run"],
        COLON,
        "@latest",
        "mnist@latest",
        "x@latest",
    }, done.stderr
    assert offered[RUN] == "completed mnist/d1"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("shell", shell_completion.SHELLS)
def test_a_script_asks_the_program_of_the_clone(shell: str) -> None:
    """In a clone, each shell's script calls the clone's Python and defines the command; the installed script calls
    the command."""
    script, installed = (shell_completion.script(shell, clone=clone) for clone in (True, False))
    asks = [line for line in script.splitlines() if shell_completion.VARIABLE in line]
    assert asks
    assert all(f"{sys.executable} -m cli" in line for line in asks)
    assert str(ROOT / "trainyard.py") in script.splitlines()[0]
    assert str(ROOT) not in installed
