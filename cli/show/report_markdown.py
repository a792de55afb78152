"""A run as a comment in Markdown: its metrics beside those of a champion, cost, diagnosis, and a picture. Pure.

Names, metrics and lines of a log come from the run's code. They appear in code spans and fenced blocks, where no text
can become a link, a picture, HTML, or a mention of a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..terminal_text import one_line
from .costs import dollars

Json = dict[str, Any]
MARK = "<!-- trainyard report -->"  # a workflow finds its comment by this mark
MOST_METRICS, MOST_LINES, MOST_POINTS = 8, 8, 40
LONGEST = 300  # characters of a line
_HIDDEN = re.compile(r"[`\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def report(run: Json, champion: Json | None, points: Sequence[tuple[float, float]] = ()) -> str:
    """Return the comment. `champion` is a version as GET models/{model}/versions/{version} shows it, with `model`;
    `points` are steps and values of the run's headline metric.
    """
    lines = [MARK, *_head(run), "", *_table(run, champion), *_diagnosis(run), *_picture(run, points)]
    return "\n".join(lines) + "\n"


def _head(run: Json) -> Iterator[str]:
    best = run.get("best")
    value = f": {code(best['metric'])} {best['of_model']:.4g}" if best else ""
    yield f"### Trainyard: {code(run['run'])} {run['state']}{value}"
    if run["state"] == "canceled" and run["cause"]:
        yield f"\n{code(run['cause'])}"


def _table(run: Json, champion: Json | None) -> Iterator[str]:
    champions = f"{champion['model']} version {champion['number']}" if champion else ""
    name = f"champion {code(champions)}" if champion else "no champion yet"
    yield f"| | this run | {name} |"
    yield "|---|---:|---:|"
    own = run["metrics"]["of_model"]
    others = champion["metrics"] if champion else {}
    judged = champion["judged_by"] if champion else []
    names = list(dict.fromkeys([*judged, *([run["best"]["metric"]] if run.get("best") else []), *own]))
    for metric in names[:MOST_METRICS]:
        yield f"| {code(metric)} | {_number(own.get(metric))} | {_number(others.get(metric))} |"
    cost = run["cost"]
    spent = dollars(cost["training"] + cost["allocation"] + cost["idle"]) if cost else "unknown"
    greatest = "" if run["greatest_cost"] is None else f" (at most {dollars(run['greatest_cost'])})"
    yield f"| cost | {spent}{greatest} | |"
    yield f"| time | {_seconds(run['duration_seconds'])} | |"
    if run["parameters"]:
        given = ", ".join(f"{name}={value}" for name, value in sorted(run["parameters"].items()))
        yield f"| parameters | {code(given)} | |"


def _diagnosis(run: Json) -> Iterator[str]:
    found = run.get("diagnosis")
    if run["state"] != "failed":
        return
    yield ""
    if not found:
        yield f"**Why it failed:** {code(run['cause'] or 'not known yet')}"
        return
    yield f"**Why it failed** ({found['cause']}, {found['certainty']}): {code(found['summary'])}"
    if found["evidence"]:
        yield from ("", "```text", *(plain(line["text"]) for line in found["evidence"][:MOST_LINES]), "```")
    yield from (f"- {code(step)}" for step in found["advice"])


def _picture(run: Json, points: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Return a chart that GitHub draws. Its text has only letters and digits, because other characters belong to
    the chart's language.
    """
    if len(points) < 2 or not run.get("best"):
        return
    kept = [points[round(at * (len(points) - 1) / (MOST_POINTS - 1))] for at in range(MOST_POINTS)]
    shown = list(points) if len(points) <= MOST_POINTS else kept
    values = [value for _, value in shown]
    low, high = min(values), max(values)
    title = re.sub(r"[^A-Za-z0-9_. -]", " ", run["best"]["metric"])[:60]
    yield from ("", "```mermaid", "xychart-beta", f'    title "{title} by step"')
    yield f"    x-axis {shown[0][0]:g} --> {max(shown[-1][0], shown[0][0] + 1):g}"
    yield f"    y-axis {low:.6g} --> {high if high > low else low + 1:.6g}"
    yield f"    line [{', '.join(f'{value:.6g}' for value in values)}]"
    yield "```"


def code(text: object) -> str:
    """Return the text as a code span that also fits into a cell of a table."""
    return f"`{plain(str(text)).replace('|', '/') or ' '}`"


def plain(text: str) -> str:
    """Return the text on one line, without backticks, controls and invisible characters, and not too long."""
    shown = _HIDDEN.sub(" ", one_line(text)).strip()
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds / 60:.1f} min"
