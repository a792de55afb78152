"""The summary of the demo: claims, times and addresses, as text or as one JSON object."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from cli.api.phases import TRAIN, spent
from cli.terminal_text import Text
from local.demo.claims import MANIFEST, Archive, Claim
from local.demo.phases import Phase, Seen, phases


def as_json(seen: Seen, archive: Archive, plot: Path | None) -> dict[str, Any]:
    return {
        "run": seen.run["run"],
        "state": seen.run["state"],
        "nodes": seen.run["nodes"],
        "world_size": archive.last("world_size"),
        "test_accuracy": archive.last("test_accuracy"),
        "phases": {phase.key: round(phase.seconds or 0, 3) for phase in _done(seen)},
        "output": archive.names(),
        "plot": str(plot) if plot else None,
        "cluster": {"name": seen.cluster.get("name"), "nodes": seen.cluster.get("nodes")},
    }


def in_a_line(run: dict[str, Any], archive: Archive) -> str:
    """Return accuracy, processes, epochs and seconds of training, as far as they are known."""
    accuracy, epochs, size = (archive.last(key) for key in ("test_accuracy", "epoch", "world_size"))
    seconds = spent(run, datetime.now(UTC)).get(TRAIN)
    facts = [
        f"{accuracy:.2%} test accuracy" if accuracy is not None else "",
        f"{size} processes" if size else "",
        f"{epochs} epochs" if epochs else "",
        f"{seconds:.1f} s of training" if seconds else "",
    ]
    return "   ·   ".join(filter(None, facts))


def as_table(seen: Seen, archive: Archive, claims: list[Claim], plot: Path | None) -> RenderableType:
    return Group(_claims(claims), Text(), _facts(seen, archive, plot), Text(), _history(seen.run))


def _claims(claims: list[Claim]) -> RenderableType:
    """Return one line for each holding claim, and the full finding for each failed claim."""
    lines: list[RenderableType] = []
    for claim in claims:
        if claim.holds:
            text = Text.assemble(
                ("✓ ", "green"), claim.text, (f"  {claim.found}", "dim"), no_wrap=True, overflow="ellipsis"
            )
        else:
            text = Text.assemble(("✗ ", "bold red"), (claim.text, "bold"))
        lines.append(text)
        lines += [] if claim.holds else [Padding(Text(claim.found, "red"), (0, 0, 0, 4))]
    return Group(*lines)


def _facts(seen: Seen, archive: Archive, plot: Path | None) -> RenderableType:
    models = [name for name in archive.names() if name.startswith(f"{archive.folder}/models/")]
    accuracy = archive.last("test_accuracy")
    rows = {
        "test accuracy": Text(f"{accuracy:.2%}" if accuracy is not None else "unknown", "bold green"),
        "model": Text("\n".join(f"output/{name}" for name in models) or "none"),
        "manifest": Text(f"output/{archive.folder}/{MANIFEST}" if archive.manifest else "none"),
        "curves": Text(str(plot) if plot else "none", overflow="fold"),
        "phases": _times(seen),
    }
    table = Table.grid(padding=(0, 2))
    for name, value in rows.items():
        table.add_row(Text(name, "dim"), value)
    return table


def _times(seen: Seen) -> RenderableType:
    done = _done(seen)
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for phase in done:
        table.add_row(phase.label, f"{phase.seconds:.1f} s")
    table.add_row(Text("all", "bold"), Text(f"{sum(phase.seconds or 0 for phase in done):.1f} s", "bold"))
    return table


def _history(run: dict[str, Any]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for moment in run["history"]:
        at = datetime.fromisoformat(moment["at"]).astimezone()
        why = Text((moment.get("why") or "").partition("\n")[0], "dim", no_wrap=True, overflow="ellipsis")
        table.add_row(Text(f"{at:%H:%M:%S.%f}"[:-3], "dim"), Text(moment["state"]), why)
    return Group(Text(f"history of {run['run']}, from Table Storage", "bold"), table)


def _done(seen: Seen) -> list[Phase]:
    return [phase for phase in phases(seen, datetime.now(UTC)) if phase.seconds is not None and not phase.active]
