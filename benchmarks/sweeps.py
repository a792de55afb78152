"""The quality of a sweep after a number of epochs, on problems of several families, compared with other programs.

python3 trainyard.py bench sweeps [--quick] [--surrogate FOLDER] [--seeds N] [--tasks N] [--json]

A family gives the value that each configuration would have reported after each epoch. The players are the app's own
sweep (bayesian, asha), random search, Optuna's TPE with Hyperband, and optionally Syne Tune's ASHA (`pip install
syne-tune`). The regret is 0 for a task's best known value, and 1 for the median of KNOWN random configurations. All
figures are means over tasks and seeds after a tenth, a quarter and two fifths of the epochs of random search, which has
TRIALS whole trainings. `epochs_ratio` is the share of these epochs after which the sweep is as good as random search is
at its end, by the mean over the families.

The families: two surrogates of yahpo_data, if they are in ../shared/data; the functions of MF-Hartmann; and curves with
chosen rank correlations, on which nothing was developed. --surrogate plays one or more other surrogates instead.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._options import options
from benchmarks._sweep_families import AT_ONCE, Family, MfHartmann, Surrogate, Synthetic
from benchmarks._sweep_players import Course, names, play, player
from shared.jobs.search import ASHA, BAYESIAN, Stopping
from shared.sweeps import decide, sampling
from shared.sweeps.advance import advance_sweep
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import Trial, TrialState
from tests.shared.sweeps import lab

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
TRIALS = 50  # of random search
KNOWN = 300  # random configurations
SHARES = (0.1, 0.25, 0.4)  # of random search's epochs; after the last share only random search continues
MANY = 1000
FEWER_MS = 50.0
POINTS = 500  # numbers of epochs at which courses are compared


def regrets(family: Family, players: Sequence[str], task: str, seeds: int, only_ends: bool) -> dict[str, Any]:
    """Return, for a task, the regret of each player at POINTS numbers of epochs, one row for each seed."""
    whole = TRIALS * family.epochs
    sweep = family.sweep(task)
    known = np.array([family.curve(task, _configuration(family, task, number)) for number in range(KNOWN)])
    scores = known[:, -1] if only_ends else known.max(axis=1)
    if len(set(scores.tolist())) == 1:
        raise SystemExit(f"Task {task} of {family.name} has the same value for all of {KNOWN} configurations.")
    played: dict[str, list[Course]] = {}
    for name in players:
        epochs = whole if name == "random" else round(whole * SHARES[-1])
        some = (player(name, sweep, seed, family.epochs) for seed in range(seeds))
        played[name] = [play(each, family, task, epochs, only_ends) for each in some]
    top = max(scores.max(), *(course.points[-1][1] for some in played.values() for course in some if course.points))
    middle = float(np.median(scores))
    steps = np.linspace(whole / POINTS, whole, POINTS).tolist()
    return {
        name: [np.minimum(1.0, (top - course.at(steps)) / max(top - middle, 1e-9)).tolist() for course in some]
        for name, some in played.items()
    }


def _configuration(family: Family, task: str, number: int) -> dict[str, Any]:
    sweep = family.sweep(task)
    return sampling.values(sweep, sampling._at_random(sweep, number))


def measure(family: Family, players: Sequence[str], seeds: int, pool: ProcessPoolExecutor, only_ends: bool) -> Any:
    """Return the mean regret of each player at POINTS numbers of epochs."""
    count = len(family.tasks)
    columns = ([family] * count, [players] * count, family.tasks, [seeds] * count, [only_ends] * count)
    of_tasks = list(pool.map(regrets, *columns))
    return {name: np.mean([row for task in of_tasks for row in task[name]], axis=0) for name in players}


def at_shares(course: np.ndarray[Any, Any]) -> list[float]:
    return [round(float(course[round(share * POINTS) - 1]), 3) for share in SHARES]


def ratio(means: Sequence[dict[str, Any]]) -> float:
    """Return the share of random search's epochs after which the mean of the families is as good; infinite if
    never."""
    ours, random = (np.mean([family[name] for family in means], axis=0) for name in ("ours", "random"))
    there = np.flatnonzero(ours[: round(SHARES[-1] * POINTS)] <= random[-1])
    return float(there[0] + 1) / POINTS if len(there) else math.inf


def families(folders: Sequence[Path], fidelity: str, index: int | None, maximize: bool) -> list[Family]:
    """Return the families to play; a family without its data is named in a message and left out."""
    if folders:
        return [Surrogate(folder, fidelity, index or 0, maximize) for folder in folders]
    found: list[Family] = []
    for name, output in (("lcbench", 1), ("rbv2_rpart", 0)):
        if (DATA / name / "model.onnx").is_file():
            found.append(Surrogate(DATA / name, index=output))
        else:
            print(f"{name} is not played: there is no {DATA / name / 'model.onnx'}.")
    return [*found, MfHartmann(), Synthetic()]


def deciding(family: Family, times: int) -> dict[str, float]:
    """Return the milliseconds of CPU time that one check takes to decide, with many trials."""
    task = family.tasks[0]
    sweep = replace(family.sweep(task), sampling=BAYESIAN, stopping=Stopping(ASHA))
    drawn = [sampling._at_random(sweep, number) for number in range(MANY)]
    curves = [family.curve(task, sampling.values(sweep, one)) for one in drawn]
    trials: list[Trial] = []
    for number, (one, curve) in enumerate(zip(drawn, curves, strict=True)):
        length = family.epochs if number % 27 == 0 else 9 if number % 9 == 0 else 3 if number % 3 == 0 else 1
        ended = TrialState.COMPLETED if length == family.epochs else TrialState.STOPPED
        state = TrialState.RUNNING if number >= MANY - AT_ONCE else ended
        trials.append(Trial(number, one, state, curve[:length]))
    took = []
    for number in range(times):
        began = time.process_time()
        decide.losers(sweep, trials)
        decide.best_trial(sweep, trials)
        decide.to_start(sweep, trials, sampling.possible(sweep))
        sampling.values(sweep, sampling.draw(sweep, f"s{number}", [*trials, trials[-1]]))
        took.append((time.process_time() - began) * 1000)
    return {"median": round(statistics.median(took[1:]), 1), "most": round(max(took[1:]), 1)}


def looking(times: int) -> dict[str, float]:
    """Return the milliseconds of CPU time of one whole check of a sweep with as many trials, on stores in memory."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        world = lab.new_world(Path(folder))
        sweep = lab.crowded(world, MANY, AT_ONCE)
        world.run_until_idle()
        system = replace(world.system, features=world.stores())
        for _ in range(times):
            began = time.process_time()
            advance_sweep(system, CheckSweep(sweep.name))
            took.append((time.process_time() - began) * 1000)
    return {"median": round(statistics.median(took[1:]), 1), "most": round(max(took[1:]), 1)}


def main(argv: list[str] | None = None) -> int:
    parser = options(__doc__, "two tasks of each family with one seed, whose figures say little")
    parser.add_argument(
        "--surrogate", type=Path, action="append", default=[], help="a folder of yahpo_data; repeatable"
    )
    parser.add_argument("--fidelity", default="", help="its parameter that counts steps (default: epoch or trainsize)")
    parser.add_argument("--output", type=int, help="which of the model's outputs is the metric (default: the first)")
    parser.add_argument("--minimize", action="store_true", help="less of it is better")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=12, help="of each family, evenly spaced; 0: all (default: 12)")
    parser.add_argument("--ends", action="store_true", help="count only the values of whole trainings")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args(argv)
    for folder in asked.surrogate:
        if not (folder / "model.onnx").is_file():
            print(f"There is no {folder / 'model.onnx'}. Give --surrogate a folder with one.")
            return 2
    played = families(asked.surrogate, asked.fidelity, asked.output, not asked.minimize)
    most, seeds, times = (2, 1, 3) if asked.quick else (asked.tasks, asked.seeds, 20)
    began, players = time.monotonic(), names()
    means: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(asked.processes) as pool:
        for family in played:
            family.tasks = family.tasks[:: math.ceil(len(family.tasks) / most)] if most else family.tasks
            means[family.name] = measure(family, players, seeds, pool, asked.ends)
            show(f"{family.name} ({len(family.tasks)} tasks, {seeds} seeds)", means[family.name])
    result = summary(means)
    if len(played) > 1:
        show("mean of the families", {name: np.mean([f[name] for f in means.values()], axis=0) for name in players})
    result["deciding_ms"], result["look_ms"] = deciding(played[0], times), looking(times)
    print(
        f"As good as random search at its end after {result['epochs_ratio']:.1%} of its epochs. One decision among "
        f"{MANY} trials takes {result['deciding_ms']['median']} ms, a whole look {result['look_ms']['median']} ms "
        f"(target {FEWER_MS:g}). {time.monotonic() - began:.0f} s in all."
    )
    if asked.json:
        print(json.dumps(result))
    return 0


def show(title: str, means: dict[str, Any]) -> None:
    print(f"{title}: regret after {', '.join(f'{share:.0%}' for share in SHARES)} of random search's epochs")
    for name, course in means.items():
        end = f"   at its end {course[-1]:.3f}" if name == "random" else ""
        print(f"  {name:10} {'  '.join(f'{value:.3f}' for value in at_shares(course))}{end}", flush=True)


def summary(means: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures for --json. At each share, `best_other` is the smallest regret of the other programs."""
    parts = {}
    for name, family in means.items():
        others = [at_shares(course) for player_name, course in family.items() if player_name not in ("ours", "random")]
        best = [min(column) for column in zip(*others, strict=True)]
        parts[name] = {"ours": at_shares(family["ours"]), "random": at_shares(family["random"]), "best_other": best}
    return {"epochs_ratio": round(ratio(list(means.values())), 4), "families": parts}


if __name__ == "__main__":
    sys.exit(main())
