"""Sweeps: trials become jobs, up to the allowed number at once, and the best trial's outputs become the sweep's."""

from __future__ import annotations

import json
import time
from datetime import datetime

from emulators.azureml.bodies import sampled
from emulators.azureml.bodies.job_body import outputs_of
from emulators.azureml.bodies.sweep_body import SweepSpec
from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.models import TERMINAL, Job, Json, Status
from emulators.azureml.scheduling.early_termination import to_end
from emulators.azureml.scheduling.parents import End, Means
from emulators.azureml.scheduling.sampling import Sampling
from emulators.azureml.workspace.families import places_of, trial_name

DRAWN = "azureml.sweepDraw"  # the property of a trial's job with its draw
LOOK_SECONDS = 1.0
MOST_UNREAD = 60  # consecutive reads without an answer from MLflow


class SweepDriver:
    log_name = "azureml-logs/hyperdrive.txt"  # where MLClient's stream expects a sweep's log
    look_seconds: float | None = LOOK_SECONDS

    def __init__(self, means: Means, job: Job) -> None:
        spec = means.workspace.spec(job)
        assert isinstance(spec, SweepSpec)
        self._means, self._job, self._spec, self._workspace = means, job, spec, means.workspace
        self._trials = {int(child.step): child for child in means.workspace.jobs.children(job.name)}
        begun = [self._trials[number].properties["properties"][DRAWN] for number in range(len(self._trials))]
        self._sampling = Sampling(job.name, spec, [json.loads(drawn) for drawn in begun])
        self._metric: dict[int, list[float]] = {}  # each trial's values
        self._over: set[int] = set()  # trials whose final metric is known
        self._judged: dict[int, int] = {}  # trial -> the last interval that the policy evaluated
        self._lines: list[str] = []
        self._unread = 0

    async def step(self) -> tuple[End | None, list[str]]:
        self._lines = []
        await self._learn()
        end = self._advance()
        return end, self._lines

    async def _learn(self) -> None:
        """Read the metric of ended trials, and of running trials if the sweep has a stopping policy."""
        for number, trial in self._trials.items():
            ended = trial.status in TERMINAL
            if number in self._over or not (ended or (self._spec.policy and trial.status is Status.RUNNING)):
                continue
            try:
                self._metric[number] = await self._means.metrics(trial.name, self._spec.metric)
            except ArmError as error:
                self._cannot_read(error)
                return
            self._unread = 0
            if ended:
                self._over.add(number)
                best = self._best_of(number)
                self._sampling.report(number, best if trial.status is Status.COMPLETED else None)
                told = f"{self._spec.metric} {best:g}" if best is not None else f"no {self._spec.metric}"
                self._lines.append(f"Trial {number} (job {trial.name}): {trial.status}, {told}")

    def _cannot_read(self, error: ArmError) -> None:
        """Handle a metric that can't be read. MLflow's server may be starting, so a sweep ends only after a long
        time without metrics."""
        self._unread += 1
        if self._unread == 1:
            self._lines.append(f"Metrics can't be read: {error.message}")
        if self._unread > MOST_UNREAD:
            raise error

    def _advance(self) -> End | None:
        live = {number for number, trial in self._trials.items() if trial.status not in TERMINAL}
        late = self._timed_out()
        if self._job.status is Status.CANCEL_REQUESTED or late:
            for number in live:
                self._means.cancel(self._trials[number].name)
            still = any(trial.status not in TERMINAL for trial in self._trials.values())
            return None if still else End(Status.CANCELED, late)
        self._apply_policy(live)
        while len(live) < self._spec.at_once and len(self._trials) < self._sampling.most:
            live.add(self._start())
        return self._end() if not live and len(self._over) == len(self._trials) else None

    def _timed_out(self) -> str:
        limit = self._spec.timeout
        if limit is None or self._job.started is None:
            return ""
        if time.time() - datetime.fromisoformat(self._job.started).timestamp() < limit:
            return ""
        said = self._job.properties["limits"]["timeout"]
        return f"The sweep was canceled because it ran longer than its limit of {said}."

    def _apply_policy(self, live: set[int]) -> None:
        if self._spec.policy is None:
            return
        running = {number for number in live if self._trials[number].status is Status.RUNNING}
        ends = to_end(self._spec.policy, self._spec.maximize, self._metric, running, self._judged)
        self._judged |= {number: len(self._metric.get(number, ())) for number in running}
        for number, why in ends.items():
            trial = self._trials[number]
            self._lines.append(f"Trial {number} (job {trial.name}) is ended {why}")
            error = {"error": {"code": "EarlyTermination", "message": f"The trial was ended {why}."}}
            self._workspace.update(trial, error=error)
            self._means.cancel(trial.name)

    def _start(self) -> int:
        number, drawn = len(self._trials), self._sampling.draw()
        values = {key: sampled.value(parameter, drawn[key]) for key, parameter in self._spec.space.items()}
        body = sampled.trial(self._job.name, number, self._job.properties, values)
        body["properties"] |= {DRAWN: json.dumps(drawn)}
        name = trial_name(self._job.name, number)
        self._trials[number], _ = self._workspace.submit(name, body, self._job.name, str(number))
        self._lines.append(f"Trial {number} starts as job {name}: {json.dumps(values)}")
        return number

    def _best_of(self, number: int) -> float | None:
        told = self._metric.get(number)
        return (max(told) if self._spec.maximize else min(told)) if told else None

    def _end(self) -> End:
        done = [number for number, trial in self._trials.items() if trial.status is Status.COMPLETED]
        scored = {number: best for number in done if (best := self._best_of(number)) is not None}
        if not scored:
            return End(Status.FAILED, self._nothing(done))
        best = (max if self._spec.maximize else min)(scored, key=lambda number: scored[number])
        trial = self._trials[best]
        told = {"best_child_run_id": trial.name, "score": str(scored[best])}
        self._workspace.edit(self._job.name, {"properties": {**self._job.properties["properties"], **told}})
        self._workspace.update(self._job, places=places_of(trial))
        self._lines.append(f"The best is trial {best} (job {trial.name}) with {self._spec.metric} {scored[best]:g}")
        try:
            self._register()
        except ArmError as error:
            return End(Status.FAILED, error.message)
        return End()

    def _nothing(self, done: list[int]) -> str:
        if done:
            return (
                f"None of the {len(done)} trials that completed logged the primary metric {self._spec.metric!r}: "
                "log it with mlflow.log_metric under this very name."
            )
        said = next((t.error["error"]["message"] for t in self._trials.values() if t.error), "")
        return f"None of the {len(self._trials)} trials completed. {said}".strip()

    def _register(self) -> None:
        """Register the sweep's outputs with a named asset."""
        own: Json = {
            name: {**(self._spec.outputs.get(name) or {}), "uri": place["uri"], "jobOutputType": place["type"]}
            for name, place in self._job.places.items()
        }
        for output in outputs_of(self._job.name, {"outputs": own}):
            if output.asset:
                self._means.site.register(self._job, output)
