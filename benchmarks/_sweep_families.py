"""Families of problems for `bench sweeps`: the value that a training with each configuration reports after each epoch.

Surrogate: any surrogate of yahpo_data (https://github.com/slds-lmu/yahpo_data). MfHartmann: the functions of
mf-prior-bench (https://github.com/automl/mf-prior-bench), by their formula. Synthetic: curves whose early values have a
chosen rank correlation with the final values; no part of the sampler was developed on them.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shared.jobs.search import CHOICE, Drawn, Parameter, Sweep

AT_ONCE = 4
STEPS = 33  # of a fidelity that is a share of the data: 3 % each
# The columns of yahpo_data's models, in an order that only yahpo_gym/benchmarks/*.py states. The order is the same in
# all surrogates. Surrogates of several learners have one group of columns per learner, under names with a prefix.
ORDER = """
task_id OpenML_task_id task instance_id learner_id learner kernel activation_fn_1 activation_fn_2 lr_schedule replace
respect.unordered.factors splitrule distance booster num.impute.selected.cpo
epoch replication batch_size learning_rate momentum weight_decay num_layers max_units max_dropout dropout_1 dropout_2
init_lr n_units_1 n_units_2 cost cp maxdepth minbucket minsplit num.trees sample.fraction mtry.power mtry.ratio
min.node.size num.random.splits k M ef ef_construction nrounds eta gamma lambda alpha subsample max_depth
min_child_weight colsample_bytree colsample_bylevel rate_drop skip_drop s tolerance degree trainsize repl
"""
COLUMNS = ORDER.split()
LEARNERS = ("svm", "glmnet", "rpart", "ranger", "aknn", "xgboost")
LEARNERS_OF_IAML = ("ranger", "rpart", "glmnet", "xgboost")


class Family(Protocol):
    """Problems of one kind. `epochs` is the length of a whole training."""

    name: str
    tasks: list[str]
    epochs: int

    def sweep(self, task: str) -> Sweep:
        """Return the sweep document of a task: random search over the task's space."""

    def curve(self, task: str, configuration: dict[str, Drawn]) -> list[float]:
        """Return the value that a configuration reports after each epoch, with the sign that makes higher better."""


@dataclass
class Surrogate:
    """A folder with config_space.json, encoding.json and model.onnx. `index` selects the output that is played."""

    folder: Path
    fidelity: str = ""
    index: int = 0
    maximize: bool = True
    name: str = field(init=False)
    tasks: list[str] = field(init=False)
    epochs: int = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.folder.name
        read = json.loads((self.folder / "config_space.json").read_text("utf-8"))
        self._parameters = {each["name"]: each for each in read["hyperparameters"]}
        self._conditions = read.get("conditions", [])
        self._encoding = json.loads((self.folder / "encoding.json").read_text("utf-8"))
        learners = LEARNERS_OF_IAML if "learner" in self._parameters else LEARNERS
        names = sorted(self._parameters, key=lambda name: _place(name, learners))
        self._texts = [name for name in names if self._parameters[name]["type"] == "categorical"]
        self._numbers = [name for name in names if name not in self._texts]
        self._instance = next((name for name in self._texts if name == "task" or name.endswith("_id")), "")
        self.tasks = [str(each) for each in self._parameters[self._instance]["choices"]] if self._instance else ["only"]
        self.fidelity = self.fidelity or next(name for name in ("epoch", "trainsize") if name in self._parameters)
        asked = self._parameters[self.fidelity]
        self._is_share = asked["type"] == "uniform_float"
        self.epochs = STEPS if self._is_share else int(asked["upper"])

    def sweep(self, task: str) -> Sweep:  # noqa: ARG002 - the same space for all tasks
        fixed = (self._instance, self.fidelity)
        space = {name: _parameter(each) for name, each in self._parameters.items() if name not in fixed}
        return Sweep(space=space, sampling="random", at_once=AT_ONCE, most_trials=10**6)

    def curve(self, task: str, configuration: dict[str, Drawn]) -> list[float]:
        row = {**configuration, self._instance: task}
        row = {name: value for name, value in row.items() if self._is_active(name, row)}
        codes = [self._code(name, row.get(name, "#na#")) for name in self._texts]
        x_cat = np.array([codes] * self.epochs, np.int32)
        steps = [self._fidelity(epoch) for epoch in range(1, self.epochs + 1)]
        columns = [steps if name == self.fidelity else [row.get(name, 0)] * self.epochs for name in self._numbers]
        (told,) = self._session.run(None, {"x_cat": x_cat, "x_cont": np.array(columns, np.float32).T})
        sign = 1 if self.maximize else -1
        return [sign * float(value) for value in np.asarray(told)[:, self.index]]

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = str(self.folder / "model.onnx")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        wanted = {"x_cat": len(self._texts), "x_cont": len(self._numbers)}
        there = {each.name: each.shape[1] for each in session.get_inputs()}
        if there != wanted:
            raise SystemExit(f"{model} takes {there} columns, and config_space.json has {wanted}.")
        return session

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def _fidelity(self, epoch: int) -> float:
        asked = self._parameters[self.fidelity]
        return max(asked["lower"], asked["upper"] * epoch / self.epochs) if self._is_share else epoch

    def _code(self, name: str, value: Drawn) -> int:
        codes = self._encoding.get(name, self._encoding)
        return int(codes[str(value)])

    def _is_active(self, name: str, row: dict[str, Drawn]) -> bool:
        """Return whether all conditions of a parameter hold. Inactive parameters count as missing, as in yahpo_gym."""
        its = [each for each in self._conditions if each["child"] == name]
        return all(row.get(each["parent"]) in each.get("values", [each.get("value")]) for each in its)


def _place(name: str, learners: Sequence[str]) -> tuple[int, int, str]:
    """Return a parameter's place among the columns of a model: by its learner, then in the order of COLUMNS."""
    learner, _, rest = name.partition(".")
    if learner in learners and rest in COLUMNS:
        return learners.index(learner), COLUMNS.index(rest), name
    if name not in COLUMNS:
        return -1, len(COLUMNS), _padded(name)
    is_last = name in ("num.impute.selected.cpo", "trainsize", "repl")
    return len(learners) if is_last else -1, COLUMNS.index(name), name


def _padded(name: str) -> str:
    """Return the name with its last number as two digits, because nb301 orders its columns by number."""
    head, _, number = name.rpartition("_")
    return f"{head}_{int(number):02}" if number.isdecimal() else name


def _parameter(told: dict[str, Any]) -> Parameter:
    if told["type"] == "categorical":
        return Parameter(CHOICE, tuple(told["choices"]))
    low, high = told["lower"], told["upper"]
    step = 1.0 if told["type"] == "uniform_int" else 0.0
    log = "log" if told["log"] else ""
    ends = (math.log(low), math.log(high)) if log else (float(low), float(high))
    return Parameter(f"{'q' if step else ''}{log}uniform", (), *ends, step)


HARTMANN = {  # by dimensions: the matrices A and P of the Hartmann functions
    3: (
        [[3, 10, 30], [0.1, 10, 35]] * 2,
        [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]],
    ),
    6: (
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]],
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ],
    ),
}
LEVELS = {"good": (2.5, 2.0), "moderate": (3.0, 3.0), "bad": (3.5, 4.0), "terrible": (4.0, 5.0)}  # bias and noise


class MfHartmann:
    """-sum_i (alpha_i - bias (1 - z)) exp(-sum_j A_ij (x_j - P_ij)^2) + noise (1 - z) |n|, to be minimized.

    z = log(epoch) / log(100), and n is normal. From mfpbench/synthetic/hartmann/generators.py.
    """

    name, epochs = "mf_hartmann", 100
    tasks = [f"{dimensions} {level}" for dimensions in HARTMANN for level in LEVELS]  # noqa: RUF012 - constant

    def sweep(self, task: str) -> Sweep:
        space = {f"x{number}": Parameter("uniform", (), 0.0, 1.0) for number in range(int(task[0]))}
        return Sweep(space=space, sampling="random", at_once=AT_ONCE, most_trials=10**6)

    def curve(self, task: str, configuration: dict[str, Drawn]) -> list[float]:
        (a, p), (bias, noise) = HARTMANN[int(task[0])], LEVELS[task[2:]]
        x = np.array([float(value) for value in configuration.values()])
        z = np.log(np.arange(1, self.epochs + 1)) / math.log(self.epochs)
        near = np.exp(-np.sum(np.array(a) * (x - 1e-4 * np.array(p)) ** 2, axis=1))
        alpha = np.array([1.0, 1.2, 3.0, 3.2]) - bias * (1 - z)[:, None]
        dice = random.Random(repr(x.tolist()))
        told = alpha @ near - noise * (1 - z) * np.abs([dice.gauss(0, 1) for _ in z])
        return [float(value) for value in told]


class Synthetic:
    """Curves on a plain of quadratic hills. Early values have a rank correlation of about `rho` with final values.

    The value at the share s of a training is q f + sqrt(1 - q^2) g, rising to its end, where f is the final hill, g
    another one, and q goes from rho to 1 with s. A task is 'rho number'.
    """

    name, epochs = "synthetic", 40
    tasks = [f"{rho} {number}" for rho in (-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0) for number in (1, 2)]  # noqa: RUF012

    def sweep(self, task: str) -> Sweep:  # noqa: ARG002 - the same space for all tasks
        space = {name: Parameter("uniform", (), 0.0, 1.0) for name in "abcd"}
        space |= {"lr": Parameter("loguniform", (), math.log(1e-4), 0.0), "kind": Parameter(CHOICE, (1, 2, 3, 4))}
        return Sweep(space=space, sampling="random", at_once=AT_ONCE, most_trials=10**6)

    def curve(self, task: str, configuration: dict[str, Drawn]) -> list[float]:
        rho, number = task.split()
        values = [float(configuration[name]) for name in "abcd"]
        values += [1 + math.log10(float(configuration["lr"])) / 4, float(configuration["kind"])]
        final, early = (self._hill(random.Random(f"{number} {which}"), values) for which in ("final", "early"))
        dice, told = random.Random(repr(values)), []
        for epoch in range(1, self.epochs + 1):
            share = epoch / self.epochs
            q = float(rho) + (1 - float(rho)) * share
            mixed = q * final + math.sqrt(max(0.0, 1 - q * q)) * early
            told.append(mixed - 6 * (1 - share) ** 2 + dice.gauss(0, 0.1) * (1 - share))
        return told

    def _hill(self, dice: random.Random, values: Sequence[float]) -> float:
        """Return a value with a mean of about 0 and a standard deviation near 1."""
        *numbers, kind = values
        tops = [(dice.random(), dice.uniform(1, 6)) for _ in numbers]
        kinds = [dice.uniform(-0.7, 0.7) for _ in range(4)]
        return 1.8 + kinds[int(kind) - 1] - sum(w * (x - top) ** 2 for x, (top, w) in zip(numbers, tops, strict=True))
