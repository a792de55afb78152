"""Runs, drops, clusters, decisions and leases as the HTTP API returns them: response models, and JSON from records.

The models are generated from the records' declarations: a new field of a record is a field of the answer, unless this
module leaves it out. Times are ISO 8601 in UTC. Tests check every real answer against the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import fields

from shared.api.source import git
from shared.clusters import lease_model
from shared.clusters import model as clusters
from shared.clusters import waiting as waits
from shared.drops import model as drops
from shared.kernel.encode import Json, model_of, plain, plain_fields, plain_part
from shared.runs import model as runs
from shared.runs import old_sentences
from shared.runs.features import parts
from shared.runs.model import RunState
from shared.runs.views import summary
from shared.runs.views.labels import labeled_values, listed_values


class Best(Struct):
    """A run's headline metric: the best value in training, and the value of the saved model."""

    metric: str
    value: Annotated[float, Meta(description="The best value that the training saw.")]
    step: Annotated[float | None, Meta(description="The step of the best value; null if the rows have no step.")]
    of_model: Annotated[float, Meta(description="The value of the saved model.")]
    by: Annotated[
        str, Meta(description="Source of `of_model`: the trainer, or the last value if the trainer does not report it.")
    ]


class MomentAnswer(Struct):
    state: RunState
    at: datetime
    why: str
    failure: Annotated[str, Meta(description="Why a job failed, where that led to this step; see the run's failure.")]


class Metrics(Struct):
    last: dict[str, float]
    best: dict[str, float]
    best_steps: Annotated[dict[str, float], Meta(description="The step of each best value, where it is known.")]
    of_model: Annotated[
        dict[str, float],
        Meta(description="Values of the saved model: as the trainer reported them, otherwise the last values."),
    ]
    by_trainer: Annotated[list[str], Meta(description="The metrics of the saved model that the trainer reported.")]


class NoteAnswer(Struct):
    text: str
    by: Annotated[str, Meta(description="The author; empty if unknown.")]
    by_id: Annotated[str, Meta(description="Object id of this person in Entra ID; empty with keys.")]
    at: datetime


class AuditedAnswer(Struct):
    """A person's action on a run after its creation."""

    what: str
    by: Annotated[str, Meta(description="The person who did it; empty if unknown.")]
    by_id: Annotated[str, Meta(description="Object id of this person in Entra ID; empty with keys.")]
    at: datetime
    deed: Annotated[str, Meta(description="tags or evicted: what was done.")]


class Git(Struct):
    """The origin of the job's code, as reported by the submitter."""

    commit: str
    dirty: Annotated[bool, Meta(description="Whether files were changed since that commit.")]
    branch: str
    repository: str


class CostAnswer(Struct):
    """The cost of a run's nodes until `at`, in dollars. `unpriced`: the price of some node seconds is unknown."""

    training: float
    allocation: float
    idle: float
    node_seconds: float
    at: datetime
    unpriced: bool


_RUN_SKIPS = (
    "name",
    "request",
    "asked",
    "reads",
    "last_metrics",
    "best_metrics",
    "best_steps",
    "saved_metrics",
    "archive_tries",
    "moves_to",
    "moves_why",
    "places",
)
_DROP_SKIPS = ("key", "token", "request", "newest", "looked_at", "listed")
_SUMMARY: dict[str, Any] = {
    "best": Annotated[Best | None, Meta(description="The run's headline metric.")],
    "duration_seconds": Annotated[
        float | None, Meta(description="Seconds since the start of its first node; null before that.")
    ],
    "cause": Annotated[str, Meta(description="Why it failed or was canceled, in one sentence.")],
    "reason": Annotated[str, Meta(description="The full reason, with the end of the log that explains a failure.")],
    "failure": Annotated[
        str, Meta(description="Why its job failed: lost_nodes, process, image, cluster or other; empty if unknown.")
    ],
}
_Labeled = Annotated[dict[str, str], Meta(description="Further facts of the run, by the label that people see.")]
_Listed = Annotated[dict[str, str], Meta(description="Those of them that lists have columns for.")]
_Git = Annotated[Git | None, Meta(description="Null if unknown.")]
WaitingAnswer = model_of(__name__, waits.Waiting, {})
_Waiting: Any = Annotated[WaitingAnswer | None, Meta(description="Why it has not started; null once it has.")]
_FEATURES = {
    part.name: part.view.model if part.view else model_of(__name__, part.kind, {}, part.hidden) | None
    for part in parts()
}
RunAnswer = model_of(
    __name__,
    runs.Run,
    {
        "run": str,
        "waiting": _Waiting,
        "history": list[MomentAnswer],
        "notes": list[NoteAnswer],
        "audit": list[AuditedAnswer],
        "metrics": Metrics,
        **_SUMMARY,
        "cost": CostAnswer | None,
        "git": _Git,
        "labeled": _Labeled,
        "listed": _Listed,
        **_FEATURES,
    },
    _RUN_SKIPS,
)
_LISTED = (
    *("run", "state", "drop", "experiment", "cluster", "nodes", "owner", "created_at", "archived_at"),
    *("duration_seconds", "best", "parameters", "tags"),
)


_LISTED_DROP = (
    "drop",
    "state",
    "run",
    "owner",
    "generation",
    "blobs",
    "files",
    "bytes",
    "opened_at",
    "sealed_at",
    "why",
)


def _listed_model(name: str, model: Any, shown: tuple[str, ...], noun: str) -> Any:
    required = [(each.name, each.type) for each in fields(model) if each.name in shown]
    others = [(each.name, each.type | UnsetType, UNSET) for each in fields(model) if each.name not in shown]
    text = f"A {noun} in a list. The fields that are not required come with `details`."
    return defstruct(name, [*required, *others], module=__name__, namespace={"__doc__": text})


DropAnswer = model_of(__name__, drops.Drop, {"drop": str}, _DROP_SKIPS)
ListedRun = _listed_model("ListedRun", RunAnswer, _LISTED, "run")
ListedDrop = _listed_model("ListedDrop", DropAnswer, _LISTED_DROP, "drop")
DecisionAnswer = model_of(__name__, clusters.Decision, {}, ("cluster",))


class WaitingRun(Struct):
    run: str
    since: Annotated[datetime, Meta(description="When it was made.")]
    why: str
    expected_at: Annotated[datetime | None, Meta(description="When it will probably start; null if unknown.")]
    after: Annotated[list[str], Meta(description="Runs of unknown length of which it needs nodes.")]


def waiting_run(record: runs.Run, why: waits.Waiting | None) -> Json:
    said = why or waits.Waiting("", "")
    words = {name: plain(getattr(said, name)) for name in ("why", "expected_at", "after")}
    return {"run": record.name, "since": plain(record.created_at), **words}


_ALSO = {
    "decision": DecisionAnswer | None,
    "waiting": Annotated[
        list[WaitingRun], Meta(description="Up to 50 runs that wait for its nodes, the longest wait first.")
    ],
    "waiting_runs": Annotated[int, Meta(description="How many runs wait for its nodes.")],
}
ClusterAnswer = model_of(__name__, clusters.Cluster, _ALSO)
LeaseAnswer = model_of(__name__, lease_model.Lease, {"lease": str, "active": bool}, ("id",))


def drop(record: drops.Drop) -> Json:
    return {"drop": str(record.key), **plain_fields(record, _DROP_SKIPS)}


def listed_drop(record: drops.Drop) -> Json:
    """Return the fields that a list of drops shows."""
    return {name: value for name, value in drop(record).items() if name in _LISTED_DROP}


def run(record: runs.Run, waiting: waits.Waiting | None = None) -> Json:
    return {
        "run": record.name,
        "waiting": waiting and plain_fields(waiting),
        **plain_fields(record, (*_RUN_SKIPS, "history", "notes", "audit", "cost", "failure")),
        **{part.name: plain_part(record, part) for part in parts()},
        "cost": record.money.cost
        and {f: plain(getattr(record.money.cost, f)) for f in record.money.cost.__struct_fields__},
        "metrics": _metrics(record.measured),
        **_summary(record),
        "git": git(record.asked.request),
        "labeled": labeled_values(record),
        "listed": listed_values(record),
        "notes": [{"text": n.text, "by": n.by, "by_id": n.by_id, "at": plain(n.at)} for n in record.people.notes],
        "audit": [_audited(entry) for entry in record.people.audit],
        "history": [
            {"state": m.state, "at": plain(m.at), "why": m.why, "failure": str(m.failure or "")}
            for m in record.progress.history
        ],
    }


def listed(record: runs.Run, now: datetime) -> Json:
    """Return the fields of a run for lists."""
    best = summary.best_metric(record)
    return {
        "run": record.name,
        "state": str(record.progress.state),
        "drop": record.asked.drop,
        "experiment": record.asked.experiment,
        "cluster": record.asked.cluster,
        "nodes": record.asked.nodes,
        "owner": record.people.owner,
        "created_at": record.created_at.isoformat(),
        "archived_at": plain(record.archive.at),
        "duration_seconds": summary.duration_seconds(record, now),
        "best": best and _best(record.measured, *best),
        "parameters": record.asked.parameters,
        "tags": record.people.tags,
    }


def _metrics(measured: runs.Measured) -> Json:
    return {
        "last": measured.last,
        "best": measured.best,
        "best_steps": measured.best_steps,
        "of_model": measured.of_model,
        "by_trainer": sorted(measured.saved),
    }


def _best(measured: runs.Measured, metric: str, value: float) -> Json:
    of_model = measured.of_model.get(metric, value)
    return {
        "metric": metric,
        "value": value,
        "step": measured.best_steps.get(metric),
        "of_model": of_model,
        "by": measured.said_by(metric),
    }


def _audited(entry: runs.Audited) -> Json:
    deed = entry.deed or old_sentences.deed(entry.what)
    return {"what": entry.what, "by": entry.by, "by_id": entry.by_id, "at": plain(entry.at), "deed": str(deed)}


def _summary(record: runs.Run) -> Json:
    best = summary.best_metric(record)
    return {
        "best": best and _best(record.measured, *best),
        "duration_seconds": summary.duration_seconds(record, datetime.now(UTC)),
        "cause": summary.cause(record),
        "reason": summary.reason_with_log(record),
        "failure": str(record.progress.failure.code) if record.progress.failure else "",
    }


def cluster(
    record: clusters.Cluster, latest: clusters.Decision | None, waiting: Sequence[Json], waiting_runs: int
) -> Json:
    of_ours = {"decision": latest and decision(latest), "waiting": list(waiting), "waiting_runs": waiting_runs}
    return {**plain_fields(record), **of_ours}


def decision(record: clusters.Decision) -> Json:
    return plain_fields(record, ("cluster",))


def lease(record: lease_model.Lease, now: datetime) -> Json:
    return {"lease": record.id, **plain_fields(record, ("id",)), "active": record.holds(now)}
