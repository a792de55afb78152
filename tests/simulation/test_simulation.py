"""A share of the schedules that `bench schedules` plays by the thousand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from shared import reconcile
from shared.clusters import scaling
from shared.kernel.facts import Fact
from shared.models import promote
from shared.models.ports import Models, Write
from shared.reactions import REACTIONS
from shared.removals import remove
from shared.runs.content import drop_blobs
from shared.runs.progress import follow, submit
from shared.runs.results import archive
from tests.fakes.world import trainers_folder
from tests.simulation.outcome import Outcome
from tests.simulation.simulation import LATE, REMOVALS, play

ROOT = Path(__file__).resolve().parents[2]
A_TIME, REMOVED = 150, 20
SEEDS = 800
BEGAN_LATE = (11, 27, 41)  # schedules in which jobs start after their runs were judged


def test_whatever_happens_the_rules_hold(tmp_path: Path) -> None:
    """With handlers interleaved at every call of a port, and all faults, the rules of tests/simulation/oracle.py
    hold."""
    play_all(tmp_path, range(A_TIME))


def test_removals_delete_what_was_there_whatever_happens(tmp_path: Path) -> None:
    """With removals followed by uploads, nothing newer than a request is deleted, and nothing of a later
    generation."""
    counts = play_all(tmp_path, range(REMOVED), REMOVALS)
    assert counts["removals of drops"] > REMOVED // 2


def test_a_job_that_begins_after_its_run_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submissions whose answers were lost are carried out later; the timer's check ends their jobs."""
    trainers = trainers_folder(tmp_path)
    for seed in BEGAN_LATE:
        outcome = play(seed, trainers, also=LATE)
        assert not outcome.broken, f"python3 trainyard.py bench schedules --replay {seed} --also late: {outcome.broken}"
        assert outcome.counts["jobs that began after their run's end"]
    monkeypatch.setattr(reconcile, "end_stray_jobs", nothing)
    assert all("is live" in play(seed, trainers, also=LATE).broken for seed in BEGAN_LATE)


def test_the_oracle_sees_a_removal_that_reaches_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that deletes the blobs that exist when it acts soon deletes an upload made after its request."""
    monkeypatch.setattr(remove, "in_reach", lambda blobs, _, drop: [("drops", drop_blobs(blobs, drop))] if drop else [])
    trainers = trainers_folder(tmp_path)
    broken = (play(seed, trainers, also=REMOVALS).broken for seed in range(SEEDS))
    assert "which was uploaded after its request" in next(filter(None, broken))


def play_all(folder: Path, seeds: range, also: str = "") -> Counter[str]:
    trainers, counts = trainers_folder(folder), Counter[str]()
    for seed in seeds:
        outcome = play(seed, trainers, also=also)
        more = f" --also {also}" if also else ""
        assert not outcome.broken, f"python3 trainyard.py bench schedules --replay {seed}{more}: {outcome.broken}"
        counts += outcome.counts
    return counts


def test_a_seed_says_everything(tmp_path: Path) -> None:
    """The same seed gives the same schedule to the last call, also in another process and with another order of
    sets."""
    trace = play(4, trainers_folder(tmp_path), traced=True).trace
    here = [line.replace(str(tmp_path), "trainers").replace(tmp_path.name, "trainers") for line in trace]
    command = [sys.executable, "-m", "benchmarks.schedules", "--replay", "4"]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    there = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert len(here) > 100
    assert re.sub(r"(/\S*)?\btmp\w+", "trainers", there).splitlines()[:-1] == here


def first_broken(trainers: Path, likely: tuple[int, ...]) -> Outcome | None:
    return next((outcome for seed in (*likely, *range(SEEDS)) if (outcome := play(seed, trainers)).broken), None)


class Unheard(Fact):
    """A fact that is stated instead of an omitted one, and has no consequences."""

    def __init__(self, *_: object) -> None: ...


def nothing(*_: object) -> None:
    """Do nothing, in place of an omitted step."""


def never_made(models: Models, write: Write) -> bool:
    """Report that a write whose answer was lost was not made, without checking."""
    return False


LEFT_OUT = {  # last: seeds that found it, tried first; other code gives a seed another schedule
    "the second statement that a run was submitted": (follow, "RunSubmitted", Unheard, "RunSubmitted", (351, 485)),
    "the first statement that a run was submitted": (submit, "RunSubmitted", Unheard, "RunSubmitted", ()),
    "the statement that a run was archived": (archive, "RunArchived", Unheard, "RunArchived", ()),
    "the question whether a version was made": (promote, "_is_made", never_made, "has no signature", (200, 361, 376)),
    "the look after a cluster's change": (scaling, "_came_meanwhile", nothing, "stays at zero", (345, 519, 523)),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_the_oracle_bites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Without a step that a rule needs, a schedule that breaks this rule is soon found."""
    module, step, instead, said, likely = LEFT_OUT[what]
    monkeypatch.setitem(REACTIONS, Unheard, ())
    monkeypatch.setattr(module, step, instead)
    found = first_broken(trainers_folder(tmp_path), likely)
    assert found is not None
    assert said in found.broken
