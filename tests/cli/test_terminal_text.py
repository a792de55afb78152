"""Text from outside can't control the terminal: names, reasons, logs and errors, in every command."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli.show import runs as runs_shown
from cli.show.notices import deliveries
from cli.terminal_text import UNSAFE, Console, LogText, Text, one_line, visible
from tests.cli.show.test_status import STATUS

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

CLIPBOARD, TITLE, CLEAR = "\x1b]52;c;ZXZpbA==\x07", "\x1b]0;evil\x07", "\x1b[2J\x1b[H"
ATTACKS = {
    "clipboard": (CLIPBOARD, "␛]52;c;ZXZpbA==␇"),
    "title": (TITLE, "␛]0;evil␇"),
    "clear": (CLEAR, "␛[2J␛[H"),
    "8-bit CSI": ("\x9b2J", "\\x9b2J"),
    "8-bit OSC": ("\x9d0;evil\x9c", "\\x9d0;evil\\x9c"),
    "backspace": ("no\b\byes", "no␈␈yes"),
    "bidi": ("\u202egpj.exe\u2066", "\\u202egpj.exe\\u2066"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "tags": ("\U000e0041", "\\U000e0041"),
    "half a pair": ("\ud800", "\\ud800"),
    "delete": ("\x7f", "␡"),
    "markup": ("[red]evil[/red] :smile: [link=http://x]y[/link]", "[red]evil[/red] :smile: [link=http://x]y[/link]"),
}
EVERYTHING = "".join(attack for attack, _ in ATTACKS.values())


def is_clean(said: str) -> bool:
    return not UNSAFE.search(said)


@pytest.mark.parametrize(("attack", "shown"), ATTACKS.values(), ids=ATTACKS)
def test_each_attack_is_shown_as_text(attack: str, shown: str) -> None:
    """No character is dropped and none takes effect: each dangerous character is shown as a visible sign."""
    assert visible(attack) == shown
    console = Console(width=200)
    with console.capture() as said:
        console.print(attack)
        console.print(Text(attack))
        console.print(Text.assemble(attack, (attack, "bold")))
    assert said.get() == f"{shown}\n{shown}\n{shown}{shown}\n"


def test_a_name_stays_on_its_line() -> None:
    """A newline in a drop's name can't start a line that looks like the program's own."""
    assert one_line("mnist/a\nAll is well.\r") == "mnist/a␊All is well.␍"


@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_whatever_is_shown_is_harmless(text: str) -> None:
    """Any text becomes a text without unsafe characters; harmless text is unchanged, and twice is the same as once."""
    shown = visible(text)
    assert is_clean(shown)
    assert visible(shown) == shown
    assert UNSAFE.search(text) or shown == text


@example(["\r", "\x1b[0m", "\n"])
@given(st.lists(st.sampled_from(["a", "\r", "\n", "\x1b", "\x1b[", "[31m", "31", "m", "\x1b[0m", "ü"]), max_size=12))
def test_a_log_is_the_same_in_whatever_pieces_it_comes(pieces: list[str]) -> None:
    """Colours and line ends that are split between pieces are handled as if whole."""
    shown, whole = LogText(), "".join(pieces)
    said = "".join(shown.feed(piece) for piece in pieces) + shown.feed("", final=True)
    assert said == LogText().feed(whole, final=True)
    assert is_clean(said)


def test_a_log_keeps_what_was_overwritten() -> None:
    """A carriage return can't hide the text before it; colours are removed, everything else stays visible."""
    log = "step 1\rstep 2\r\n\x1b[31mred\x1b[0m \x1b[2Kgone\n"
    assert LogText().feed(log, final=True) == "step 1\nstep 2\nred ␛[2Kgone\n"


def evil(value: Any) -> Any:
    """The same answer with every text that a stranger could have chosen replaced by all attacks at once."""
    if isinstance(value, dict):
        kept = ("state", "at", "archived_at", "action")
        return {key: item if key in kept else evil(item) for key, item in value.items()}
    if isinstance(value, list):
        return [evil(item) for item in value]
    return value + EVERYTHING if isinstance(value, str) else value


def test_status_runs_and_clusters_show_signs(server: Any, run: Run, capsys: Capture) -> None:
    """Every text of an answer may be an attack, and the screen shows it harmlessly."""
    answer = evil(STATUS)
    server.says("/api/status", answer)
    server.says("/api/clusters", answer["clusters"])
    for command in ("status", "clusters"):
        assert run(command, "--url", server.url) == 0
        said = capsys.readouterr().out
        assert is_clean(said)
        assert "␛]52;c;" in re.sub(r"\s", "", said)


def test_a_drop_with_an_evil_name_shows_signs(server: Any, run: Run, capsys: Capture) -> None:
    """`show` of a drop with escapes in name and reason prints signs, and only its own lines."""
    drop = {"drop": f"mnist/{EVERYTHING}\nAll is well.", "state": "rejected", "why": EVERYTHING, "generation": 1}
    server.says("/api/drops/mnist/x", {**drop, "blobs": 1, "bytes": 1, "opened_at": None, "sealed_at": None})
    assert run("show", "mnist/x", "--url", server.url) == 0
    said = capsys.readouterr().out
    assert is_clean(said)
    assert "\nAll is well." not in said


def test_an_error_of_the_api_shows_signs(server: Any, run: Run, capsys: Capture) -> None:
    """An error's text comes from outside too, as JSON or as a page of a proxy."""
    server.says("/api/status", {"detail": EVERYTHING}, status=409)
    assert run("status", "--url", server.url) == 1
    server.says("/api/clusters", CLIPBOARD.encode(), status=500)
    assert run("clusters", "--url", server.url) == 1
    said = capsys.readouterr().err
    assert is_clean(said)
    assert said.count("␛]52;c;ZXZpbA==␇") == 2


def test_logs_show_signs_unless_raw(server: Any, run: Run, capsys: Capture) -> None:
    """`logs` shows a log's escapes as signs; --raw prints the log unchanged, and --json escapes it."""
    log = f"\x1b[32mgreen\x1b[0m {CLIPBOARD}\u202e\n"
    server.says("/api/runs/mnist-1", {"run": "mnist-1", "state": "completed"})
    server.says("/api/runs/mnist-1/logs?rank=0&offset=0", log.encode(), x_log_complete="true")
    assert run("logs", "mnist-1", "--url", server.url) == 0
    assert capsys.readouterr().out == "green ␛]52;c;ZXZpbA==␇\\u202e\n"
    assert run("logs", "mnist-1", "--raw", "--url", server.url) == 0
    assert capsys.readouterr().out == log
    assert run("logs", "mnist-1", "--json", "--url", server.url) == 0
    assert is_clean(capsys.readouterr().out)


def test_only_one_module_takes_richs_own() -> None:
    """No other module of the package makes rich's Text or Console, which would let escape sequences through."""
    for file in (Path(__file__).resolve().parents[2] / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich"):
                names = {alias.name for alias in node.names} & {"Text", "Console", "print"}
                assert not names or file.name == "visible.py", f"{file}: {names}"


def test_a_list_of_runs_stays_short(capsys: pytest.CaptureFixture[str]) -> None:
    """A cause is shortened to one line, without a node's folders; parameters are compared within one kind."""
    rows = [
        {"run": name, "state": "failed", "experiment": kind, "parameters": parameters, "cause": cause}
        for name, kind, parameters, cause in (
            ("a-1", "a", {"lr": 1, "epochs": 2}, f"/node/work/{'x' * 30}/inputs/data: no {'files ' * 40}"),
            ("a-2", "a", {"lr": 2, "epochs": 2}, ""),
            ("b-1", "b", {"lr": 9, "width": 7}, ""),
        )
    ]
    Console(width=220).print(runs_shown.many(rows))
    said = capsys.readouterr().out
    assert "/.../data: no files" in said
    assert len(said.splitlines()) == 6
    assert "lr=1" in said
    assert "lr=9" not in said
    assert "epochs" not in said


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_shows_what_does_not_fit_below_its_run(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any width, names and states stay whole, and a cause wraps at words below its run."""
    cause = "Its data holds no images: expected train-images-idx3-ubyte.gz or a folder of pictures."
    row = {
        "run": "mnist-0123456789abcdef",
        "state": "failed",
        "experiment": "mnist",
        "drop": "mnist/monday-upload",
        "duration_seconds": 63.0,
        "cost": {"training": 0.5, "allocation": 0.0, "idle": 0.0},
        "best": {"metric": "test_accuracy", "value": 0.97},
        "created_at": "2026-01-31T10:11:12+00:00",
        "cause": cause,
    }
    rows = [row | {"parameters": {"lr": 0.5, "batch_size": 64}}, row | {"parameters": {"lr": 1.5, "batch_size": 128}}]
    Console(width=width).print(runs_shown.many(rows))
    said = capsys.readouterr().out
    assert said.count("mnist-0123456789abcdef") == said.count(" failed ") == 2
    assert " ".join(said.split()).count(cause) == 2
    assert "parameters lr=0.5 batch_size=64" in said
    assert max(map(len, said.splitlines())) <= width
    assert len(said.splitlines()) <= 3 + 2 * 5


def test_a_table_cuts_nothing_that_is_to_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    """On a narrow line, sentences wrap; times, states and numbers stay whole."""
    row = {
        "at": "2026-01-31T10:11:12+00:00",
        "kind": "completed",
        "state": "pending",
        "tries": 12,
        "title": "Run " * 20,
    }
    Console(width=80).print(deliveries([row | {"error": "its host has no address " * 8}]))
    said = capsys.readouterr().out
    assert all(word in said for word in ("completed", "pending", "12", "tries"))
    assert said.count("Run") == 20


def test_a_line_in_a_pipe_is_there_at_once() -> None:
    """Output to a pipe is flushed with each call, without trailing blanks."""
    passed_on: list[str] = []

    class Pipe(io.StringIO):
        def flush(self) -> None:
            passed_on.append(self.getvalue())

    Console(file=Pipe(), trims=True, width=80).print(Text("training \u2800 "))
    assert passed_on[-1] == "training\n"
