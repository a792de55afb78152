"""Tables of models, versions and proofs. Pure."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from ..terminal_text import Text, one_line
from . import plot
from .tables import clock, metric

COLOURS = {"good": "green", "bad": "red", "unknown": "yellow"}
MOST_METRICS = 3


def table(models: list[dict[str, Any]]) -> RenderableType:
    """Return a table of the models with their aliases."""
    if not models:
        return Text("There are no models yet. `promote RUN NAME --as production` creates one.", "dim")
    rows = _table("model", "versions", "aliases")
    for model in models:
        aliases = ", ".join(_alias(each, model.get("chosen_by", "")) for each in model["aliases"])
        rows.add_row(Text(model["model"]), Text(str(model["latest"])), Text(aliases))
    return rows


def _alias(alias: dict[str, Any], chosen_by: str) -> str:
    """Return the alias, its version, and the metric by which versions of the model were compared."""
    value = alias.get("value")
    return f"{alias['alias']} -> {alias['version']}" + (
        "" if value is None else f" ({chosen_by} {metric(chosen_by, value)})"
    )


def one(model: dict[str, Any]) -> RenderableType:
    """Return tables of a model's versions, newest first, and of its history."""
    versions = _table("version", "alias", "run", "data", "metrics", "promoted", "by")
    for each in model["versions"]:
        data = f"{each['drop']}@{each['generation']}" if each["drop"] else ", ".join(each["reads"])
        versions.add_row(
            Text(f"{each['model']}/{each['number']}", "bold"),
            Text(", ".join(each["aliases"]), "green"),
            Text(each["run"]),
            Text(one_line(data)),
            Text(_metrics(each)),
            Text(clock(each["promoted_at"])),
            Text(one_line(each["by"])),
        )
    history = _table("when", "what", "by", "why")
    for line in model["history"]:
        history.add_row(
            Text(clock(line["at"])), Text(_words(line)), Text(one_line(line["by"])), Text(one_line(line["why"]))
        )
    return Group(versions, Text(), history)


def verified(result: Any) -> RenderableType:
    """Return the result of `verify`."""
    if result["ok"]:
        return Text(
            f"{result['model']}: {result['files']} files, {result['bytes']:,} bytes, all match the signature of key "
            f"{result['signer'][:16]}.",
            "green",
        )
    rows = [Text(f"{one_line(each['file'])} {one_line(each['what'])}.", "red") for each in result["problems"]]
    return Group(*rows)


def attestations(rows: list[dict[str, Any]]) -> RenderableType:
    """Return a table of a version's attestations, the newest first."""
    if not rows:
        return Text("There are no attestations. `attest MODEL/N approval --why TEXT` adds one.", "dim")
    shown = _table("kind", "result", "says", "by", "at", "key")
    for row in rows:
        bad = bool(row["problem"]) or not row["passed"]
        by = row["by"] + ("" if row["by_id"] or not row["of_app"] else " (not signed in)")
        shown.add_row(
            Text(row["kind"], "bold"),
            Text(
                "does not count" if row["problem"] else "passed" if row["passed"] else "failed",
                COLOURS["bad" if bad else "good"],
            ),
            Text(one_line(row["problem"] or row["says"])),
            Text(one_line(by)),
            Text(one_line(row["at"])),
            Text(row["signer"][:16]),
        )
    return shown


def keys(rows: list[dict[str, Any]]) -> RenderableType:
    """Return a table of the signing keys of a deployment, the newest first."""
    shown = _table("key (SHA-256)", "signs since", "until", "here", "")
    for key in rows:
        state = f"withdrawn {clock(key['withdrawn_at'])} {one_line(key['why'])}".strip() if key["withdrawn_at"] else ""
        shown.add_row(
            Text(key["sha256"], "bold"),
            Text(clock(key["since"]) if key["since"] else ""),
            Text(clock(key["until"]) if key["until"] else "now"),
            Text("trusted" if key["trusted"] else "not trusted", "green" if key["trusted"] else "yellow"),
            Text(state, "red"),
        )
    return shown


def chain(answer: dict[str, Any]) -> RenderableType:
    """Return a table of the links of `why`."""
    rows = Table(box=None, show_header=False, pad_edge=True, padding=(0, 2, 0, 0))
    for column in range(3):
        rows.add_column(overflow="fold", no_wrap=column < 2)
    for link in answer["links"]:
        rows.add_row(
            Text(link["state"], COLOURS[link["state"]]), Text(link["link"], "bold"), Text(one_line(link["says"]))
        )
    return rows


def compared(answer: dict[str, Any]) -> RenderableType:
    """Return the result of `reproduce`."""
    same = "the same bytes" if answer["equal"] else "other bytes"
    lines = [Text(f"{answer['run']} gave {same}.", "green" if answer["equal"] else "red")]
    lines += [Text(f"{name} {'is equal' if equal else 'differs'}.") for name, equal in answer["weights"].items()]
    lines += [Text(f"{name} differs, and only describes the model.", "dim") for name in answer["others"]]
    return Group(*lines, *(Text(one_line(words)) for words in answer["differs"]), *_scatter(answer))


def _scatter(answer: dict[str, Any]) -> list[Text]:
    """Compare the version's metric with its repetitions; nothing for weights that are equal."""
    if answer["equal"] or answer.get("value") is None:
        return []
    name, values = answer["metric"], answer["repetitions"].values()
    said = f"{name} {metric(name, answer['value'])}; repetitions: {', '.join(metric(name, each) for each in values)}"
    if answer["within"] is None:
        return [Text(f"{said}. With --times 3 or more, the scatter is estimated.")]
    if answer["within"]:
        return [Text(f"{said}. The version is within what the repetitions let expect (95 %).", "green")]
    return [Text(f"{said}. The version is outside of what the repetitions let expect (95 %).", "red")]


def _table(*columns: str) -> Table:
    rows = Table(box=None, pad_edge=True, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        rows.add_column(column, overflow="fold")
    return rows


def _metrics(version: dict[str, Any]) -> str:
    """Return up to MOST_METRICS metrics of a version: first the metrics by which versions were compared, then the
    others in the order of the API, in which metrics of quality come first.
    """
    metrics = version["metrics"]
    names = dict.fromkeys([*version.get("judged_by", ()), *plot.telling(list(metrics)), *metrics])
    shown = [name for name in names if name in metrics][:MOST_METRICS]
    return ", ".join(f"{name} {metric(name, metrics[name])}" for name in shown)


def _words(line: dict[str, Any]) -> str:
    before, after = line["before"] or "nothing", line["after"] or "nothing"
    if line["what"] == "version":
        return f"version {after} made"
    if line["what"] == "let go":
        return f"version {before} released"
    if line["what"] == "signed":
        return f"version {after} signed again"
    if line["what"] == "lost":
        return f"{line['alias']} stays {before}: run {line['run']} lost"
    return f"{line['alias']}: {before} -> {after}" + (" (undone)" if line["what"] == "undo" else "")
