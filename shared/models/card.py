"""The model card: Markdown with the metadata that model hubs read, from provenance and bill of materials. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from shared.jobs.card import FACTS
from shared.models.bom import components

Json = dict[str, Any]
CARD = "README.md"
MOST_PACKAGES = 40
MOST_CLASSES = 50


def card(provenance: Json, bom: Json) -> str:
    """Return the card. Every fact of the card comes from the two documents; one signature covers all three."""
    predicate = provenance["predicate"]
    model, run = predicate["trainyard_model"], predicate["trainyard_run"]
    build = predicate["buildDefinition"]
    asked, inner = build["externalParameters"], build["internalParameters"]
    head = {"model_name": model["name"], "tags": ["trainyard"], "datasets": [asked["drop"]] if asked["drop"] else []}
    head |= {"license": stated["licence"]} if (stated := predicate["trainyard_stated"]).get("licence") else {}
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(head, sort_keys=False).strip()}\n---",
            f"# {_cell(model['name'])} {model['version']}",
            "",
            f"Trained by run `{run['name']}`{_for(run['owner'])}, promoted at {model['promotedAt']}"
            f"{_for(model['promotedBy'])}." + (f" {_cell(model['why'])}" if model["why"] else ""),
            "",
            "## About",
            *_table(("fact", "statement"), _about(predicate["trainyard_stated"])),
            "",
            "## Metrics",
            *(
                _table(("metric", "saved model", "said by", "best seen", "at step"), _metrics(run))
                if run["metrics"]
                else ["None."]
            ),
            "",
            "## Data",
            _data(asked, inner["data"]),
            *_checked(inner["data"].get("check") or {}),
            "",
            "## Training",
            *_training(asked, inner["node"], run),
            "",
            "## Packages",
            *(_packages(bom) or ["The run told of none."]),
            "",
            "## Not known",
            *([f"- {_cell(gap)}" for gap in predicate["trainyard_not_known"]] or ["Nothing is missing."]),
            "",
            "## Check it",
            f"`trainyard verify {model['name']}@{model['version']} FOLDER`, or `model_signing verify key . --signature "
            "model.sig --public_key KEY.pem`.",
            "",
        ]
    )


def _about(stated: Json) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), stated.get(name, "nobody stated it")) for name in FACTS]


def _for(who: str) -> str:
    return f" for {_cell(who)}" if who else ""


def _metrics(run: Json) -> list[tuple[str, ...]]:
    return [
        (name, f"{its['value']:g}", its["saidBy"], _number(its["best"]), _number(its["bestAtStep"]))
        for name, its in run["metrics"].items()
    ]


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:g}"


def _data(asked: Json, data: Json) -> str:
    if not asked["drop"]:
        places = ", ".join(f"`drops/{place}`" for place in asked["reads"])
        return f"No drop; the job read {places}." if places else "No drop."
    drop = f"Drop `{_cell(asked['drop'])}`, generation {asked['generation']}"
    words = f"{drop}: {data['files']:,} files, {data['bytes']:,} bytes."
    return words + (f" Their SHA-256 is not known: {data['notHashed']}" if data["notHashed"] else "")


def _checked(check: Json) -> list[str]:
    """Return the data card as lines: the verdict, a table of classes by split, how much was read, and the warnings."""
    if not check:
        return []
    card = check["card"]
    splits = card.get("splits") or {}
    names = sorted({name for classes in splits.values() for name in classes})[:MOST_CLASSES]
    rows = [(name, *(classes.get(name, 0) for classes in splits.values())) for name in names]
    total = ("all", *(card["totals"].get(split, 0) for split in splits))
    heads = ("class", *(f"{_cell(split)} ({_cell(card['unit'])})" for split in splits))
    table = ["", *_table(heads, [*rows, total])] if splits else []
    warnings = [f"- {_cell(sentence)}" for sentence in (*check["refusals"], *check["warnings"])]
    return ["", f"The check of the data says: {check['verdict']}. {_cell(card.get('read', ''))}", *table, *warnings]


def _training(asked: Json, node: Json, run: Json) -> list[str]:
    trial = f" Trained by trial `{_cell(asked['trial'])}` of the sweep." if asked.get("trial") else ""
    words = f"{asked['nodes']} node(s) of {_cell(asked['cluster'])}, {run['attempts']} attempt(s)"
    words += f", {run['seconds']:,.0f} s" if run["seconds"] is not None else ""
    words += f", ${run['dollars']:.2f}" if run["dollars"] is not None else ""
    words += f"; processor {_cell(node['processor'])}" if node.get("processor") else ""
    parameters = _table(("parameter", "value"), sorted(asked["parameters"].items()))
    return [f"Command: `{_cell(asked['command'])}`.{trial}", "", *parameters, "", f"{words}."]


def _packages(bom: Json) -> list[str]:
    named = [(each["name"], each.get("version", "")) for each in components(bom, "library")]
    rest = [f"\nand {len(named) - MOST_PACKAGES} more, in `bom.json`."] if len(named) > MOST_PACKAGES else []
    return [*_table(("package", "version"), named[:MOST_PACKAGES]), *rest] if named else []


def _table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(_cell(value) for value in row)} |" for row in rows)]


def _cell(value: Any) -> str:
    """Escape a value for one table cell: the value must neither end the row nor add markup."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
