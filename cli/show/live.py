"""The view of a run that is followed: a line with a running clock on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.spinner import Spinner

from ..api import phases
from ..api.api_outage import OutageMessages
from ..terminal_text import COLOUR, Console, Text
from .runs import nodes


class Lines:
    """Splits text in pieces into complete lines."""

    def __init__(self) -> None:
        self.rest = ""  # the beginning of an incomplete line

    def add(self, text: str) -> list[str]:
        """Add the next piece, and return the completed lines."""
        *lines, self.rest = (self.rest + text).split("\n")
        # A progress bar rewrites its line with carriage returns; only its last state counts.
        return [COLOUR.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in lines]


class Screen:
    """Prints each finished phase, the lines of the log, and below them a status line with a running clock."""

    def __init__(self, console: Console, usual: dict[str, str], clock: Callable[[], datetime] | None = None) -> None:
        self._console, self._usual = console, usual
        self._clock = clock or (lambda: datetime.now(UTC))
        self._run: dict[str, Any] = {}
        self._drop: dict[str, Any] = {}
        self._told: set[str] = set()
        self._lines = Lines()
        self._outage = OutageMessages(lambda words: self._print(Text(words, "yellow")))
        self._spinner = Spinner("dots", style="yellow")

    @contextmanager
    def shown(self) -> Iterator[Screen]:
        """Show the status line until the end of the block, on a terminal only. The output keeps only finished
        lines.
        """
        if not self._console.is_terminal:
            yield self
            return
        with Live(console=self._console, get_renderable=self._line, refresh_per_second=8, transient=True):
            yield self

    def drop(self, drop: dict[str, Any]) -> None:
        self._drop = drop

    def run(self, run: dict[str, Any]) -> None:
        self._run = run
        current, times = phases.phase(run), phases.spent(run, self._clock())
        for key in phases.PHASES:
            if key in times and key != current and key not in self._told:
                self._told.add(key)
                if key == phases.ARCHIVE:
                    self._flush()
                self._print(self._done(key, times[key]))

    def log(self, text: str) -> None:
        for line in self._lines.add(text):
            self._print(Text(line))

    @property
    def outage(self) -> OutageMessages:
        return self._outage

    def _flush(self) -> None:
        """Print the log's last line even without a newline."""
        if self._lines.rest:
            self.log("\n")

    def _done(self, key: str, seconds: float) -> Text:
        failed = self._run["state"] in ("failed", "canceled") and key == self._last_before_end()
        mark = ("✗ ", "red") if failed else ("✓ ", "green")
        return Text.assemble(mark, f"{key:18}", f"{phases.clock(seconds):>8}", ("  " + self._note(key), "dim"))

    def _last_before_end(self) -> str:
        """Return the phase in which the run ended."""
        states = [moment["state"] for moment in self._run.get("history") or []]
        return next((phases.PHASE_OF[s] for s in reversed(states) if s in phases.PHASE_OF), phases.SUBMIT)

    def _note(self, key: str) -> str:
        run = self._run
        words = {phases.ALLOCATE: f"{nodes(run)} of {run['cluster']}", phases.ARCHIVE: run.get("output") or ""}
        return words.get(key, "")

    def _line(self) -> RenderableType:
        if self._outage.why:
            return Text(
                "The API does not answer. Press Ctrl-C to stop waiting.", "yellow", no_wrap=True, overflow="ellipsis"
            )
        if not self._run and self._drop:
            self._spinner.update(text=Text(f"waiting for the drop to close: {self._drop.get('why', '')}"))
            return self._spinner
        current = phases.phase(self._run) if self._run else phases.SUBMIT
        if current is None:
            return Text()
        seconds = phases.spent(self._run, self._clock()).get(current, 0.0) if self._run else 0.0
        words = ", ".join(filter(None, [f"{current}, {phases.clock(seconds)}", self._usual.get(current, "")]))
        again = f"  (attempt {self._run['attempts']})" if self._run.get("attempts", 0) > 1 else ""
        self._spinner.update(text=Text.assemble((words, "bold"), (f"{again}  Ctrl-C: detach or cancel", "dim")))
        return self._spinner

    def _print(self, line: Text) -> None:
        # A terminal would break long lines within words; a file or a pipe gets each line whole.
        self._console.print(line, soft_wrap=not self._console.is_terminal, highlight=False)
