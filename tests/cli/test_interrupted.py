"""Ctrl-C while a program is still importing what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import builtins, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background processes ignore
real = builtins.__import__
def importing(name, *rest, **more):
    if name.startswith(("typer", "azure", "cli.setup", "difflib")):
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest, **more)
builtins.__import__ = importing
sys.argv = ["program", *{words!r}]
runpy.run_module({module!r}, run_name="__main__")
"""
PROGRAMS = [
    ("cli", ["runs"]),
    ("trainyard", ["--help"]),
    *(("local", [name]) for name in ("demo", "tour", "up", "down")),
]


@pytest.mark.parametrize(("module", "words"), PROGRAMS)
def test_ctrl_c_during_an_import_is_no_traceback(module: str, words: list[str]) -> None:
    """The program ends with 130 and prints nothing."""
    argv = [sys.executable, "-c", PROGRAM.format(module=module, words=[*words, "--help"])]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


UPLOAD = """
import os, signal, sys, threading
from cli import __main__, commands
from cli.parallel import in_parallel
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background processes ignore
started = threading.Barrier(3, action=lambda: os.kill(os.getpid(), signal.SIGINT))
def block(_):
    started.wait()
    threading.Event().wait()
def upload(_):
    in_parallel(block, range(40), 3)
commands.load = lambda argv: lambda **_: in_parallel(upload, range(2), 1)
sys.exit(__main__.main())
"""


def test_ctrl_c_during_an_upload_does_not_wait_for_it() -> None:
    """The upload's threads, which never finish in this test, end with the program."""
    done = subprocess.run([sys.executable, "-c", UPLOAD], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (130, "")


IN_C = """
import builtins, os, runpy, signal, sys
real = builtins.__import__
def importing(name, *rest, **more):
    if name.partition(".")[0] == "sklearn":
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed")
    return real(name, *rest, **more)
builtins.__import__ = importing
sys.argv = ["program", "demo", "--home", {home!r}]
runpy.run_module("local", run_name="__main__")
"""


def test_ctrl_c_during_an_import_in_c_ends_the_demo_in_order(tmp_path: Path) -> None:
    """An interrupted import in C raises ImportError; the demo prints its usual message for Ctrl-C."""
    argv = [sys.executable, "-c", IN_C.format(home=str(tmp_path / "cloud"))]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "what the demo started is gone" in done.stdout) == (130, True), done.stderr
    assert "Traceback" not in done.stderr
