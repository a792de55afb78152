"""Policy decisions, as values."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.clusters.decide import Need, judge_cluster
from shared.clusters.model import Cluster, Decision
from shared.drops.decide import DropVerdict, OnUpload, VerdictKind, judge_drop, on_upload, seconds_to_first_check
from shared.drops.model import Drop, DropState
from shared.jobs.route import Route
from shared.kernel.drop_key import DropKey
from shared.kernel.storage import Blob
from shared.runs.content import survey
from shared.runs.decide import HISTORY_LIMIT, Folded, advance, failing_log, fold_metrics
from shared.runs.model import FINAL, TRANSITIONS, Moment, Run, RunState
from shared.runs.names import run_name
from tests.fakes.parts import changed
from tests.fakes.world import ROUTE

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = DropKey("mnist", "a")
OPEN = Drop(KEY, DropState.OPEN, "t", NOW)
SEALED = replace(
    OPEN, state=DropState.SEALED, generation=1, newest=NOW, looked_at=NOW, fingerprint="old", run="mnist-1", blobs=2
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def judge(drop: Drop, *blobs: tuple[str, float], route: Route = ROUTE) -> DropVerdict:
    """Judge a drop whose blobs are (path, seconds ago)."""
    listed = [Blob(f"{drop.key}/{path}", f"e{age}", 1, "", ago(age)) for path, age in blobs]
    return judge_drop(drop, survey(drop.key, listed), route, NOW)


@pytest.mark.parametrize(
    ("blobs", "verdict", "code"),
    [
        ([("1", 1), ("_SUCCESS", 0)], VerdictKind.SEAL, "marker"),
        ([("1", 9), ("job.yaml", 9)], VerdictKind.SEAL, "job_file"),
        ([("1", 1), ("job.yaml", 9)], VerdictKind.WAIT, "collecting"),
        ([("1", 60)], VerdictKind.SEAL, "quiet"),
        ([("1", 59)], VerdictKind.WAIT, "collecting"),
        ([("sub/_SUCCESS", 1)], VerdictKind.WAIT, "collecting"),
        ([("_SUCCESS", 0)], VerdictKind.REJECT, "empty"),
        ([("a/../b", 99)], VerdictKind.REJECT, "bad_name"),
        ([("a" * 256, 99)], VerdictKind.REJECT, "bad_name"),
        ([("ü" * 127 + "/" + "名" * 80, 99)], VerdictKind.SEAL, "quiet"),
        ([], VerdictKind.FORGET, "gone"),
    ],
)
def test_when_a_drop_closes(blobs: list[tuple[str, float]], verdict: VerdictKind, code: str) -> None:
    """A marker, a settled job file or a quiet period closes a drop; a bad or empty drop is rejected when it closes."""
    judged = judge(OPEN, *blobs)

    assert (judged.verdict, judged.code) == (verdict, code)
    assert judged.why


def test_a_drop_closes_at_the_maximum_wait() -> None:
    """Uploads without a pause don't keep a drop open for ever."""
    assert judge(replace(OPEN, opened_at=ago(600)), ("1", 1)).code == "max_wait"


def test_an_archive_closes_at_once() -> None:
    """A single archive directly in the route's folder needs no quiet period."""
    drop = replace(OPEN, key=DropKey("mnist", "Data.TAR.GZ"))
    seen = survey(drop.key, [Blob(str(drop.key), "e", 1, "", NOW)])

    assert judge_drop(drop, seen, ROUTE, NOW).code == "archive"
    assert seen.single_file


def test_the_next_look_is_when_something_can_change() -> None:
    """The next check is at the end of the quiet period, of the settle time, or of the maximum wait."""
    assert judge(OPEN, ("1", 10)).wait == 50
    assert judge(OPEN, ("1", 1), ("job.yaml", 9)).wait == 2
    assert judge(replace(OPEN, opened_at=ago(595)), ("1", 1)).wait == 5


def test_an_old_marker_closes_no_new_generation() -> None:
    """Files that arrive after a sealing wait for their own marker, or for a quiet period."""
    drop = replace(SEALED, state=DropState.OPEN, newest=ago(100))

    assert judge(drop, ("1", 1), ("_SUCCESS", 100)).verdict is VerdictKind.WAIT
    assert judge(drop, ("1", 1), ("_SUCCESS", 0)).code == "marker"


def test_deletions_alone_are_nothing_new() -> None:
    """A late event after deletions starts no run on the remaining files."""
    drop = replace(SEALED, state=DropState.OPEN, newest=ago(100))

    assert judge(drop, ("1", 100)).verdict is VerdictKind.UNCHANGED
    assert judge(drop, ("1", 200), ("2", 300), ("3", 300)).verdict is VerdictKind.UNCHANGED
    assert judge(drop).verdict is VerdictKind.UNCHANGED


@pytest.mark.parametrize(
    ("drop", "path", "age", "step"),
    [
        (None, "1", 0, OnUpload.OPEN),
        (OPEN, "1", 0, OnUpload.NOTHING),
        (OPEN, "_SUCCESS", 0, OnUpload.LOOK),
        (replace(OPEN, newest=NOW), "_SUCCESS", 0, OnUpload.NOTHING),  # reopened, and checked in 5 s
        (replace(OPEN, newest=NOW), "_SUCCESS", -1, OnUpload.LOOK),
        (SEALED, "1", 1, OnUpload.NOTHING),
        (SEALED, "1", 0, OnUpload.OPEN),
        (SEALED, "1", -1, OnUpload.OPEN),
        (replace(SEALED, state=DropState.SEALING), "1", -1, OnUpload.FINISH),
        (replace(SEALED, state=DropState.REJECTED), "1", -1, OnUpload.OPEN),
    ],
)
def test_what_an_upload_asks_for(drop: Drop | None, path: str, age: float, step: OnUpload) -> None:
    """An upload opens a drop unless the drop is open or the upload is older than the drop's last verdict."""
    assert on_upload(drop, KEY, path, ago(age), ROUTE) is step


def test_a_late_event_opens_a_drop_at_most_once() -> None:
    """An event in the newest blob's own second is late too, if a listing was made well after that second."""
    settled = replace(SEALED, looked_at=ago(-5))

    assert on_upload(settled, KEY, "1", NOW, ROUTE) is OnUpload.NOTHING
    assert on_upload(settled, KEY, "1", ago(-1), ROUTE) is OnUpload.OPEN
    assert seconds_to_first_check(SEALED, "1", NOW, ROUTE) == 5
    assert seconds_to_first_check(SEALED, "1", ago(-1), ROUTE) == 60
    assert seconds_to_first_check(None, "_SUCCESS", NOW, ROUTE) == 0


def test_an_unknown_route_is_rejected_once() -> None:
    """Further uploads to an unknown route write nothing."""
    assert on_upload(None, KEY, "1", NOW, None) is OnUpload.REJECT
    assert on_upload(replace(OPEN, state=DropState.REJECTED), KEY, "1", NOW, None) is OnUpload.NOTHING


@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.integers(0, 9), st.sampled_from("ab")), min_size=1, unique_by=lambda b: b[0]
    )
)
def test_the_fingerprint_tells_contents_apart(blobs: list[tuple[str, int, str]]) -> None:
    """Another name, size or checksum changes the fingerprint; another etag or date of the same bytes does not."""
    listed = [Blob(f"mnist/a/{name}", "e", size, md5) for name, size, md5 in blobs]
    same = [replace(blob, etag="other", last_modified=NOW) for blob in listed]
    other = [replace(listed[0], size=99), *listed[1:]]

    assert survey(KEY, listed).fingerprint == survey(KEY, same).fingerprint
    assert survey(KEY, listed).fingerprint != survey(KEY, other).fingerprint


def test_the_etag_stands_in_for_a_checksum_that_is_not_known() -> None:
    """Without MD5, two writes of a blob count as two contents."""
    first, second = Blob("mnist/a/1", "e1", 1), Blob("mnist/a/1", "e2", 1)

    assert survey(KEY, [first]).fingerprint != survey(KEY, [second]).fingerprint


def test_the_success_marker_is_no_content() -> None:
    """A drop that closed after a quiet period has the same content when its marker arrives later."""
    data, marker = Blob("mnist/a/1", "e1", 1), Blob("mnist/a/_SUCCESS", "e2", 0)

    assert survey(KEY, [data]).fingerprint == survey(KEY, [data, marker]).fingerprint


def test_run_names_suit_azure_ml() -> None:
    """A run's name is a valid job name for any route name, and differs by drop and by content."""
    for route in ("mnist", "Größe 9", "_", "9lives", "x" * 200):
        name = run_name(DropKey(route, "a"), "f")
        assert re.fullmatch("[a-z][a-z0-9-]{2,59}", name)
    assert len({run_name(DropKey("r", d), f) for d, f in product("ab", "fg")}) == 4


RUN = Run.of(
    name="r", drop="mnist/a", route="mnist", fingerprint="f", experiment="e", cluster="c", nodes=2, created_at=NOW
)


@given(st.lists(st.sampled_from(list(RunState)), max_size=30))
def test_states_move_one_way(seen: list[RunState]) -> None:
    """Events in any order cause only transitions of the table, and none leaves a final state."""
    run = RUN
    for state in seen:
        after = advance(run, state, NOW, "why")
        if after is not run:
            assert state in TRANSITIONS[run.progress.state]
            assert run.progress.state not in FINAL
        run = after
    assert [m.state for m in run.progress.history] == [
        m.state for m in run.progress.history if m.state is not RunState.RECEIVED
    ]


def test_a_requeue_costs_an_attempt() -> None:
    """The attempts count how often the job started, whether or not its first queueing was seen."""
    run = RUN
    for state, attempts in [("queued", 1), ("running", 1), ("queued", 2), ("running", 2), ("queued", 3)]:
        run = advance(run, RunState(state), NOW)
        assert run.progress.attempts == attempts
    for first_seen in (RunState.RUNNING, RunState.COMPLETED):
        assert advance(RUN, first_seen, NOW).progress.attempts == 1


def test_history_is_bounded() -> None:
    """A job preempted a thousand times keeps its first and last moments."""
    run = changed(RUN, state=RunState.RUNNING, history=(Moment(RunState.RECEIVED, NOW),) * HISTORY_LIMIT)
    history = advance(run, RunState.QUEUED, NOW).progress.history

    assert len(history) == HISTORY_LIMIT
    assert history[-1].state is RunState.QUEUED


def test_metrics_keep_last_and_best() -> None:
    """The best is the lowest loss and the highest accuracy; values that are not numbers are skipped."""
    rows: list[dict[str, Any]] = [
        {"step": 1, "test_loss": 0.5, "test_accuracy": 0.9, "note": "x", "nan": float("nan")},
        {"step": 2, "test_loss": 0.7, "test_accuracy": 0.8, "flag": True},
    ]
    last, best = {"test_loss": 0.7, "test_accuracy": 0.8}, {"test_loss": 0.5, "test_accuracy": 0.9}
    assert fold_metrics(rows) == Folded(last, best, {"test_loss": 1, "test_accuracy": 1})


def test_the_trainers_goal_says_which_value_was_the_best() -> None:
    """A goal that the trainer declares applies, whatever the metric's name."""
    rows = [{"step": 1, "gap": 0.5, "accuracy": 0.1}, {"step": 2, "gap": 0.7, "accuracy": 0.2}]
    folded = fold_metrics(rows, {"gap": "minimize", "accuracy": "minimize"})
    assert (folded.best, folded.best_steps) == ({"gap": 0.5, "accuracy": 0.1}, {"gap": 1, "accuracy": 1})


def test_the_failing_rank_is_the_one_that_did_not_just_lose_its_peer() -> None:
    """The rank whose own error ended the job is the cause, not the ranks whose connection broke."""
    tails = {
        "std_log_process_0.txt": "Traceback\nRuntimeError: Connection closed by peer",
        "std_log_process_1.txt": "epoch 1\nTraceback\nValueError: images and labels differ",
    }
    assert failing_log(tails, 1) == ("std_log_process_1.txt", "ValueError: images and labels differ")
    assert failing_log({"b": "", "a": "quiet death\n"}, 5) == ("a", "quiet death")
    assert failing_log({}, 5) == ("", "")


CLUSTER = Cluster("c", min_nodes=1, max_nodes=4, idle_seconds=120, nodes=1)


@pytest.mark.parametrize(
    ("cluster", "busy", "idle_for", "action", "code"),
    [
        (CLUSTER, "Run r is queued.", None, "keep", "busy"),
        (replace(CLUSTER, busy_nodes=1), None, None, "keep", "busy_nodes"),
        (replace(CLUSTER, min_nodes=0), None, 999, "wait", "scales_itself"),
        (replace(CLUSTER, min_nodes=0, nodes=0), None, 999, "keep", "at_zero"),
        (CLUSTER, None, None, "wait", "idle_time"),
        (CLUSTER, None, 119, "wait", "idle_time"),
        (CLUSTER, None, 120, "to-zero", "idle"),
    ],
)
def test_every_cluster_gets_a_decision_with_its_reason(
    cluster: Cluster, busy: str | None, idle_for: float | None, action: str, code: str
) -> None:
    """A cluster goes to zero only when nothing has needed it for its own idle time."""
    latest = None if idle_for is None else Decision("c", "keep", "idle_time", "", ago(1), ago(idle_for))
    decision = judge_cluster(cluster, Need(busy), latest, NOW)

    assert (decision.action, decision.code) == (action, code)
    assert decision.why


def test_work_resets_the_idle_time() -> None:
    """A cluster that was busy at the last sweep starts its idle time anew."""
    busy = judge_cluster(CLUSTER, Need("Run r is running."), Decision("c", "keep", "", "", ago(9), ago(900)), NOW)

    assert judge_cluster(CLUSTER, Need(), busy, NOW).code == "idle_time"


def test_a_run_between_two_sweeps_resets_the_idle_time() -> None:
    """A run that started and ended since the last sweep counts as use."""
    latest = Decision("c", "keep", "idle_time", "", ago(300), ago(900))

    assert judge_cluster(CLUSTER, Need(last_used=ago(10)), latest, NOW).code == "idle_time"
    assert judge_cluster(CLUSTER, Need(last_used=ago(130)), latest, NOW).code == "idle"
