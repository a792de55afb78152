"""The model card: Markdown with the metadata that model hubs read, from provenance and bill of materials. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from shared.jobs.card import FACTS
from shared.models.bom import components

Json = dict[str, Any]
CARD = "README.md"
NOT_KNOWN = "not known"
PARENTS = ("parent model", "continued run")
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
            f"{' by the rule of the route' if model['promotedByRule'] else _for(model['promotedBy'])}."
            + (f" {_cell(model['why'])}" if model["why"] else ""),
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
            *_inputs(build["resolvedDependencies"]),
            *_checked(inner["data"].get("check") or {}),
            "",
            "## Origin",
            *_table(("fact", "value"), _origin(build, run)),
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


def _inputs(rows: list[Json]) -> list[str]:
    """Return a line for each input outside of the drop. Its files and their SHA-256 are in provenance.json."""
    named = (row for row in rows if str(row["name"]).startswith("input ") and "files" in row.get("annotations", {}))
    return [
        f"- I{_cell(row['name'])[1:]}: `{_cell(row['uri'])}`, {row['annotations']['files']:,} file(s)" for row in named
    ]


def _origin(build: Json, run: Json) -> list[tuple[str, str]]:
    """Return who made the model, from what, and for whom: a row for each fact, also for an unknown fact."""
    asked, rows = build["externalParameters"], build["resolvedDependencies"]
    owner = run["owner"] or NOT_KNOWN
    members = [each["job"] for each in run.get("elastic", {}).get("members", ())]
    return [
        ("kind of run", asked["kind"]),
        ("asked for by", owner if run["ownerIsVerified"] or not run["owner"] else f"{owner}, without a sign-in"),
        *_codes(rows),
        *((row["name"], row["uri"]) for row in _of_kind(rows, "environment")),
        *((row["name"], row["uri"]) for row in rows if row["name"] in PARENTS),
        *([("trial of the sweep", asked["trial"])] if asked.get("trial") else []),
        *([("trial of", run["trial"]["sweep"])] if run.get("trial") else []),
        *([("members", ", ".join(members))] if members else []),
    ]


def _codes(rows: list[Json]) -> list[tuple[str, str]]:
    """Return the digest and the commit of each code."""
    lines = []
    for row in _of_kind(rows, "code"):
        commit, digest = row["digest"].get("gitCommit", ""), row["digest"].get("sha256", NOT_KNOWN)
        changed = ", with changes that were not committed" if row["annotations"].get("changedSinceCommit") else ""
        lines.append((row["name"], f"SHA-256 {digest}, commit {commit or NOT_KNOWN}{changed}"))
    return lines or [("code", NOT_KNOWN)]


def _of_kind(rows: list[Json], kind: str) -> list[Json]:
    return [row for row in rows if row["name"] == kind or str(row["name"]).startswith(f"{kind} of step ")]


def _checked(check: Json) -> list[str]:
    """Return the data card as lines: the verdict, a table of classes by split, the amount of data read, and the
    warnings.
    """
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
    most, fewest = asked["nodes"], run.get("elastic", {}).get("min_nodes", asked["nodes"])
    words = f"{most if fewest == most else f'{fewest} to {most}'} node(s) of {_cell(asked['cluster'])}"
    words += f", {run['attempts']} attempt(s)"
    words += f", {run['seconds']:,.0f} s" if run["seconds"] is not None else ""
    words += f", ${run['dollars']:.2f}" if run["dollars"] is not None else ""
    words += f"; processor {_cell(node['processor'])}" if node.get("processor") else ""
    steps = asked.get("steps") or {"": asked}
    return [line for name, step in steps.items() for line in _step(name, step)] + [f"{words}."]


def _step(name: str, step: Json) -> list[str]:
    """Return the command and the parameters of a job, or of a step of a pipeline, whose data are not parameters."""
    head = f"Step `{_cell(name)}`: " if name else ""
    parameters = [(key, value) for key, value in sorted(step["parameters"].items()) if not isinstance(value, dict)]
    table = ["", *_table(("parameter", "value"), parameters)] if parameters else []
    return [f"{head}Command: `{_cell(step['command'])}`.", *table, ""]


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
