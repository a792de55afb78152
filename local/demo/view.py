"""The demo's output: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from cli.show.runs import node_words
from cli.terminal_text import Text
from local.demo.phases import ALLOCATE, ARCHIVE, SEAL, SUBMIT, TRAIN, ZERO, Phase, Seen, phases
from local.demo.progress import Log

LOG_LINES = 8
BAR_WIDTH = 30


@dataclass
class Screen:
    """The content of the screen. The demo changes the content; a view draws it."""

    title: str
    seen: Seen
    log: Log = field(default_factory=Log)
    notes: dict[str, str] = field(default_factory=dict)

    def note(self, key: str) -> str:
        """Return the words beside a phase, in one line."""
        run, drop, cluster = self.seen.run, self.seen.drop, self.seen.cluster
        told = {
            SEAL: drop.get("why") or "",
            SUBMIT: run.get("run") or "",
            ALLOCATE: f"{node_words(run)} of {run['cluster']}" if run else "",
            TRAIN: (run.get("reason") or "").partition("\n")[0],
            ARCHIVE: run.get("output") or "" if run.get("archived_at") else "",
            ZERO: f"{cluster['nodes']} of {cluster['max_nodes']} nodes" if cluster else "",
        }
        return self.notes.get(key) or told.get(key, "")


class View(Protocol):
    """Draws a screen until the end of the block. `update` signals a change."""

    def __enter__(self) -> View: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def update(self) -> None: ...


def open_view(console: Console, screen: Screen) -> View:
    return LiveView(console, screen) if console.is_terminal else PlainView(screen, _plain)


class LiveView:
    """Redraws the whole picture several times a second, to count the seconds up."""

    def __init__(self, console: Console, screen: Screen) -> None:
        draw = lambda: picture(screen, datetime.now(UTC))  # noqa: E731  # Live wants a function without arguments
        self._live = Live(console=console, get_renderable=draw, refresh_per_second=8, redirect_stdout=False)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self) -> None:
        """Do nothing, because this view redraws by itself."""


class PlainView:
    """Prints each phase once, when it is over, and each line of the log."""

    def __init__(self, screen: Screen, write: Callable[[str], None]) -> None:
        self._screen, self._write = screen, write
        self._told: set[str] = set()
        self._lines = 0

    def __enter__(self) -> PlainView:
        self._write(self._screen.title)
        return self

    def __exit__(self, *_: object) -> None:
        self.update()

    def update(self) -> None:
        log = self._screen.log
        new = log.total - self._lines
        for line in list(log.lines)[-new:] if new else []:
            self._write(f"  | {line}")
        self._lines = log.total
        for phase in phases(self._screen.seen, datetime.now(UTC)):
            if phase.seconds is not None and not phase.active and phase.key not in self._told:
                self._told.add(phase.key)
                self._write(f"{phase.label:18} {phase.seconds:6.1f} s  {self._screen.note(phase.key)}".rstrip())


def picture(screen: Screen, now: datetime) -> RenderableType:
    rows = phases(screen.seen, now)
    table = Table.grid(padding=(0, 2))
    table.add_column(width=1)
    table.add_column(min_width=18)
    table.add_column(justify="right", min_width=7)
    table.add_column(overflow="ellipsis", no_wrap=True)
    for phase in rows:
        table.add_row(*_phase_row(phase, screen))
    parts: list[RenderableType] = [Text(screen.title, "bold"), Text(), table, Text(), _nodes(screen.seen)]
    if screen.log.lines:
        shown = Text("\n".join(list(screen.log.lines)[-LOG_LINES:]), overflow="ellipsis", no_wrap=True)
        parts.append(Panel(shown, title="training log, rank 0", title_align="left", border_style="dim"))
    return Group(*parts)


def _phase_row(phase: Phase, screen: Screen) -> tuple[RenderableType, ...]:
    if phase.seconds is None:
        return Text("·", "dim"), Text(phase.label, "dim"), Text(), Text()
    note: RenderableType = Text(screen.note(phase.key), "dim")
    if phase.key == TRAIN and phase.active:
        note = _bar(screen.log.share)
    return (
        _mark(phase, screen.seen),
        Text(phase.label, "bold" if phase.active else ""),
        Text(f"{phase.seconds:.1f} s"),
        note,
    )


def _mark(phase: Phase, seen: Seen) -> Text:
    if phase.active:
        return Text("●", "yellow")
    failed = phase.key == TRAIN and seen.run.get("state") in ("failed", "canceled")
    return Text("✗", "bold red") if failed else Text("✓", "green")


def _bar(share: float) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(1.0, share, width=BAR_WIDTH), Text(f"{share:4.0%}", "cyan"))
    return grid


def _nodes(seen: Seen) -> RenderableType:
    cluster = seen.cluster
    if not cluster:
        return Text("  cluster  not asked yet", "dim")
    busy, nodes = cluster["busy_nodes"], cluster["nodes"]
    idle = max(0, nodes - busy)
    free = max(0, cluster["max_nodes"] - busy - idle)
    return Text.assemble(
        f"  {cluster['name']}  ",
        ("■" * busy, "green"),
        ("■" * idle, "yellow"),
        ("□" * free, "dim"),
        (f"  {nodes} of {cluster['max_nodes']} nodes, {busy} busy", "dim"),
    )


def _plain(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
