"""What the API tells, as tables for a terminal. Pure: values in, something to print out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from . import costs, listing, people, phases, plot
from .results import ClusterSteps
from .visible import Text, one_line

STYLES = {
    "open": "yellow",
    "sealed": "green",
    "rejected": "red",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "canceled": "magenta",
    "started": "green",
    "skipped": "yellow",
    "pending": "yellow",
    "delivered": "green",
    "gave_up": "red",
}

LONG = ("data", "drop", "why", "decision", "parameters")  # these columns wrap; the others are for copying


def status(answer: dict[str, Any]) -> RenderableType:
    """The whole of /api/status. A part without rows is one quiet line, so that nothing is hidden."""
    return Group(
        runs(answer["runs"], "newest first"),
        _table("Drops", "open or rejected", answer["drops"], _drop_row, ["drop", "state", "blobs", "why"]),
        clusters(answer["clusters"]),
        _table("Queues", "", sorted(answer["queues"].items()), _queue_row, ["queue", "waiting", "poison"]),
        _poison(answer["poison"]),
    )


def runs(rows: list[dict[str, Any]], note: str = "") -> RenderableType:
    names = listing.differing(rows)
    columns = ["run", "state", "data", "best", "took", "cost", "parameters", "began", "why"]
    return _table("Runs", note, rows, lambda run: _run_row(run, names), columns)


def clusters(rows: list[dict[str, Any]]) -> RenderableType:
    return _table("Clusters", "", rows, _cluster_row, ["cluster", "size", "nodes", "busy", "range", "decision"])


def lease(told: dict[str, Any], hint: str = "") -> RenderableType:
    """One lease: what it holds, for whom, until when."""
    nodes = f"{told['nodes']} node{'s' if told['nodes'] > 1 else ''} of {told['cluster']}"
    line = Text.assemble((told["lease"], "bold"), f"  {nodes} until {clock(told['released_at'] or told['until'])}")
    return Group(line, *([Text(hint, "dim")] if hint else []))


def leases(rows: list[dict[str, Any]]) -> RenderableType:
    return _table("Leases", "", rows, _lease_row, ["lease", "cluster", "nodes", "until", "owner", "why"])


def decisions(cluster: str, rows: list[dict[str, Any]]) -> RenderableType:
    """What was decided about a cluster, newest first."""
    table = Table.grid(padding=(0, 2))
    for row in rows:
        words = f"{row['action']}, {row['code']}: {row['why']}"
        table.add_row(Text(f"  {clock(row['at'])}", "dim"), Text(one_line(words)))
    return Group(Text(cluster, "bold"), table)


def cluster_steps(told: ClusterSteps, done: bool) -> RenderableType:
    """What a clusters file changes, a line a change."""
    verbs = {"create": "created" if done else "create", "change": "changed" if done else "change"}
    lines = []
    for step in told["steps"]:
        heading = (f"{step['cluster']}: {verbs.get(step['action'], 'impossible')}", "bold")
        lines.append(Text.assemble(heading, (f"  {step['why']}", "red") if step["why"] else ""))
        for what, change in step["changes"].items():
            if change["to"] in ("", 0) and change["from"] is None:
                continue
            before = f"{'none' if change['from'] == '' else change['from']} -> " if change["from"] is not None else ""
            lines.append(Text(one_line(f"  {what}: {before}{'none' if change['to'] == '' else change['to']}"), "dim"))
    if others := told["not_in_the_file"]:
        lines.append(Text(f"Not in the file, left alone: {', '.join(others)}", "dim"))
    return Group(*(lines if told["steps"] else [Text("The clusters are as the file declares them."), *lines]))


def run(told: dict[str, Any]) -> RenderableType:
    """One run: what it is, how it went, and what became of it."""
    times = phases.spent(told, datetime.now(UTC))
    facts = {
        "state": _state(told),
        "drop": Text(_data_of(told)),
        "experiment": Text(told["experiment"]),
        "cluster": Text(f"{told['cluster']}, {node_words(told)}"),
        "owner": Text(people.owner(told)),
        "parameters": parameters(told),
        **({"tags": Text(tags(told))} if told.get("tags") else {}),
        **_canceled(told),
        **({"waits for": Text(_waiting(told), "yellow")} if told.get("waiting") else {}),
        "attempts": Text(str(told.get("attempts", ""))),
        "code": Text(_code(told)),
        "environment": Text(told.get("environment") or "not resolved yet"),
        "output": Text(told.get("output") or "none yet"),
        "metrics": metrics(told),
        "cost": Text(costs.of_run(told)),
        "project": Text(told.get("project") or "none"),
        "phases": Text(", ".join(f"{key} {phases.duration(times[key])}" for key in phases.PHASES if key in times)),
    }
    parts: list[RenderableType] = [Text(told["run"], "bold"), _facts(facts), *_notes(told), Text(), _history(told)]
    if told.get("elastic"):
        parts += [Text(), members(told["elastic"])]
    return Group(*parts, *_reason(told))


def _canceled(told: dict[str, Any]) -> dict[str, Text]:
    """Who asked for its end, of a run that somebody canceled."""
    who = people.known(told.get("canceled_by") or "", told.get("canceled_by_id") or "")
    return {"canceled by": Text(who)} if who else {}


def tags(told: dict[str, Any]) -> str:
    return ", ".join(one_line(f"{name}={value}") for name, value in sorted((told.get("tags") or {}).items()))


def _notes(told: dict[str, Any]) -> list[RenderableType]:
    """What people wrote on it, each with who and when."""
    if not (notes := told.get("notes")):
        return []
    table = Table.grid(padding=(0, 2))
    for note in notes:
        who = one_line(note["by"]) or "somebody"
        table.add_row(Text(f"  {clock(note['at'])}", "dim"), Text(who, "dim"), Text(one_line(note["text"])))
    return [Text(), Text("Notes", "bold"), table]


def _data_of(told: dict[str, Any]) -> str:
    """The drop, with the generation that the run was made for."""
    generation = told.get("generation") or 0
    return one_line(told.get("drop") or "none") + (f", generation {generation}" if generation else "")


def _code(told: dict[str, Any]) -> str:
    """The code's digest, and the commit that it came from."""
    git = told.get("git")
    words = [told.get("code") or "its own"]
    if git:
        where = f" on {one_line(git['branch'])}" if git["branch"] else ""
        words.append(f"commit {one_line(git['commit'])[:12]}{where}{', with changes since' if git['dirty'] else ''}")
    return ", ".join(words)


def _waiting(told: dict[str, Any]) -> str:
    """What a run that has not started waits for, and since when."""
    found = told.get("waiting")
    if not found:
        return ""
    since = f" Since {clock(found['since'])}." if found["since"] else ""
    return one_line(f"{found['why']}{since}")


def nodes(told: dict[str, Any]) -> str:
    """How many nodes the run has; of an elastic one, how many at least and at most."""
    elastic = told.get("elastic")
    return f"{elastic['min_nodes']} to {told['nodes']}" if elastic else str(told["nodes"])


def node_words(told: dict[str, Any]) -> str:
    """The same as words: `1 node`, `2 nodes`, `1 to 4 nodes`."""
    return "1 node" if (count := nodes(told)) == "1" else f"{count} nodes"


def members(elastic: dict[str, Any]) -> RenderableType:
    """The members of an elastic run, what is left of its budget, and its size over time."""
    used, deadline = f"{elastic['resubmitted']} of {elastic['resubmissions']}", clock(elastic["deadline"])
    table = Table.grid(padding=(0, 2))
    for member in elastic["members"]:
        job = f"m{member['member']}-{member['attempt']}"
        table.add_row(Text(f"  {clock(member['at'])}", "dim"), Text(job), _state(member), Text(member["why"], "dim"))
    heading = Text.assemble(("Members", "bold"), (f"  {used} resubmissions used, deadline {deadline}", "dim"))
    steps = [f"{clock(size['at'])} {size['nodes']}" for size in elastic["sizes"]]
    line = Text("  nodes over time: " + (", ".join(steps) or "none yet"), "dim")
    return Group(heading, table, line)


def result(told: dict[str, Any], program: str) -> RenderableType:
    """How a run that was followed ended, where things are, and what to do next."""
    name, good = told["run"], told["state"] == "completed"
    heading = Text.assemble((f"{name} ", "bold"), _state(told))
    facts = {"metrics": metrics(told), "output": Text(told.get("output") or "none")}
    fetch = Text(f"{program} fetch {name}" if good else f"{program} fetch {name} --only logs")
    facts |= {"fetch it": fetch, "see it": Text(f"{program} metrics {name}" if good else f"{program} show {name}")}
    return Group(Text(), heading, *_reason(told), _facts(facts))


def drop(told: dict[str, Any]) -> RenderableType:
    """One drop, with why nothing started."""
    facts = {
        "state": _state(told),
        "why": Text(told.get("why") or ""),
        "run": Text(told.get("run") or "none"),
        "generation": Text(str(told["generation"])),
        "blobs": Text(f"{told['blobs']:,}, {told['bytes']:,} bytes"),
        "opened": Text(clock(told["opened_at"])),
        "sealed": Text(clock(told["sealed_at"])),
    }
    return Group(Text(one_line(told["drop"]), "bold"), _facts(facts))


def generations(drop_name: str, rows: list[dict[str, Any]]) -> RenderableType:
    """The versions of a drop's data, newest first."""
    return _table(
        one_line(drop_name), "newest first", rows, _generation_row, ["gen", "closed", "files", "bytes", "run", "why"]
    )


def difference(told: dict[str, Any]) -> RenderableType:
    """What is added, changed and gone, each file on a line of its own as `diff` marks them."""
    lines: list[RenderableType] = [Text(f"{one_line(told['a'])} -> {one_line(told['b'])}", "bold")]
    for part, sign, style in (("added", "+", "green"), ("changed", "~", "yellow"), ("gone", "-", "red")):
        found = told[part]
        lines += [Text(f"  {sign} {one_line(file['path'])}  {file['size']:,}", style) for file in found["files"]]
        if more := found["count"] - len(found["files"]):
            lines.append(Text(f"  {sign} and {more:,} more", style))
    counts = ", ".join(f"{told[part]['count']:,} {part}" for part in ("added", "changed", "gone"))
    return Group(*lines, Text(f"{counts}, {told['same']:,} the same", "dim"))


def subscriptions(rows: list[dict[str, Any]]) -> RenderableType:
    """Who is told of what."""
    return _table("Subscriptions", "", rows, _subscription_row, ["id", "on", "channel", "to", "only", "since"])


def deliveries(rows: list[dict[str, Any]]) -> RenderableType:
    """What became of notices, newest first."""
    return _table("Notices", "newest first", rows, _delivery_row, ["at", "kind", "state", "tries", "what", "error"])


def usage(told: dict[str, Any]) -> RenderableType:
    """What takes the space, by kind and by what holds it."""
    kinds = [(kind, size) for kind, size in told["kinds"].items()]
    total = sum(told["kinds"].values())
    note = f"{size_of(total)} in all" if told["complete"] else f"{size_of(total)} counted; there is more"
    return Group(
        _table("Space", note, kinds, lambda row: [Text(row[0]), Text(size_of(row[1]))], ["kind", "size"]),
        _table("Most of it", "", told["holders"], _holder_row, ["kind", "what", "size", "files"]),
    )


def removals(rows: list[dict[str, Any]]) -> RenderableType:
    return _table("Removed", "newest first", rows, _removal_row, ["asked", "what", "name", "by", "size", "why"])


def going(rows: list[dict[str, Any]]) -> RenderableType:
    def cells(row: dict[str, Any]) -> list[Text]:
        return [Text(clock(row["at"])), Text(row["what"]), Text(one_line(row["name"])), Text(row["why"])]

    return _table("Retention deletes", "within a week", rows, cells, ["at", "what", "name", "why"])


def size_of(count: float) -> str:
    """`455.0 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def instants(told: dict[str, Any]) -> RenderableType:
    """When a schedule would make a run, and what would keep it from starting now."""
    lines = [Text(f"  {clock(at)}") for at in told["next"]] or [Text("  when enough new files have come", "dim")]
    reasons = [Text(f"  not now: {reason['message']}", "yellow") for reason in told["reasons"]]
    return Group(Text("Next", "bold"), *lines, *reasons)


def schedules(rows: list[dict[str, Any]]) -> RenderableType:
    return _table("Schedules", "", rows, _schedule_row, ["id", "when", "what", "next", "last run"])


def firings(rows: list[dict[str, Any]]) -> RenderableType:
    return _table("Instants", "newest first", rows, _firing_row, ["at", "outcome", "run", "why"])


def data_files(told: dict[str, Any]) -> RenderableType:
    lines = [Text(f"{file['size']:>14,}  {one_line(file['path'])}") for file in told["files"]]
    return Group(*lines, Text(f"{files(told['count'])}, {told['bytes']:,} bytes", "dim"))


def files(count: int) -> str:
    """`1 file`, `1,200 files`."""
    return f"{count:,} file{'' if count == 1 else 's'}"


def metrics(told: dict[str, Any]) -> Text:
    """The last value of each telling metric, those of the test data first."""
    last = (told.get("metrics") or {}).get("last") or {}
    names = sorted(plot.telling([name for name in last if name not in ("time", "step")]), reverse=True)
    names.sort(key=lambda name: name.startswith("train_"))
    words = [f"{n} {last[n]:.2%}" if n.endswith("accuracy") else f"{n} {last[n]:.4g}" for n in names]
    return Text(", ".join(words) or "none", "green" if words else "dim")


def parameters(told: dict[str, Any]) -> Text:
    """What the run was trained with, those at their defaults too."""
    words = [f"{name}={number(value)}" for name, value in (told.get("parameters") or {}).items()]
    return Text(" ".join(words) or "none", "" if words else "dim")


def number(value: Any) -> str:
    """A value of a parameter as one types it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _facts(rows: dict[str, Text]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(f"  {name}", value)
    return table


def _history(told: dict[str, Any]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for moment in told.get("history") or []:
        why = (moment.get("why") or "").partition("\n")[0]
        table.add_row(Text(f"  {clock(moment['at'])}", "dim"), _state(moment), Text(why, "dim"))
    return Group(Text("History", "bold"), table)


def _reason(told: dict[str, Any]) -> list[RenderableType]:
    """Why it ended badly, with the log's last lines as they are."""
    return [Text(), Text(told["reason"].rstrip(), "red"), Text()] if told.get("reason") else []


def _table(
    title: str, note: str, rows: Iterable[Any], cells: Callable[[Any], list[Text]], columns: list[str]
) -> RenderableType:
    rows = list(rows)
    heading = Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim"))
    if not rows:
        return Group(heading, Text("  none", "dim"), Text())
    table = Table(box=None, pad_edge=True, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=column not in LONG, overflow="fold")
    for row in rows:
        table.add_row(*cells(row))
    return Group(heading, table, Text())


def _run_row(run: dict[str, Any], parameters: list[str]) -> list[Text]:
    """`parameters` are those that are not the same in all runs of the table."""
    archived = run.get("archived_at")
    why = run.get("cause") or (run.get("reason") or "").partition("\n")[0]
    why = why or (f"archived {clock(archived)}" if archived else "") or _waiting(run)
    took, cost, values = run.get("duration_seconds"), listing.cost_of(run), run.get("parameters") or {}
    return [
        Text(run["run"]),
        _state(run),
        Text(one_line(run.get("drop") or "")),
        Text(_best(run)),
        Text(phases.duration(took) if took is not None else ""),
        Text(f"${cost:.2f}" if cost is not None else ""),
        Text(one_line(" ".join(f"{name}={number(values[name])}" for name in parameters if name in values))),
        Text(clock(run.get("created_at")), "dim"),
        Text(one_line(why)),
    ]


def _best(run: dict[str, Any]) -> str:
    best = run.get("best")
    if not best:
        return ""
    metric, value = best["metric"], best["value"]
    return f"{metric} {value:.2%}" if metric.endswith("accuracy") else f"{metric} {value:.4g}"


def _generation_row(row: dict[str, Any]) -> list[Text]:
    return [
        Text(str(row["number"])),
        Text(clock(row["sealed_at"]), "dim"),
        Text(f"{row['blobs']:,}"),
        Text(f"{row['bytes']:,}"),
        Text(row["run"]),
        Text(row["why"]),
    ]


def _holder_row(row: dict[str, Any]) -> list[Text]:
    return [Text(row["kind"]), Text(one_line(row["name"])), Text(size_of(row["bytes"])), Text(f"{row['files']:,}")]


def _removal_row(row: dict[str, Any]) -> list[Text]:
    size = size_of(row["bytes"]) if row["done_at"] else "going"
    words = row["what"], one_line(row["name"]), one_line(row["by"]), size, row["why"]
    return [Text(clock(row["asked_at"]), "dim"), *map(Text, words)]


def _schedule_row(row: dict[str, Any]) -> list[Text]:
    request = row["request"]
    what = next((str(request[kind]) for kind in ("trainer", "template") if request.get(kind)), "a job")
    when = f"{row['cron']} {row['timezone']}" if row["cron"] else f"{row['new_files']:,} new files in {row['route']}"
    following = "paused" if row["paused"] else clock(row["next_at"])
    return [*map(Text, (row["id"], when, one_line(what), following, row["last_run"]))]


def _firing_row(row: dict[str, Any]) -> list[Text]:
    style = STYLES.get(row["outcome"], "")
    return [Text(clock(row["at"]), "dim"), Text(row["outcome"], style), Text(row["run"]), Text(row["why"])]


def _subscription_row(row: dict[str, Any]) -> list[Text]:
    only = [f"{name} {row[name]}" for name in ("route", "experiment") if row[name]]
    words = (row["id"], ", ".join(row["on"]), row["channel"], one_line(row["to"]), ", ".join(only))
    return [*map(Text, words), Text(clock(row["created_at"]), "dim")]


def _delivery_row(row: dict[str, Any]) -> list[Text]:
    begin = Text(clock(row["at"]), "dim"), Text(row["kind"]), _state(row), Text(str(row["tries"]))
    return [*begin, Text(row["title"]), Text(row["error"])]


def _drop_row(drop: dict[str, Any]) -> list[Text]:
    return [Text(one_line(drop["drop"])), _state(drop), Text(str(drop.get("blobs", ""))), Text(drop.get("why") or "")]


def _lease_row(lease: dict[str, Any]) -> list[Text]:
    why = f"after run {lease['run']}, {lease['why']}" if lease["run"] else lease["why"]
    owner = one_line(lease["owner"]) or "a key"
    names = Text(lease["lease"]), Text(lease["cluster"]), Text(str(lease["nodes"])), Text(clock(lease["until"]))
    return [*names, Text(owner), Text(one_line(why))]


def _cluster_row(cluster: dict[str, Any]) -> list[Text]:
    decision = cluster.get("decision") or {}
    words = f"{decision['action']}: {decision['why']}" if decision else "no sweep yet"
    if decision.get("dry_run"):
        words = f"dry run, {words}"
    words = one_line(" ".join([words, *(f"[!] {finding}" for finding in decision.get("findings", ()))]))
    extent = f"{cluster['min_nodes']}-{cluster['max_nodes']}"
    return [
        Text(cluster["name"]),
        Text(", ".join(filter(None, (cluster.get("vm_size"), str(cluster.get("tier") or "").replace("_", " "))))),
        Text(str(cluster["nodes"])),
        Text(str(cluster["busy_nodes"])),
        Text(extent),
        Text(words),
    ]


def _queue_row(item: tuple[str, dict[str, int]]) -> list[Text]:
    name, counts = item
    return [Text(name), Text(str(counts["messages"])), Text(str(counts["poison"]), "red" if counts["poison"] else "")]


def _poison(messages: dict[str, list[str]]) -> RenderableType:
    lines = [Text(f"  {queue}: {text[:500]}", "red") for queue, texts in messages.items() for text in texts]
    return Group(Text("Poison messages", "bold"), *(lines or [Text("  none", "dim")]))


def _state(record: dict[str, Any]) -> Text:
    return Text(record["state"], STYLES.get(record["state"], ""))


def clock(moment: str | None) -> str:
    """A moment as the clock on the wall shows it, with the day if that is not today."""
    if not moment:
        return ""
    at, today = datetime.fromisoformat(moment).astimezone(), datetime.now().astimezone().date()
    return f"{at:%H:%M:%S}" if at.date() == today else f"{at:%Y-%m-%d %H:%M}"
