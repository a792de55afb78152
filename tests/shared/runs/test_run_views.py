"""Views of a run on fakes: its growing log, its curves, its files; and lists of runs."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from shared.api import live, queries
from shared.api.log_ranges import log_answer, wanted_range
from shared.api.requests import CurvesQuery, DropsQuery, LiveQuery, RunListQuery
from shared.kernel.errors import BadInput, Impossible, NotFound
from shared.kernel.storage import Place
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.messages import ArchiveRun
from shared.runs.model import Run, RunState
from shared.runs.results import artifacts, mlflow_metrics
from shared.runs.results.archive import archive_run
from shared.runs.views import logs, metrics
from shared.runs.views.downsample import Thinned
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder

DATA = "drops/shelf/a"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


@pytest.fixture
def run(world: World) -> Run:
    """A run whose job was sent, without a log so far."""
    made = create.create_run(world.system, RunRequest(template="mnist", data=DATA))
    world.run_until_idle()
    return made


def write(world: World, run: Run, data: bytes, rank: str = "_process_0") -> None:
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}/user_logs/std_log{rank}.txt", data)


def end(world: World, run: Run, raw: str = "Completed") -> None:
    """End the job; its log stays as it was."""
    written = [b for b in world.blobs.containers["azureml"].values() if "user_logs" in b.blob.name]
    world.job_goes(run.name, raw)
    for content in written:
        world.blobs.put("azureml", content.blob.name, content.data)
    world.deliver_all()
    world.run_until_idle()


def read(world: World, run: Run, offset: int = 0, **more: Any) -> logs.Chunk:
    return logs.read(world.system, run.name, more.pop("rank", 0), offset, **more)


# --- logs


def test_a_follow_gets_every_byte_once(world: World, run: Run) -> None:
    """Following from each answer's offset gives the whole log, in any pieces, and then reports it as complete."""
    whole = "".join(f"Zeile {i} ü 数 🚂\n" for i in range(50)).encode() + b"the last line"
    got, offset, chunk = b"", 0, read(world, run)
    assert (chunk.data, chunk.complete, chunk.ranks) == (b"", False, [])
    for written in range(0, len(whole) + 7, 7):  # the log grows by 7 bytes between two reads
        write(world, run, whole[:written])
        chunk = read(world, run, offset)
        assert not chunk.complete
        chunk.data.decode()
        got, offset = got + chunk.data, chunk.next_offset
    end(world, run)
    chunk = read(world, run, offset)
    assert chunk.complete
    assert got + chunk.data == whole


def test_a_log_may_end_inside_a_character(world: World, run: Run) -> None:
    """A partial character is held back while more bytes may arrive, and returned at the end of the log."""
    write(world, run, b"ab\xf0\x9f\x9a")
    assert read(world, run).data == b"ab"
    assert (read(world, run, 2).data, read(world, run, 2).complete) == (b"", False)
    end(world, run, "Failed")
    assert read(world, run, 2).data == b"\xf0\x9f\x9a"
    assert read(world, run, 2).complete


def test_pieces_end_between_characters(world: World, run: Run) -> None:
    """A piece with a size limit is cut before a character that does not fit; the next piece starts with that
    character."""
    text = "aü数🚂b"
    write(world, run, text.encode())
    for limit in range(4, 12):
        got, offset = "", 0
        while piece := read(world, run, offset, limit=limit).data:
            got, offset = got + piece.decode(), offset + len(piece)
        assert got == text


@pytest.mark.parametrize("data", [b"", b"a", b"\xff\xfe", b"\x80\x80", b"a\xc3", b"\xe2\x82", b"\xf0\x9f\x9a\x82"])
def test_only_a_beginning_of_a_character_is_cut(data: bytes) -> None:
    """Bytes that no further byte can complete to a character are returned unchanged."""
    whole = {b"a\xc3": b"a", b"\xe2\x82": b""}.get(data, data)
    assert logs.whole_characters(data) == whole


def test_every_rank_has_its_log(world: World, run: Run) -> None:
    """Ranks are found despite leading zeros in file names; a job's only process is rank 0."""
    write(world, run, b"zero", "_process_00")
    write(world, run, b"eleven", "_process_11")
    assert read(world, run).ranks == [0, 11]
    assert (read(world, run).data, read(world, run, rank=11).data, read(world, run, rank=5).data) == (
        b"zero", b"eleven", b"",
    )  # fmt: skip


def test_a_single_process_is_rank_zero(world: World, run: Run) -> None:
    """std_log.txt is the log of a job that isn't distributed."""
    write(world, run, b"alone", "")
    assert read(world, run).data == b"alone"


def test_a_run_that_never_wrote_is_complete_when_archived(world: World) -> None:
    """A run whose job was refused has an empty log, which is complete once the run is archived."""
    world.jobs.clusters.clear()
    made = create.create_run(world.system, RunRequest(template="mnist", data=DATA))
    world.run_until_idle()
    assert world.runs.get(made.name).value.progress.state is RunState.FAILED
    assert (read(world, made).data, read(world, made).complete) == (b"", True)


def test_a_wait_ends_with_the_first_bytes(world: World, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting reader gets new bytes as soon as they are seen; without new bytes, an empty answer in time."""
    monkeypatch.setattr(logs, "FIRST_PAUSE", 0.001)

    async def both() -> logs.Chunk:
        waiting = asyncio.create_task(logs.follow(world.system, run.name, 0, 0, wait=30))
        await asyncio.sleep(0)
        assert not waiting.done()
        write(world, run, b"hello")
        return await waiting

    assert asyncio.run(both()).data == b"hello"
    assert asyncio.run(logs.follow(world.system, run.name, 0, 5, wait=0.01)).data == b""


@pytest.mark.parametrize(
    ("header", "status", "data", "said"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=0-1,3-4", 200, None, None),
        ("bytes=5-2", 200, None, None),
        ("lines=1-2", 200, None, None),
        ("bytes=-", 200, None, None),
        (None, 200, None, None),
    ],
)
def test_ranges(world: World, run: Run, header: str | None, status: int, data: bytes | None, said: str | None) -> None:
    """A single range of bytes gives 206 or 416 as in RFC 9110; any other range header is ignored."""
    write(world, run, b"0123456789")
    wanted = wanted_range(header)
    assert (wanted is None) == (status == 200)
    if wanted:
        answered = log_answer(asyncio.run(logs.ranged(world.system, run.name, 0, wanted)), ranged=True)
        assert answered.status == status
        if data is None:
            assert answered.value["detail"] == "The log has 10 bytes, and the range is outside the log."
        else:
            assert answered.value == data
        assert answered.headers["Content-Range"] == said


# --- curves and files


def put_metrics(world: World, run: Run, *rows: dict[str, Any] | str) -> None:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/metrics/metrics.jsonl", text.encode())


def test_series_are_the_rows_numbers(world: World, run: Run) -> None:
    """Each metric is a series of step, value and time, also live; values that are not finite or not JSON are
    skipped."""
    rows: list[Any] = [
        {"step": 5, "time": 1.5, "loss": 2, "note": "x", "ok": True},
        "{half",
        {"loss": 1.0, "bad": float("nan")},
    ]
    put_metrics(world, run, *rows)
    assert metrics.series(world.system, run.name) == {"loss": [(5, 2, 1.5), (6, 1.0, None)]}
    assert metrics.series(world.system, run.name, "other,accuracy") == {}


def test_a_part_of_a_long_curve_has_all_its_points(world: World, run: Run) -> None:
    """An answer with 5,000 points is thinned to the requested number; a range of steps has all its points."""
    put_metrics(world, run, *({"step": i, "loss": i % 7} for i in range(5000)))

    def points(**query: Any) -> list[Any]:
        found = live.get_curves(world.system, CurvesQuery(run.name, points=500, **query))
        return list(found["runs"][run.name]["loss"])

    assert len(points()) <= 500
    assert points(first=1000, last=1099) == [(i, i % 7, None) for i in range(1000, 1100)]
    assert [step for step, _, _ in points(first=4998)] == [4998, 4999]


def test_an_archived_run_keeps_its_series(world: World, run: Run) -> None:
    """After the run is archived, the same series come from the archive."""
    write(world, run, b"")
    end(world, run)
    world.blobs.containers["azureml-blobstore"].clear()
    assert metrics.series(world.system, run.name, "test_accuracy")["test_accuracy"] == [(1, 0.9, None), (2, 0.8, None)]


def test_what_was_logged_to_mlflow_is_shown_and_archived(world: World, run: Run) -> None:
    """A run without metrics files has the series that it logged to MLflow, live, and the same from its archive."""
    world.jobs.metrics[run.name] = {
        "loss": [(0, 2.0, 1.5), (1, 1.0, 2.5)],
        "rate": [(0, 0.1, 1.5), (1, float("nan"), 3.0)],
    }
    expected = {"loss": [(0, 2.0, 1.5), (1, 1.0, 2.5)], "rate": [(0, 0.1, 1.5)]}
    world.job_goes(run.name, "Running")
    world.deliver_all()
    world.run_until_idle()
    assert metrics.series(world.system, run.name) == expected
    world.jobs.set(run.name, "Completed")  # the job leaves no files, unlike with `end`
    world.system.runs.update(old := world.system.runs.get(run.name), changed(old.value, state=RunState.COMPLETED))
    archive_run(world.system, ArchiveRun(run.name))
    del world.jobs.metrics[run.name]
    assert metrics.series(world.system, run.name) == expected
    assert world.system.runs.get(run.name).value.measured.best == {"loss": 1.0, "rate": 0.1}
    assert "metrics/mlflow.jsonl" in {file["name"] for file in world.manifest(run)["files"]}


def test_two_archivers_agree_on_what_was_logged(world: World, run: Run) -> None:
    """A second archiving keeps the file with MLflow's values that the first manifest names."""
    world.jobs.metrics[run.name] = {"loss": [(0, 2.0, 1.5)]}
    world.jobs.set(run.name, "Completed")
    ended = changed(world.system.runs.get(run.name).value, state=RunState.COMPLETED)
    world.system.runs.update(world.system.runs.get(run.name), ended)
    archive_run(world.system, ArchiveRun(run.name))
    manifest = {file["name"]: file["etag"] for file in world.manifest(run)["files"]}
    folder = f"{ended.asked.experiment}/{run.name}"
    mlflow_metrics.keep(world.jobs, world.blobs, ended, folder)
    (there,) = world.blobs.list(Place("output", f"{folder}/metrics/"))
    assert there.etag == manifest["metrics/mlflow.jsonl"]
    world.jobs.metrics[run.name]["loss"].append((1, 1.0, 2.5))
    mlflow_metrics.keep(world.jobs, world.blobs, ended, folder)
    assert world.blobs.containers["output"][there.name].data.count(b"\n") == 2, "other values replace it"


def test_what_a_job_saves_through_mlflow_is_archived(world: World, run: Run) -> None:
    """The archive has files and models that MLflow keeps in the job's own folder, but not Azure ML's own files."""
    for name in ("model/MLmodel", "notes/note.txt", "outputs/o.txt", "system_logs/x.log", "azureml-logs/20_build.txt"):
        world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}/{name}", name.encode())
    end(world, run)
    saved = {name for name in world.archived(run) if not name.startswith(("models/", "metrics/"))}
    assert saved == {
        "mlflow/model/MLmodel", "mlflow/notes/note.txt", "outputs/o.txt", "logs/std_log_process_0.txt",
        "manifest.json",
    }  # fmt: skip
    assert {"mlflow/model/MLmodel", "mlflow/notes/note.txt"} <= {f["name"] for f in world.manifest(run)["files"]}


@pytest.mark.parametrize("count", [1, 3, 1999, 2000, 2001, 50_000])
def test_a_long_series_is_thinned(count: int) -> None:
    """At most 2,000 points are kept, in order, with the first and the last one, from intervals of equal length."""
    thinned = Thinned()
    for i in range(count):
        thinned.add((i, i, None))
    steps = [int(step) for step, *_ in thinned.points()]
    assert min(count, 998) <= len(steps) <= 2000
    assert (steps[0], steps[-1]) == (0, count - 1)
    assert max((b - a for a, b in itertools.pairwise(steps)), default=1) <= max(4, 4 * count // 2000)


@pytest.mark.parametrize("at", [0, 1, 4711, 49_998, 49_999])
@pytest.mark.parametrize("limit", [4, 40, 2000])
def test_a_thinned_series_keeps_its_spikes(at: int, limit: int) -> None:
    """One outlier among 50,000 points is kept, up or down, at any position and for any number of requested points."""
    for spike in (-9.0, 9.0):
        thinned = Thinned(limit)
        for i in range(50_000):
            thinned.add((i, spike if i == at else math.sin(i), None))
        assert (at, spike, None) in thinned.points()
        assert len(thinned.points()) <= limit


def test_a_cursor_gives_every_point_once(world: World, run: Run) -> None:
    """Reading growing metrics, each time from the last cursor, gives the same points as one reading at the end."""
    rows = [json.dumps({"loss": i / 7, "step": i}) + "\n" for i in range(50)] + [json.dumps({"loss": 9.0})]
    text, place, got, cursor = "".join(rows).encode(), f"trainyard/{run.name}/metrics/metrics.jsonl", [], ""
    for end_of in range(0, len(text) + 11, 11):  # the file grows by 11 bytes between two reads
        world.blobs.put("azureml-blobstore", place, text[:end_of])
        told = live.get_live(world.system, run.name, LiveQuery(after=cursor))
        got += told["metrics"]["series"].get("loss", [])
        cursor = told["metrics"]["next"]
    assert got == [(i, i / 7, None) for i in range(50)], "the last line has no end, and may still grow"
    with pytest.raises(Impossible, match="not a cursor"):
        live.get_live(world.system, run.name, LiveQuery(after="x!"))


def test_artifacts_are_those_of_the_manifest(world: World, run: Run) -> None:
    """There are none until the archive is complete; then an address leads to exactly this run's file."""
    assert artifacts.artifacts(world.system, run.name) == {
        "complete": False, "files": [], "outputs": [], "pictures": {},
    }  # fmt: skip
    with pytest.raises(NotFound, match="not archived"):
        artifacts.address(world.system, run.name, "models/model.pt")
    write(world, run, b"log")
    end(world, run)
    told = artifacts.artifacts(world.system, run.name)
    assert told["complete"]
    assert {file["name"] for file in told["files"]} == {
        "models/model.pt", "metrics/metrics.jsonl", "logs/std_log_process_0.txt",
    }  # fmt: skip
    url = artifacts.address(world.system, run.name, "models/model.pt")
    assert url.startswith(f"https://fake.blob/output/digits/{run.name}/models/model.pt?sp=r&")
    for name in ("models/other.pt", "../other/models/model.pt", "", "models/", f"digits/{run.name}/models/model.pt"):
        with pytest.raises(NotFound, match="has no file"):
            artifacts.address(world.system, run.name, name)


# --- lists


def test_pages_walk_through_all_that_is_wanted(world: World) -> None:
    """Following the tokens gives each requested run once, newest first, even if a page is short or empty."""
    for i in range(130):
        made = Run.of(
            name=f"run-{i:03}",
            drop="",
            route="",
            fingerprint="",
            experiment="a" if i % 40 == 0 else "b",
            cluster="c",
            nodes=1,
            created_at=world.clock(),
        )
        world.runs.insert(changed(made, state=RunState.QUEUED if i < 50 else RunState.RECEIVED))
        world.clock.advance(1)

    def walk(**fields: Any) -> list[str]:
        names: list[str] = []
        token: str | UnsetType = UNSET
        while True:
            page = queries.runs(world.system, RunListQuery(token=token, **fields))
            names += [row["run"] for row in page["runs"]]
            if not (token := page["continue"]):
                return names

    everything = [f"run-{i:03}" for i in reversed(range(130))]
    assert walk(limit=7) == walk() == everything
    assert walk(experiment="a") == ["run-120", "run-080", "run-040", "run-000"]
    assert walk(experiment="a", state=RunState.QUEUED, cluster="c", limit=1) == ["run-040", "run-000"]
    since = world.clock() - timedelta(seconds=10)
    assert walk(since=since.isoformat()) == walk(since=since.replace(tzinfo=None).isoformat()) == everything[:10]


@pytest.mark.parametrize("since", ["0", "now", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_is_none_is_refused(world: World, since: str) -> None:
    """An invalid time, or one outside the range of UTC times, is BadInput with an example."""
    with pytest.raises(BadInput, match="write a time like"):
        queries.runs(world.system, RunListQuery(since=since))


def test_a_list_of_drops_has_some_fields_of_each_and_all_on_request(world: World) -> None:
    """A list has a selection of the fields of a drop's own answer, in at most 300 bytes; `details` gives all."""
    world.complete("1.bin")
    whole = queries.drop(world.system, "mnist", "a")
    (short,) = queries.drops(world.system, DropsQuery(route="mnist"))
    (details,) = queries.drops(world.system, DropsQuery(route="mnist", details=True))
    assert short.items() < whole.items()
    assert details == whole
    assert len(json.dumps(short)) < 300


def test_a_list_has_some_fields_of_each_run_and_all_on_request(world: World, run: Run) -> None:
    """A list has a selection of the fields of a run's own answer; `details` gives all."""
    whole = queries.run(world.system, run.name)
    (short,) = queries.runs(world.system, RunListQuery())["runs"]
    (details,) = queries.runs(world.system, RunListQuery(details=True))["runs"]
    assert short.items() <= {**whole, "duration_seconds": short["duration_seconds"]}.items()
    assert details.keys() == whole.keys()
    assert len(json.dumps(short)) < 450 < len(json.dumps(details)) / 4
