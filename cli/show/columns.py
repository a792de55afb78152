"""Tables of records within the terminal's width. Columns without room are shown below their record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich import console
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table

from ..terminal_text import Text

SENTENCES = ("why", "decision", "error")  # below the table, each of these has a separate line
LONG = (*SENTENCES, "data", "drop", "parameters", "notice")  # these may wrap; the others are for copying
MOST = 60  # characters of a wrapping cell without sentences: a long name leaves room for other columns
GAP = 2  # characters between columns
INDENT = 4  # characters, for the lines below the table
LEAST = 32  # characters: a narrower column shows one word of a sentence per line
KEPT = 2  # columns that always stay: the record's name and its state


@dataclass(frozen=True)
class Columns:
    """A table of records whose cells are texts. The layout is chosen once the width of the terminal is known."""

    names: list[str]
    rows: list[list[Text]]

    def __rich_console__(self, _: console.Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths()
        beside = _fitting(self.names, widths, options.max_width)
        if len(beside) == len(self.names):
            yield self._table(beside, self.rows, {}, header=True)
            return
        fixed = self._fixed(beside, widths, options.max_width)
        yield self._table(beside, [], fixed, header=True)
        for row in self.rows:
            yield self._table(beside, [row], fixed, header=False)
            for line in self._below(row, beside, options.max_width - INDENT):
                yield Padding(line, (0, 0, 0, INDENT))

    def _widths(self) -> list[int]:
        """Return the width of each column without wrapping, in characters."""
        return [
            max(len(name), *(cell.cell_len for cell in cells))
            for name, cells in zip(self.names, zip(*self.rows, strict=True), strict=True)
        ]

    def _fixed(self, beside: list[int], widths: list[int], room: int) -> dict[int, int]:
        """Return the width of each of these columns, equal for every record. Wrapping columns share the remaining
        width.
        """
        fixed = {place: _least(self.names[place], widths[place]) for place in beside}
        spare = max(0, room - sum(width + GAP for width in fixed.values()))
        for place in beside:
            more = min(spare, widths[place] - fixed[place])
            fixed[place], spare = fixed[place] + more, spare - more
        return fixed

    def _table(self, beside: list[int], rows: list[list[Text]], fixed: dict[int, int], header: bool) -> RenderableType:
        table = Table(box=None, pad_edge=True, header_style="dim", padding=(0, GAP, 0, 0), show_header=header)
        for place in beside:
            name = self.names[place]
            most = MOST if name in LONG and name not in SENTENCES else None
            table.add_column(name, no_wrap=name not in LONG, overflow="fold", width=fixed.get(place), max_width=most)
        for row in rows:
            table.add_row(*(row[place] for place in beside))
        return table

    def _below(self, row: list[Text], beside: list[int], room: int) -> Iterator[Text]:
        """Yield the record's cells outside of the table: short values side by side, each sentence on a separate
        line.
        """
        cells = [(name, row[place]) for place, name in enumerate(self.names) if place not in beside and row[place]]
        line = Text()
        for name, cell in cells:
            if name not in SENTENCES:
                value = Text.assemble((f"{name} ", "dim"), cell)
                if line and line.cell_len + GAP + value.cell_len > room:
                    yield line
                    line = Text()
                line = Text.assemble(line, " " * GAP, value) if line else value
        yield from [line] if line else []
        yield from (cell for name, cell in cells if name in SENTENCES)


def _least(name: str, width: int) -> int:
    return min(width, LEAST) if name in LONG else width


def _fitting(names: list[str], widths: list[int], room: int) -> list[int]:
    """Return the columns with room beside one another. Wrapping columns are moved below first, starting with the last,
    then the widest of the others.
    """
    least = [_least(name, width) for name, width in zip(names, widths, strict=True)]
    beside = list(range(len(names)))
    while sum(least[place] + GAP for place in beside) > room and len(beside) > KEPT:
        movable = beside[KEPT:]
        wrapping = [place for place in movable if names[place] in LONG]
        beside.remove(wrapping[-1] if wrapping else max(movable, key=lambda place: widths[place]))
    return beside
