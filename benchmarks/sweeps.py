"""How many epochs a sweep needs: asha with a model, beside random search, on a surrogate of LCBench.

python3 trainyard.py bench sweeps [--quick] [--surrogate FOLDER] [--seeds N] [--json]

The surrogate says what each configuration would have told after each epoch. Random search runs its trials to the end;
the sweep draws and stops by the app's own shared/sweeps. `epochs_ratio` is the part of random search's epochs after
which the sweep is as good, by the regret that is left, mean over all tasks and seeds. A folder holds config_space.json,
encoding.json and model.onnx, as those of yahpo_data do.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._options import options
from shared.jobs.search import ASHA, CHOICE, Parameter, Stopping, Sweep
from shared.sweeps import decide, sampling
from shared.sweeps.advance import advance_sweep
from shared.sweeps.messages import CheckSweep
from shared.sweeps.model import Trial, TrialState
from tests.shared.sweeps import lab

ROOT = Path(__file__).resolve().parent.parent
LCBENCH = ROOT.parent / "shared" / "data" / "lcbench"
TARGET = 0.25
TRIALS = 50  # of random search
AT_ONCE = 4
KNOWN = 300  # random configurations, of which the best is the best there is, and the middle one has regret 1
MOST = 0.4  # of random search's epochs: longer than that no sweep is followed
MANY = 1000
FEWER_MS = 50.0


@dataclass
class Surrogate:
    """`tasks` are the values of its instance parameter; `index` is the output that is maximized, or minimized."""

    folder: Path
    fidelity: str
    index: int
    maximize: bool
    parameters: list[dict[str, Any]] = field(init=False)
    instance: str = field(init=False)
    tasks: list[str] = field(init=False)
    epochs: int = field(init=False)

    def __post_init__(self) -> None:
        space = json.loads((self.folder / "config_space.json").read_text("utf-8"))
        self.parameters = space["hyperparameters"]
        instances = [p for p in self.parameters if p["name"].endswith("_id")] or [self.parameters[0]]
        self.instance, self.tasks = instances[0]["name"], [str(task) for task in instances[0]["choices"]]
        self.epochs = int(next(p for p in self.parameters if p["name"] == self.fidelity)["upper"])
        self._encoding = json.loads((self.folder / "encoding.json").read_text("utf-8"))
        self._columns = columns_of(self.folder / "model.onnx", self.parameters)
        self._session: Any = None

    def sweep(self) -> Sweep:
        """What a sweep of it asks for."""
        fixed = (self.instance, self.fidelity)
        space = {p["name"]: _parameter(p) for p in self.parameters if p["name"] not in fixed}
        return Sweep(space=space, maximize=self.maximize, at_once=AT_ONCE, most_trials=10**6)

    def curves(
        self, task: str, configurations: Sequence[sampling.Draw], first: int = 1, last: int | None = None
    ) -> np.ndarray[Any, Any]:
        """What each configuration tells after each epoch, from the first to the last: a row for each."""
        epochs = range(first, (last or self.epochs) + 1)
        import onnxruntime

        if self._session is None:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            self._session = onnxruntime.InferenceSession(
                str(self.folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        rows = [{**one, self.instance: task, self.fidelity: epoch} for one in configurations for epoch in epochs]
        texts = [p["name"] for p in self.parameters if p["type"] == "categorical"]
        x_cat = np.array([[self._code(name, row[name]) for name in texts] for row in rows], np.int32)
        x_cont = np.array([[row[name] for name in self._columns] for row in rows], np.float32)
        (told,) = self._session.run(None, {"x_cat": x_cat, "x_cont": x_cont})
        return np.asarray(told)[:, self.index].reshape(len(configurations), len(epochs))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def _code(self, name: str, value: Any) -> int:
        codes = self._encoding.get(name, self._encoding)
        return int(codes[str(value)])


def columns_of(model: Path, parameters: list[dict[str, Any]]) -> list[str]:
    """The names of the model's columns of numbers, in their order, which no file says.

    The model scales each column from the smallest value that its data had, by their range, perhaps of logarithms: a
    column is the parameter whose range is nearest to that.
    """
    import onnx
    from scipy.optimize import linear_sum_assignment

    graph = onnx.load(str(model)).graph
    constants = {
        n.output[0]: onnx.numpy_helper.to_array(n.attribute[0].t) for n in graph.node if n.op_type == "Constant"
    }
    users = {name: node for node in graph.node for name in node.input if name not in constants}
    scales: dict[int, tuple[float, float, bool]] = {}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] == "x_cont":
            scales[int(constants[node.input[1]])] = _scale(node, users, constants)
    numbers = [p for p in parameters if p["type"] != "categorical"]
    apart = [[_apart(scales[column], p) for p in numbers] for column in sorted(scales)]
    return [numbers[place]["name"] for place in linear_sum_assignment(apart)[1]]


def _scale(node: Any, users: dict[str, Any], constants: dict[str, Any]) -> tuple[float, float, bool]:
    """What is taken off a column, by what it is divided, and whether both are of logarithms."""
    off, log = 0.0, False
    while node.op_type != "Div":
        node = users[node.output[0]]
        log = log or node.op_type == "Log"
        off = float(constants[node.input[1]]) if node.op_type == "Sub" else off
    return off, float(constants[node.input[1]]), log


def _apart(scale: tuple[float, float, bool], told: dict[str, Any]) -> float:
    off, by, log = scale
    low, high = (math.log(max(end, 1e-12)) if log else end for end in (told["lower"], told["upper"]))
    return (abs(off - low) + abs(off + by - high)) / max(high - low, 1e-12)


def _parameter(told: dict[str, Any]) -> Parameter:
    if told["type"] == "categorical":
        return Parameter(CHOICE, tuple(told["choices"]))
    low, high = told["lower"], told["upper"]
    step = 1.0 if told["type"] == "uniform_int" else 0.0
    log = "log" if told["log"] else ""
    ends = (math.log(low), math.log(high)) if log else (float(low), float(high))
    return Parameter(f"{'q' if step else ''}{log}uniform", (), *ends, step)


@dataclass
class Course:
    """The best value after so many epochs, ascending."""

    points: list[tuple[int, float]] = field(default_factory=list)

    def add(self, epochs: int, best: float) -> None:
        if not self.points or best > self.points[-1][1]:
            self.points.append((epochs, best))

    def at(self, epochs: Sequence[int]) -> np.ndarray[Any, Any]:
        """The best after each of these numbers of epochs; -inf before the first."""
        places = np.searchsorted([at for at, _ in self.points], epochs, side="right")
        return np.array([-math.inf, *(best for _, best in self.points)])[places]


def play(surrogate: Surrogate, sweep: Sweep, task: str, seed: int, epochs: int) -> Course:
    """A sweep until it has used so many epochs: every running trial tells one value, then the sweep decides."""
    name, sign = f"{task}/{seed}", 1 if sweep.maximize else -1
    trials: list[Trial] = []
    drawn: list[sampling.Draw] = []
    curves: list[list[float]] = []  # as far as they were asked for
    course, used, best = Course(), 0, -math.inf
    while used < epochs:
        for _ in range(decide.to_start(sweep, trials, sampling.possible(sweep))):
            one = sampling.draw(sweep, name, trials)
            drawn.append(sampling.values(sweep, one))
            curves.append([])
            trials.append(Trial(len(trials), one, told=[]))
        live = [trial for trial in trials if trial.state is TrialState.RUNNING]
        for trial in live:
            if (told := len(trial.told)) == len(curves[trial.number]):
                last = min(max(3 * told, 1), surrogate.epochs) if sweep.stopping else surrogate.epochs
                (more,) = surrogate.curves(task, [drawn[trial.number]], told + 1, last)
                curves[trial.number] += [float(value) for value in more]
            trial.told.append(curves[trial.number][len(trial.told)])  # type: ignore[attr-defined]
            used, best = used + 1, max(best, sign * trial.told[-1])
            course.add(used, best)
            if len(trial.told) == surrogate.epochs:
                trials[trial.number] = replace(trial, state=TrialState.COMPLETED)
        if sweep.stopping and any(len(t.told) in decide.rungs(sweep.stopping, len(t.told)) for t in live):
            for number in decide.losers(sweep, trials):
                trials[number] = replace(trials[number], state=TrialState.STOPPED)
    return course


def courses(surrogate: Surrogate, ways: dict[str, Sweep], task: str, seeds: int) -> dict[str, Any]:
    """For a task the regret of each way after each number of epochs, one row for each seed."""
    whole = TRIALS * surrogate.epochs
    steps, sign = range(1, whole + 1), 1 if surrogate.maximize else -1
    sweep = replace(surrogate.sweep(), sampling="random")
    known = [sampling.values(sweep, sampling._at_random(sweep, n)) for n in range(KNOWN)]
    curves = sign * surrogate.curves(task, known)
    played = {
        way: [
            play(surrogate, each, task, seed, whole if way == "random" else int(whole * MOST)) for seed in range(seeds)
        ]
        for way, each in ways.items()
    }
    top = max(curves.max(), *(course.points[-1][1] for some in played.values() for course in some))
    middle = float(np.median(curves.max(axis=1)))
    return {
        way: [(np.minimum(1.0, (top - course.at(steps)) / max(top - middle, 1e-9))).tolist() for course in some]
        for way, some in played.items()
    }


def ways_of(surrogate: Surrogate) -> dict[str, Sweep]:
    sweep = surrogate.sweep()
    asha = Stopping(ASHA)
    return {
        "random": replace(sweep, sampling="random"),
        "asha": replace(sweep, sampling="random", stopping=asha),
        "asha with a model": replace(sweep, stopping=asha),
    }


def measure(surrogate: Surrogate, seeds: int, processes: int) -> dict[str, Any]:
    ways = ways_of(surrogate)
    tasks = surrogate.tasks
    with ProcessPoolExecutor(processes) as pool:
        count = len(tasks)
        of_tasks = list(pool.map(courses, [surrogate] * count, [ways] * count, tasks, [seeds] * count))
    means = {way: np.mean([row for task in of_tasks for row in task[way]], axis=0) for way in ways}
    reached = float(means["random"][-1])
    ratios = {way: _first(mean, reached) / len(mean) for way, mean in means.items()}
    return {
        "epochs_ratio": round(ratios["asha with a model"], 4),
        "target": TARGET,
        "ratios": {way: round(ratio, 4) for way, ratio in ratios.items()},
        "regret_of_random": round(reached, 4),
        "regret_at_a_quarter": {way: round(float(mean[len(mean) // 4 - 1]), 4) for way, mean in means.items()},
        "tasks": len(tasks),
        "seeds": seeds,
        "epochs_of_random": TRIALS * surrogate.epochs,
    }


def _first(mean: np.ndarray[Any, Any], reached: float) -> float:
    """After how many epochs the regret is as low; infinite if never."""
    there = np.flatnonzero(mean <= reached)
    return float(there[0] + 1) if len(there) else math.inf


def deciding(surrogate: Surrogate, times: int) -> dict[str, float]:
    """How many milliseconds of a core one look decides, with many trials."""
    sweep = ways_of(surrogate)["asha with a model"]
    drawn = [sampling._at_random(sweep, number) for number in range(MANY)]
    curves = surrogate.curves(surrogate.tasks[0], [sampling.values(sweep, one) for one in drawn])
    trials: list[Trial] = []
    for number, (one, curve) in enumerate(zip(drawn, curves, strict=True)):
        length = surrogate.epochs if number % 27 == 0 else 9 if number % 9 == 0 else 3 if number % 3 == 0 else 1
        state = TrialState.RUNNING if number >= MANY - AT_ONCE else TrialState.STOPPED
        trials.append(Trial(number, one, state, [float(value) for value in curve[:length]]))
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
    """How many milliseconds of a core one whole look at a sweep of as many trials takes, on stores in memory."""
    took = []
    with tempfile.TemporaryDirectory() as folder:
        world = lab.new_world(Path(folder))
        sweep = lab.crowded(world, MANY, AT_ONCE)
        world.run_until_idle()
        system = replace(world.system, studies=world.studies())
        for _ in range(times):
            began = time.process_time()
            advance_sweep(system, CheckSweep(sweep.name))
            took.append((time.process_time() - began) * 1000)
    return {"median": round(statistics.median(took[1:]), 1), "most": round(max(took[1:]), 1)}


def main(argv: list[str] | None = None) -> int:
    parser = options(__doc__, "two tasks with one seed, whose ratio says little")
    parser.add_argument("--surrogate", type=Path, default=LCBENCH, help="another folder of the same format")
    parser.add_argument("--fidelity", default="epoch", help="the parameter that counts a training's steps")
    parser.add_argument("--output", type=int, default=1, help="which of the model's outputs is the metric (LCBench: 1)")
    parser.add_argument("--minimize", action="store_true", help="less of it is better")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args(argv)
    if not (asked.surrogate / "model.onnx").is_file():
        given = asked.surrogate != LCBENCH
        print(f"There is no {asked.surrogate / 'model.onnx'}. Give --surrogate a folder with one.")
        return 2 if given else 0  # a clone may come without it
    surrogate = Surrogate(asked.surrogate, asked.fidelity, asked.output, not asked.minimize)
    times = 20
    if asked.quick:
        surrogate.tasks, asked.seeds, times = surrogate.tasks[:2], 1, 3
    began = time.monotonic()
    result = measure(surrogate, asked.seeds, asked.processes)
    result["deciding_ms"], result["look_ms"] = deciding(surrogate, times), looking(times)
    result["seconds"] = round(time.monotonic() - began, 1)
    print(f"{result['tasks']} tasks, {asked.seeds} seeds; random search has {result['epochs_of_random']} epochs")
    for way, ratio in result["ratios"].items():
        print(
            f"  {way:18} is as good after {ratio:7.1%} of them; regret after a quarter "
            f"{result['regret_at_a_quarter'][way]:.1%}"
        )
    print(
        f"target: at most {TARGET:.0%}. One decision among {MANY} trials takes {result['deciding_ms']['median']} ms, "
        f"at most {result['deciding_ms']['most']} ms, a whole look {result['look_ms']['median']}; target {FEWER_MS:g}. "
        f"{result['seconds']} s in all."
    )
    if asked.json:
        print(json.dumps(result))
    return int(result["epochs_ratio"] > TARGET and not asked.quick)


if __name__ == "__main__":
    sys.exit(main())
