"""Records as table rows and back. Every field is a column of its own, readable in any storage browser.

Times are ISO 8601 in UTC with microseconds, None is '', mappings are JSON. A column holds at most 32,768 UTF-16 units,
so a long `request` goes on in the columns request_2, request_3, ... up to an empty one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from shared.clusters.model import Decision
from shared.drops.model import Drop, DropKey, DropState
from shared.kernel.errors import BadInput
from shared.runs.model import Elastic, Member, Moment, Run, RunState, Size

Row = dict[str, Any]

_LIMIT = 32_000  # characters of JSON in one column; JSON is written in ASCII, so these are UTF-16 units
_REQUEST_LIMIT = 10 * _LIMIT  # a row may take 1 MiB, a transaction of two copies 4 MiB
_TEXT_LIMIT = 8_000  # characters of a sentence for people; what is longer is cut
_HISTORY_LIMIT = 30_000  # characters, all of them ASCII
_WHY_LIMIT = 1_000
_MEMBER_WHY_LIMIT = 160  # of a hundred members: half a column
RUN_COLUMNS = [f.name for f in fields(Run) if f.name != "request"]  # what a list of runs is made of


def drop_row(drop: Drop) -> Row:
    return {"route": drop.key.route, "name": drop.key.name, **_columns(drop, skip="key")}


def row_drop(row: Mapping[str, Any]) -> Drop:
    return Drop(
        key=DropKey(row["route"], row["name"]),
        state=DropState(row["state"]),
        token=row["token"],
        opened_at=_time(row["opened_at"]),
        generation=_int(row["generation"]),
        fingerprint=row["fingerprint"],
        run=row["run"],
        request=_request(row),
        blobs=_int(row["blobs"]),
        bytes=_int(row["bytes"]),
        sealed_at=_time_or_none(row["sealed_at"]),
        newest=_time_or_none(row["newest"]),
        looked_at=_time_or_none(row["looked_at"]),
        listed=row["listed"],
        why=row["why"],
        code=row["code"],
    )


def run_row(run: Run) -> Row:
    return _columns(run)


def run_columns(changes: Mapping[str, Any]) -> Row:
    """The columns of some fields of Run. Raises TypeError for a name that is no field."""
    if unknown := set(changes) - {f.name for f in fields(Run)}:
        raise TypeError(f"Run has no field {', '.join(sorted(unknown))}")
    return {column: text for name, value in changes.items() for column, text in _encode(name, value)}


def row_run(row: Mapping[str, Any]) -> Run:
    return Run(
        name=row["name"],
        drop=row["drop"],
        route=row["route"],
        fingerprint=row["fingerprint"],
        experiment=row["experiment"],
        cluster=row["cluster"],
        nodes=_int(row["nodes"]),
        created_at=_time(row["created_at"]),
        request=_request(row),
        state=RunState(row["state"]),
        history=tuple(_moment(*moment) for moment in json.loads(row["history"])),
        attempts=_int(row["attempts"]),
        reason=row["reason"],
        job=row["job"],
        code=row["code"],
        environment=row["environment"],
        output=row["output"],
        last_metrics=json.loads(row["last_metrics"]),
        best_metrics=json.loads(row["best_metrics"]),
        archived_at=_time_or_none(row["archived_at"]),
        # Rows that are older than these columns don't have them.
        asked=row.get("asked", ""),
        retry_of=row.get("retry_of", ""),
        cancel_asked_at=_time_or_none(row.get("cancel_asked_at", "")),
        elastic=_elastic(row.get("elastic", "")),
    )


def decision_row(decision: Decision) -> Row:
    return _columns(decision)


def row_decision(row: Mapping[str, Any]) -> Decision:
    return Decision(
        cluster=row["cluster"],
        action=row["action"],
        code=row["code"],
        why=row["why"],
        at=_time(row["at"]),
        idle_since=_time_or_none(row["idle_since"]),
    )


def _columns(record: Drop | Run | Decision, skip: str = "") -> Row:
    values = ((f.name, getattr(record, f.name)) for f in fields(record) if f.name != skip)
    return {column: text for name, value in values for column, text in _encode(name, value)}


def _encode(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if name == "request":
        yield from _request_columns(value)
    else:
        yield name, _column(name, value)


def _column(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, int):
        return (value, "Edm.Int64")  # the SDK takes a bare int for 32 bits
    if isinstance(value, dict):
        return _json(name, value)
    if isinstance(value, tuple):
        return _history(value)
    if isinstance(value, Elastic):
        return _json(name, _elastic_object(value))
    text = str(value)
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]} (cut)"


def _json(name: str, value: dict[str, Any], limit: int = _LIMIT) -> str:
    text = json.dumps(value)
    if len(text) > limit:
        raise BadInput(f"{name} takes {len(text)} characters as JSON; the record has room for {limit}.")
    return text


def _request_columns(request: dict[str, Any]) -> Iterator[tuple[str, str]]:
    text = _json("request", request, _REQUEST_LIMIT)
    parts = [text[start : start + _LIMIT] for start in range(0, len(text), _LIMIT)]
    for number, part in enumerate([*parts, ""], start=1):
        yield _part(number), part


def _request(row: Mapping[str, Any]) -> dict[str, Any]:
    parts = (row.get(_part(number), "") for number in itertools.count(1))
    request: dict[str, Any] = json.loads("".join(itertools.takewhile(bool, parts)))
    return request


def _part(number: int) -> str:
    return "request" if number == 1 else f"request_{number}"


def _history(moments: tuple[Moment, ...]) -> str:
    """The moments as JSON: the first and the last ones, if all of them would be too long for a column."""
    texts = [json.dumps([m.state, _iso(m.at), m.why[:_WHY_LIMIT]]) for m in moments]
    while len(texts) > 2 and sum(map(len, texts)) + 2 * len(texts) > _HISTORY_LIMIT:
        del texts[1]
    return f"[{', '.join(texts)}]"


def _moment(state: str, at: str, why: str) -> Moment:
    return Moment(RunState(state), _time(at), why)


def _elastic_object(elastic: Elastic) -> dict[str, Any]:
    return {
        "min_nodes": elastic.min_nodes,
        "resubmissions": elastic.resubmissions,
        "deadline": _iso(elastic.deadline),
        "members": [[m.index, m.attempt, m.state, _iso(m.at), m.why[:_MEMBER_WHY_LIMIT]] for m in elastic.members],
        "sizes": [[_iso(size.at), size.nodes] for size in elastic.sizes],
    }


def _elastic(text: str) -> Elastic | None:
    if not text:
        return None
    row = json.loads(text)
    members = tuple(Member(i, a, RunState(state), _time(at), why) for i, a, state, at, why in row["members"])
    sizes = tuple(Size(_time(at), nodes) for at, nodes in row["sizes"])
    return Elastic(row["min_nodes"], row["resubmissions"], _time(row["deadline"]), members, sizes)


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time_or_none(text: str) -> datetime | None:
    return _time(text) if text else None


def _int(value: Any) -> int:
    return int(getattr(value, "value", value))
