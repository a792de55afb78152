"""Tables of runs: the list, one run with history, and the result of a run."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType

from ..api import phases, run_list
from ..session import program
from ..terminal_text import Text, one_line
from . import costs, people, plot, usage
from .processes import stack_commands
from .steps import graph
from .tables import begins, clock, facts_table, grid, metric, state_text, titled_table

QUOTED_LINES = 3  # of a diagnosis
MOST_WHY = 90  # characters
_FOLDERS = re.compile(r"/(?:[\w.@+-]+/){3,}")


def many(rows: list[dict[str, Any]], note: str = "") -> RenderableType:
    names = run_list.differing(rows)  # of each kind of training
    labels = list(dict.fromkeys(label for run in rows for label in run.get("listed") or {}))
    columns = [
        "run",
        "state",
        "data",
        "metric",
        "took",
        "cost",
        "used",
        *map(str.lower, labels),
        "parameters",
        "began",
        "why",
    ]
    return titled_table(
        "Runs", note, rows, lambda run: _run_row(run, names[run.get("experiment", "")], labels), columns
    )


def one(run: dict[str, Any], used: dict[str, Any] | None = None) -> RenderableType:
    """Return everything about one run: facts, notes, audit, history, members, steps, trials, and the reason of a bad
    end. `used` is the usage of the run's nodes.
    """
    parts: list[RenderableType] = [
        Text(run["run"], "bold"),
        facts_table(_facts(run) | usage.facts(used)),
        *_notes(run),
        *_audit(run),
        Text(),
        _history(run),
    ]
    if run.get("elastic"):
        parts += [Text(), members(run["elastic"], {each["name"]: each["summary"] for each in ailments(run)})]
    if run.get("steps"):
        parts += [Text(), graph(run["steps"])]
    if run.get("trial_runs"):
        parts += [Text(), many(run["trial_runs"], "the trials, newest first")]
    return Group(*parts, *_reason(run))


def _facts(run: dict[str, Any]) -> dict[str, Text]:
    times = phases.spent(run, datetime.now(UTC))
    return {
        **_diagnosis(run),
        **_sick(run),
        "state": state_text(run),
        "drop": Text(_data_of(run)),
        **_trained_on(run),
        **_data_check(run),
        "experiment": Text(run["experiment"]),
        **({} if run.get("sweep") else {"cluster": Text(f"{run['cluster']}, {node_words(run)}")}),
        "owner": Text(people.owner(run)),
        "parameters": parameters(run),
        **({"tags": Text(tags(run))} if run.get("tags") else {}),
        **_sweep(run),
        **_canceled(run),
        **({"waits for": Text(_waiting(run), "yellow")} if run.get("waiting") else {}),
        **date(run),
        **_removed(run),
        "attempts": Text(str(run.get("attempts", ""))),
        "code": Text(_code(run)),
        "environment": Text(run.get("environment") or ("of each step" if run.get("steps") else "not resolved yet")),
        **{label.lower(): Text(one_line(text)) for label, text in (run.get("labeled") or {}).items()},
        "output": Text(run.get("output") or "none yet"),
        _metrics_label(run): metrics(run),
        **({"began with": Text(f"the model of {one_line(run['from_run'])}")} if run.get("from_run") else {}),
        "cost": Text(costs.of_run(run)),
        "phases": Text(", ".join(f"{key} {phases.duration(times[key])}" for key in phases.PHASES if key in times)),
    }


def _data_check(run: dict[str, Any]) -> dict[str, Text]:
    """Return the warnings about the run's data."""
    said = run.get("data_check") or {}
    sentences = [one_line(each) for each in (*said.get("refusals", ()), *said.get("warnings", ()))]
    return {"data warnings": Text("\n".join(sentences), "yellow")} if sentences else {}


def _diagnosis(run: dict[str, Any]) -> dict[str, Text]:
    """Return the facts about a failure: the cause, the evidence in the log, and the advice."""
    found = run.get("diagnosis")
    if not found:
        return {}
    quotes = [_quoted(quote) for quote in found["evidence"][:QUOTED_LINES]]
    return {"cause": Text("\n".join([one_line(found["summary"]), *quotes, *_steps(found["advice"])]))}


def _sick(run: dict[str, Any]) -> dict[str, Text]:
    """Return the problems of a running run, with the evidence and what to do."""
    lines = [
        line
        for each in ailments(run)
        for line in (
            one_line(each["summary"]),
            *(f"  {one_line(evidence)}" for evidence in each["evidence"][:QUOTED_LINES]),
            *_steps([*each["advice"], *(stack_commands(run["run"]) if each["cause"] == "deadlock" else ())]),
        )
    ]
    return {"sick": Text("\n".join(lines), "red")} if lines else {}


def _steps(advice: list[str]) -> list[str]:
    """Return the steps to take, with the commands as this user types them."""
    return [f"- {one_line(step).replace('python3 trainyard.py', program())}" for step in advice]


def ailments(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings of the last check of a running run; empty for another run."""
    found = (run.get("health") or {}).get("ailments") or []
    return list(found) if run["state"] == "running" else []


def _quoted(quote: dict[str, Any]) -> str:
    rank = f"rank {quote['rank']}, " if quote["rank"] is not None else ""
    return f"  {rank}line {quote['number'] or '?'}: {one_line(quote['text'])}"


def date(run: dict[str, Any]) -> dict[str, Text]:
    """Return the facts about a deadline: the time, the progress, the reason for the present nodes, and the expected
    cost. Empty without a deadline.
    """
    its = run.get("date")
    if not its:
        return {}
    least = costs.share(its["line_share"])
    done = f", done {costs.share(its['done_share'])} (at least {least} keeps it)" if its["done_share"] else ""
    then = f", at {clock(its['expected_done_at'])} on dedicated nodes from now" if its["expected_done_at"] else ""
    style = "red" if its["late_since"] else "yellow" if its["holds"] == "dedicated" else "green"
    expected = f"about {costs.dollars(its['cost_expected'])}, {costs.dollars(its['cost_at_best'])} at best"
    low = [its["low_cluster"], *its["further_low_clusters"]]
    return {
        "done by": Text(f"{clock(its['done_by'])}{done}{then}"),
        "nodes": Text(one_line(its["holds_why"]), style),
        "clusters": Text(", ".join([*low, f"{its['dedicated_cluster']} (dedicated)"])),
        "expected cost": Text(f"{expected}, {costs.dollars(its['cost_at_worst'])} at worst"),
    }


def _canceled(run: dict[str, Any]) -> dict[str, Text]:
    """Return the canceling person; empty without a recorded person."""
    who = people.known(run.get("canceled_by") or "", run.get("canceled_by_id") or "")
    return {"canceled by": Text(who)} if who else {}


def _sweep(run: dict[str, Any]) -> dict[str, Text]:
    """Return the facts about a sweep's trials, or the sweep that the run is a trial of."""
    sweep, trial = run.get("sweep"), run.get("trial")
    if not sweep:
        return {"trial of": Text(trial["sweep"])} if trial else {}
    found = sweep["best_trial"]
    of_most = f"at most {most}, " if (most := sweep.get("most_trials")) else ""
    best = f"{found}, its best value is {sweep['best_value']:g}" if found else "none yet"
    standing = {
        "trials": Text(f"{of_most}{sweep['trials']} started, {sweep['trials_ended']} ended"),
        "best trial": Text(best),
    }
    if sweep.get("early_values"):
        standing["early values"] = Text(sweep["early_values"])
    return standing | ({"no more begin": Text(sweep["sweep_closing"])} if sweep["sweep_closing"] else {})


def _metrics_label(run: dict[str, Any]) -> str:
    """Return the label of the metrics. A sweep's archive is that of its best trial, whose saved model may have a
    worse value than the trial's best.
    """
    return "metrics of the best trial's model" if run.get("sweep") else "metrics"


def _removed(run: dict[str, Any]) -> dict[str, Text]:
    """Return when, and by whom, the deletion of the run's files was requested."""
    if not run.get("removed_at"):
        return {}
    who = people.known(run.get("removed_by") or "", run.get("removed_by_id") or "")
    return {
        "deleted": Text(f"its files were deleted, {clock(run['removed_at'])}{f', by {who}' if who else ''}", "yellow")
    }


def result(run: dict[str, Any]) -> RenderableType:
    """Return the result of a run that was followed: final state, metrics, output, and the commands to use next."""
    name, good = run["run"], run["state"] == "completed"
    heading = Text.assemble((f"{name} ", "bold"), state_text(run))
    facts = {"metrics": metrics(run), "output": Text(run.get("output") or "none")}
    fetch = Text(f"{program()} fetch {name}" if good else f"{program()} fetch {name} --only logs")
    logged = (run.get("metrics") or {}).get("last")
    see = "show" if not good else "metrics" if logged else "logs"
    facts |= {"fetch it": fetch, "see it": Text(f"{program()} {see} {name}")}
    return Group(Text(), heading, *_reason(run), facts_table(facts))


def _brief(why: str) -> str:
    """Shorten a reason for a table; `show` prints the whole reason. Folders of long paths are replaced by `...`."""
    short = _FOLDERS.sub("/.../", why)
    return short if len(short) <= MOST_WHY else f"{short[: MOST_WHY - 3]}..."


def _run_row(run: dict[str, Any], parameters: list[str], labels: list[str]) -> list[Text]:
    """Return a row of the table. `parameters` are the differing parameters of the experiment's runs in the table, and
    `labels` the columns added by the deployment.
    """
    archived = run.get("archived_at")
    why = run.get("cause") or (run.get("reason") or "").partition("\n")[0]
    if found := run.get("diagnosis"):
        why = f"{found['cause']}: {why}"
    elif sick := ailments(run):
        why = f"{sick[0]['cause']}: {sick[0]['summary']}"
    why = why or (f"archived {clock(archived)}" if archived else "") or _waiting(run)
    took, cost, values = run.get("duration_seconds"), run_list.cost_of(run), run.get("parameters") or {}
    listed = run.get("listed") or {}
    return [
        Text(run["run"]),
        state_text(run),
        Text(one_line(run.get("drop") or "")),
        Text(_best(run)),
        Text(phases.duration(took) if took is not None else ""),
        Text(costs.dollars(cost) if cost is not None else ""),
        Text(usage.brief(run)),
        *(Text(one_line(listed.get(label, ""))) for label in labels),
        Text(one_line(" ".join(f"{name}={number(values[name])}" for name in parameters if name in values))),
        Text(clock(run.get("created_at")), "dim"),
        Text(_brief(one_line(why))),
    ]


def _best(run: dict[str, Any]) -> str:
    best = run.get("best")
    if not best:
        return ""
    return headline(best["metric"], best.get("of_model", best["value"]), best["value"], best.get("step"))


def headline(name: str, of_model: float, best: float, step: float | None) -> str:
    """Return a metric's value for the saved model, and the best value of the training if it differs."""
    at = f" at step {step:g}" if step is not None else ""
    seen = f" (best {metric(name, best)}{at})" if best != of_model else ""
    return f"{name} {metric(name, of_model)}{seen}"


def _data_of(run: dict[str, Any]) -> str:
    """Return the drop and the generation behind the run."""
    generation = run.get("generation") or 0
    return one_line(run.get("drop") or "none") + (f", generation {generation}" if generation else "")


def _trained_on(run: dict[str, Any]) -> dict[str, Text]:
    """Return the fact about the trained data: recorded, other, or unknown. Empty until known."""
    words = {"recorded": "the recorded data", "other": "other data", "unknown": "can't be said"}
    if not (known := run.get("trained_on")):
        return {}
    note = f". {one_line(run.get('data_note') or '')}" if known != "recorded" else ""
    return {"trained on": Text(f"{words[known]}{note}", "" if known == "recorded" else "yellow")}


def _code(run: dict[str, Any]) -> str:
    """Return the digest of the code and the git commit of its origin."""
    git = run.get("git")
    words = [run.get("code") or "its own"]
    if git:
        where = f" on {one_line(git['branch'])}" if git["branch"] else ""
        words.append(f"commit {one_line(git['commit'])[:12]}{where}{', with changes since' if git['dirty'] else ''}")
    return ", ".join(words)


def _waiting(run: dict[str, Any]) -> str:
    """Return the reason for a run's wait, the wait's begin, and the probable end; '' for a run without a wait."""
    waiting = run.get("waiting")
    if not waiting:
        return ""
    since = f" Since {clock(waiting['since'])}." if waiting["since"] else ""
    expected = begins(waiting.get("expected_at"), waiting.get("after", ()), datetime.now(UTC))
    return one_line(f"{waiting['why']}{since}{f' Expected start: {expected}.' if expected else ''}")


def nodes(run: dict[str, Any]) -> str:
    """Return the number of nodes as text; for an elastic run, `1 to 4`, the minimum and the maximum."""
    elastic = run.get("elastic")
    return f"{elastic['min_nodes']} to {run['nodes']}" if elastic else str(run["nodes"])


def node_words(run: dict[str, Any]) -> str:
    """Return the number of nodes in words: `1 node`, `2 nodes`, `1 to 4 nodes`."""
    return "1 node" if (count := nodes(run)) == "1" else f"{count} nodes"


def tags(run: dict[str, Any]) -> str:
    return ", ".join(one_line(f"{name}={value}") for name, value in sorted((run.get("tags") or {}).items()))


def metrics(run: dict[str, Any]) -> Text:
    """Return the saved model's metrics, metrics of training data last, each with the best value of the training if
    it differs.
    """
    its = run.get("metrics") or {}
    last, best, steps = its.get("of_model") or {}, its.get("best") or {}, its.get("best_steps") or {}
    names = sorted(plot.telling([name for name in last if name not in ("time", "step")]), reverse=True)
    names.sort(key=lambda name: name.startswith(("train_", "train/")))
    words = [headline(name, last[name], best.get(name, last[name]), steps.get(name)) for name in names]
    if not words:
        none = "none" if run.get("archived_at") else "known at the end; `metrics` has what is there"
        return Text(none, "dim")
    last_values = "" if its["by_trainer"] else " (last values: the trainer did not say which the saved model has)"
    return Text(", ".join(words) + last_values, "green")


def parameters(run: dict[str, Any]) -> Text:
    """Return the parameters of the run, including parameters with their default value."""
    words = [f"{name}={number(value)}" for name, value in (run.get("parameters") or {}).items()]
    return Text(" ".join(words) or "none", "" if words else "dim")


def number(value: Any) -> str:
    """Format a parameter's value as typed."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _notes(run: dict[str, Any]) -> list[RenderableType]:
    """Return the notes on the run, with their authors and times."""
    if not (notes := run.get("notes")):
        return []
    table = grid()
    for note in notes:
        who = one_line(note["by"]) or "somebody"
        table.add_row(Text(f"  {clock(note['at'])}", "dim"), Text(who, "dim"), Text(one_line(note["text"])))
    return [Text(), Text("Notes", "bold"), table]


def _audit(run: dict[str, Any]) -> list[RenderableType]:
    """Return the actions of people on the run after it was made, with names and times. Evictions are in the history
    instead.
    """
    entries = [entry for entry in run.get("audit") or [] if not _is_eviction(entry)]  # evictions are in the history
    if not entries:
        return []
    table = grid()
    for entry in entries:
        who = people.known(entry["by"], entry["by_id"]) or "somebody"
        table.add_row(Text(f"  {clock(entry['at'])}", "dim"), Text(who, "dim"), Text(one_line(entry["what"])))
    return [Text(), Text("What people did", "bold"), table]


def members(elastic: dict[str, Any], lagging: dict[str, str]) -> RenderableType:
    """Return the members of an elastic run, the used and allowed resubmissions, and the number of nodes over time.

    `lagging` says by `member N` what is wrong with running members.
    """
    used, deadline = f"{elastic['resubmitted']} of {elastic['resubmissions']}", clock(elastic["deadline"])
    table = grid()
    for member in elastic["members"]:
        job, late = f"m{member['member']}-{member['attempt']}", lagging.get(f"member {member['member']}", "")
        table.add_row(
            Text(f"  {clock(member['at'])}", "dim"),
            Text(job),
            state_text(member),
            Text(phases.duration(member["seconds"]) if member.get("seconds") else "", "dim"),
            Text(costs.dollars(member["cost"]) if member.get("cost") is not None else "", "dim"),
            Text(one_line(late), "red") if late else Text(member["why"], "dim"),
        )
    heading = Text.assemble(("Members", "bold"), (f"  {used} resubmissions used, deadline {deadline}", "dim"))
    steps = [f"{clock(size['at'])} {size['nodes']}" for size in elastic["sizes"]]
    line = Text("  nodes over time: " + (", ".join(steps) or "none yet"), "dim")
    return Group(heading, table, line)


def _history(run: dict[str, Any]) -> RenderableType:
    """Return the run's states in order of time, and for an elastic run also the losses of its members and the
    requested evictions.
    """
    lines = [(moment["at"], state_text(moment), moment.get("why") or "") for moment in run.get("history") or []]
    if elastic := run.get("elastic"):
        lost = Text("lost", "yellow")
        names = [(loss, one_line(loss["job"].removeprefix(f"{run['run']}-"))) for loss in elastic.get("losses", ())]
        lines += [(loss["at"], lost, f"{name}: {loss['why']}") for loss, name in names]
        lines += [
            (entry["at"], Text("asked"), _asked(entry)) for entry in run.get("audit") or [] if _is_eviction(entry)
        ]
    table = grid()
    for at, what, why in sorted(lines, key=lambda line: datetime.fromisoformat(line[0])):
        table.add_row(Text(f"  {clock(at)}", "dim"), what, Text(why.partition("\n")[0], "dim"))
    return Group(Text("History", "bold"), table)


def _is_eviction(entry: dict[str, Any]) -> bool:
    return bool(entry.get("deed") == "evicted")  # an older deployment sends no deed


def _asked(entry: dict[str, Any]) -> str:
    who = people.known(entry["by"], entry["by_id"]) or "somebody"
    return f"{one_line(entry['what'])}, by {who}"


def _reason(run: dict[str, Any]) -> list[RenderableType]:
    """Return the reason why the run ended badly, including the last lines of its log."""
    return [Text(), Text(run["reason"].rstrip(), "red"), Text()] if run.get("reason") else []
