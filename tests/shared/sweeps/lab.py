"""A world in which sweeps run: a trainer whose accuracy depends on its learning rate, one value per epoch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage

from shared.adapters.sweeps.studies import distribution
from shared.jobs.search import Sweep
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest, SweepRequest
from shared.runs.model import Run
from shared.sweeps.model import TrialState
from shared.sweeps.sampling import draw
from tests.fakes.sweeps import studies, sweep_of
from tests.fakes.world import World, trainers_folder

EPOCHS = 4
JOB = "{command: 'x ${{inputs.lr}} ${{inputs.size}}', environment: 'azureml:e:1', inputs: {lr: 0.1, size: 32}, " + (
    "outputs: {models: {type: uri_folder}, metrics: {type: uri_folder}}}"
)


def new_world(tmp: Path) -> World:
    (tmp / "plain").mkdir(exist_ok=True)
    (tmp / "plain" / "job.yaml").write_text(JOB)
    return World(trainers_folder(tmp))


def asked(world: World, sweep: dict[str, Any], key: str | None = None, **fields: Any) -> Run:
    parameters = {"lr": "0.001..0.1", "size": "32,64"}
    request = {"trainer": "plain", "cluster": "cpu-cluster", "parameters": parameters, **fields}
    return create.create_run(world.system, RunRequest(**request, sweep=SweepRequest("accuracy", **sweep)), key)


def crowded(world: World, trials: int, at_once: int) -> Run:
    """Return a sweep with this many trials of nine values each; all but the last `at_once` have ended and cost a
    cent."""
    sweep = asked(world, {"trials": trials, "at_once": at_once, "stop": "asha"})
    searched = sweep.asked.request.sweep
    assert searched
    for begin in range(0, trials - at_once, 7):  # as many as fit into one commit
        study = studies(world.journals).open(sweep.name, searched)
        for number in range(begin, min(begin + 7, trials - at_once)):
            drawn = draw(searched, f"s{number}", ())
            study.add_values(study.add(drawn), [accuracy(float(drawn["lr"]), epoch) for epoch in range(1, 10)])
            study.end(number, TrialState.COMPLETED, accuracy(float(drawn["lr"]), 9), 0.01)
        study.commit()
    return sweep


def accuracy(lr: float, epoch: int) -> float:
    """Return the accuracy, which is best at a learning rate of 0.01."""
    return (1 - abs(math.log10(lr) + 2) / 2) * (1 - 0.5**epoch)


def epoch(world: World) -> None:
    """Let every job train one epoch and report its value, handle all messages, and let some seconds pass."""
    for name, job in list(world.jobs.jobs.items()):
        if job.raw == "Queued":
            world.job_goes(name, "Running")
        elif job.raw == "Running":
            _tell(world, name, float(job.spec["inputs"]["lr"]))
        elif job.raw == "Canceled" and not world.runs.get(name).value.archive.at:
            world.job_goes(name, "Canceled")
    world.deliver_all()
    world.run_until_idle()
    world.clock.advance(6)
    world.run_until_idle()


def _tell(world: World, name: str, lr: float) -> None:
    blob = world.blobs.containers.get("azureml-blobstore", {}).get(_metrics(name))
    told = len(blob.data.splitlines()) if blob else 0
    if told + 1 == EPOCHS:
        world.job_goes(name, "Completed")
    write(world, name, [accuracy(lr, epoch) for epoch in range(1, told + 2)])


def write(world: World, name: str, values: list[float]) -> None:
    """Write the values that a trial has reported so far."""
    lines = (json.dumps({"step": step, "accuracy": value}) for step, value in enumerate(values, 1))
    world.blobs.put("azureml-blobstore", _metrics(name), "".join(f"{line}\n" for line in lines).encode())


def _metrics(name: str) -> str:
    return f"trainyard/{name}/metrics/metrics.jsonl"


def play(world: World, epochs: int = 60) -> None:
    """Repeat epochs until no run is live."""
    world.run_until_idle()
    for _ in range(epochs):
        if not world.unsettled():
            return
        epoch(world)
    raise AssertionError(f"not over after {epochs} epochs: {world.unsettled()}, {world.queues.messages}")


def trials(world: World, sweep: Run) -> list[Run]:
    return sorted(
        (run for run in world.runs.newest(1000) if sweep_of(run) == sweep.name),
        key=lambda run: int(run.name.rpartition("-t")[2]),
    )


def sweep_looks(world: World) -> int:
    return len(world.queues.messages.get("checks", ()))


def study(world: World, name: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=JournalStorage(world.journals[name]))


def space(sweep: Sweep) -> dict[str, optuna.distributions.BaseDistribution]:
    """Return the search space for Optuna."""
    return {name: optuna.distributions.json_to_distribution(distribution(each)) for name, each in sweep.space.items()}
