"""The tools that read: find, inspect and compare. shown_run.py defines how they show a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from shared.agents.shown_run import METRICS_SHOWN, entry, shown
from shared.agents.tools import Desk, ToolAnswer, arguments, arguments_of, given, operation, run_or_drop
from shared.api.signature import signature
from shared.kernel.errors import Impossible

CONDITIONS = ("where", "state", "experiment", "cluster", "tag", "since")
MOST_RUNS = 50
_RUNS = signature(operation("list_runs")).query
_KINDS = {  # kinds that `find` lists besides runs: the operation, the name and the facts of an entry
    "trainers": ("list_trainers", "trainer", ("elastic", "routes")),
    "routes": (
        "list_routes",
        "route",
        ("trains", "trainer", "elastic", "clusters", "nodes", "max_nodes", "timeout_seconds"),
    ),
    "models": ("list_models", "model", ("latest",)),
    "clusters": ("list_clusters", "name", ("vm_size", "tier", "max_nodes", "nodes", "busy_nodes")),
}

FindArguments = arguments(
    "FindArguments",
    "What to list, and which of it.",
    [
        (
            "kind",
            Annotated[
                Literal["runs", "trainers", "routes", "models", "clusters"],
                Meta(
                    description="runs: trainings. trainers and routes: what can be trained, with the parameters of one "
                    "if `name` names it. models: promoted models. clusters: where trainings run."
                ),
            ],
            "runs",
        ),
        ("name", Annotated[str, Meta(max_length=100, description="Only the entry of this name. Not for runs.")], ""),
        ("limit", Annotated[int, Meta(ge=1, le=MOST_RUNS)], 10),
    ],
    arguments_of(_RUNS, (*CONDITIONS, "continue")),
)

InspectArguments = arguments(
    "InspectArguments",
    "One of name and model.",
    [
        (
            "name",
            Annotated[
                str,
                Meta(
                    max_length=300,
                    description="A run or drop: its name, a unique beginning, mnist@latest, or mnist@best:accuracy.",
                ),
            ],
            "",
        ),
        ("model", Annotated[str, Meta(max_length=100, description="A model, such as digits.")], ""),
        (
            "version",
            Annotated[str, Meta(max_length=40, description="A number or an alias; with it, the proof is checked.")],
            "",
        ),
    ],
)

CompareArguments = arguments(
    "CompareArguments",
    "The runs to compare.",
    [
        (
            "runs",
            Annotated[
                list[Annotated[str, Meta(min_length=1, max_length=300)]],
                Meta(
                    min_length=2,
                    max_length=20,
                    description="Names as for inspect; digits@production is the run of that version of a model.",
                ),
            ],
        )
    ],
)


def find(desk: Desk, asked: Any) -> ToolAnswer:
    if asked.kind != "runs":
        return _listed(desk, asked)
    query = {**given(asked, (*CONDITIONS, "continue")), "limit": asked.limit}
    page = desk.call("list_runs", query=query)
    rows = [entry(each) for each in page["runs"]]
    facts = {"runs": [row for row, _ in rows]}
    outside: dict[str, Any] = {row["run"]: words for row, words in rows if words}
    if page.get("hint"):
        outside["hint"] = page["hint"]
    token = page["continue"]
    cut = (f"More runs: ask again with continue={token!r} and the same conditions.",) if token else ()
    return ToolAnswer(facts, outside, cut)


def _listed(desk: Desk, asked: Any) -> ToolAnswer:
    name, key, fields = _KINDS[asked.kind]
    entries = [each for each in desk.call(name) if asked.name in ("", each[key])]
    if asked.name and not entries:
        raise Impossible(f"There is no such entry of {asked.kind}: {asked.name!r}. Leave name out for all.", "unknown")
    shown = entries[: asked.limit]
    rows = [{key: each[key], **{name: each.get(name) for name in fields}} for each in shown]
    outside = {each[key]: _described(each, bool(asked.name)) for each in shown}
    cut = (f"{len(entries) - len(shown)} more: ask with a higher limit.",) if len(entries) > len(shown) else ()
    return ToolAnswer({asked.kind: rows}, {name: words for name, words in outside.items() if words}, cut)


def _described(each: dict[str, Any], whole: bool) -> dict[str, Any]:
    """Return the text that people wrote about an entry: the description and the aliases. A single entry also has
    its parameters.
    """
    aliases = {alias["alias"]: alias["version"] for alias in each.get("aliases", ())}
    properties = each.get("parameters", {}).get("properties", {})
    parameters: Any = properties if whole else list(properties)
    found = {"description": each.get("description"), "aliases": aliases, "parameters": parameters}
    return {name: value for name, value in found.items() if value}


def inspect(desk: Desk, asked: Any) -> ToolAnswer:
    if bool(asked.name) == bool(asked.model):
        raise Impossible("Give one of name (of a run or drop) and model.", "bad_parameter")
    if asked.model:
        return _version(desk, asked.model, asked.version) if asked.version else _model(desk, asked.model)
    found = run_or_drop(desk, asked.name)
    if found["run"]:
        return shown(desk.call("get_run", path={"run": found["run"]}))
    route, _, name = found["drop"].partition("/")
    drop = desk.call("get_drop", path={"route": route, "name": name})
    facts = {name: drop[name] for name in ("state", "generation", "blobs", "bytes", "run", "sealed_at")}
    return ToolAnswer({"kind": "drop", **facts}, {"drop": drop["drop"], "why": drop["why"], "owner": drop["owner"]})


def _model(desk: Desk, model: str) -> ToolAnswer:
    page = desk.call("get_model", path={"model": model})
    versions = [{name: each[name] for name in ("number", "run", "promoted_at")} for each in page["versions"][:10]]
    aliases = {each["alias"]: each["version"] for each in page["aliases"]}
    facts = {"model": page["model"], "latest": page["latest"], "versions": versions}
    cut = (f"{len(page['versions']) - 10} older versions.",) if len(page["versions"]) > 10 else ()
    return ToolAnswer(facts, {"aliases": aliases}, cut, ("Inspect a version to check its proof.",) if versions else ())


def _version(desk: Desk, model: str, version: str) -> ToolAnswer:
    chain = desk.call("explain_version", path={"model": model, "version": version})
    found = chain["version"]
    links = [{"link": each["link"], "state": each["state"]} for each in chain["links"]]
    facts = {"model": model, "version": found["number"], "run": found["run"], "proof_holds": chain["holds"]}
    metrics = dict(list(found["metrics"].items())[:METRICS_SHOWN])
    said = {each["link"]: each["says"] for each in chain["links"] if each["state"] != "good"}
    return ToolAnswer({**facts, "links": links}, {"metrics": metrics, "aliases": found["aliases"], "links": said})


def compare(desk: Desk, asked: Any) -> ToolAnswer:
    found = desk.call("compare", query={"runs": ",".join(asked.runs)})
    names = [each["run"] for each in found["runs"]]
    different = {each["name"]: each["values"] for each in found["different"]}
    headlines = {each["best"]["metric"] for each in found["runs"] if each["best"]}
    metrics = {
        each["name"]: {"values": each["values"], "best": None if each["best"] is None else names[each["best"]]}
        for each in sorted(found["metrics"], key=lambda each: each["name"] not in headlines)[:METRICS_SHOWN]
    }
    left = len(found["metrics"]) - len(metrics)
    cut = (f"{left} more metrics: inspect a run.",) if left > 0 else ()
    facts = {"runs": names, "states": [each["state"] for each in found["runs"]]}
    return ToolAnswer(facts, {"different": different, "metrics": metrics}, cut)
