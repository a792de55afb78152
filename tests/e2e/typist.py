"""Types commands one after the other in one process, which saves a second for each: a program, fed by `type_all`.

A made-up name in a command is replaced by that of something that is there.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from tests.e2e.desk import ROOT, Desk

Words = Sequence[str]
NAMED = {  # a made-up name: the command that lists such things, and the field with the name
    "20260131T080000-0123abcd": (("leases",), "lease"),
    "s-0123456789abcdef": (("schedule", "list"), "id"),
    "n-0123456789abcdef": (("notify", "list"), "id"),
}


def type_all(desk: Desk, commands: Sequence[Words], seconds: float) -> list[tuple[str, str]]:
    """What each command prints, on standard output and error. Fails with the words of the first that does."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.typist"],
        input=json.dumps(commands),
        cwd=ROOT,
        env={**desk.env, "BROWSER": "true"},  # a browser that shows nothing
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed: list[tuple[str, str]] = []
    for words, status, out, err in json.loads(done.stdout):
        assert status == 0, f"{' '.join(words)}\n{out}{err}"
        printed.append((out, err))
    assert len(printed) == len(commands)
    return printed


def typed(words: Words) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    from cli.__main__ import main

    out, err = io.StringIO(), io.StringIO()
    with (
        patch("sys.argv", ["trainyard", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status = main()
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()


def known(word: str) -> str:
    """The name of a run or lease that is there, in place of a made-up one."""
    if word == "mnist-0123456789abcdef":
        return str(_ask("show", "mnist/first")["run"])
    for made_up, (words, field) in NAMED.items():
        if word == made_up:
            return str(_ask(*words)[0][field])
    return word


def _ask(*words: str) -> Any:
    return json.loads(typed([*words, "--json"])[1])


def _main() -> None:
    told = []
    for words in json.load(sys.stdin):
        said = [known(word) for word in words]
        told.append((said, *typed(said)))
        if told[-1][1]:
            break
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
