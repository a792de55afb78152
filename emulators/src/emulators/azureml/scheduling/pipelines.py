"""Pipelines: each step becomes a job as soon as the step's inputs exist."""

from __future__ import annotations

from collections.abc import Mapping

from emulators.azureml.bodies.job_body import outputs_of
from emulators.azureml.bodies.pipeline_body import FromInput, FromStep, PipelineSpec
from emulators.azureml.kernel.errors import ArmError, DataError
from emulators.azureml.kernel.models import Job, Json, Status, timestamp
from emulators.azureml.kernel.sources import location
from emulators.azureml.scheduling.graph import GraphDecision, decide
from emulators.azureml.scheduling.parents import End, Means
from emulators.azureml.storage.blobs import Place
from emulators.azureml.workspace.families import places_of, shared, step_name, written_output
from emulators.azureml.workspace.jobs import PROPERTY, Label, Listing
from emulators.azureml.workspace.steps import Pipeline, fingerprint

FINGERPRINT = "azureml.stepFingerprint"
LONGEST_VALUE = 1 << 16  # bytes of an output that is a value
LOOKED_THROUGH = 20  # earlier runs of a step to search for a completed one


class PipelineDriver:
    log_name = "logs/azureml/executionlogs.txt"  # where MLClient's stream expects a pipeline's log
    look_seconds: float | None = None

    def __init__(self, means: Means, job: Job) -> None:
        spec = means.workspace.spec(job)
        assert isinstance(spec, PipelineSpec)
        self._means, self._job, self._spec = means, job, spec
        self._workspace, self._steps = means.workspace, means.workspace.families.steps
        self._children = {child.step: child for child in means.workspace.jobs.children(job.name)}
        self._told: set[str] = set()  # steps whose end is in the log
        self._skipped: dict[str, tuple[str, ...]] = {}  # steps that a condition excludes, by the condition
        self._values: dict[tuple[str, str], str] = {}  # of outputs that are numbers, texts or booleans

    async def step(self) -> tuple[End | None, list[str]]:
        begun = {name: child.status for name, child in self._children.items()}  # reading values takes time
        lines = self._ended() + await self._decide_conditions(begun)
        decision = self._decision(begun)
        for name in decision.cancel:
            self._means.cancel(self._children[name].name)
        for name in decision.start:
            await self._read_values(name)
            lines.append(self._start(name))
        if any(self._children[name].status is Status.COMPLETED for name in decision.start):
            more = await self.step()  # reused steps allow others to start
            return more[0], lines + more[1]
        if not decision.ended:
            return None, lines
        return self._end(decision, lines)

    def _decision(self, begun: Mapping[str, Status]) -> GraphDecision:
        return decide(
            {name: self._spec.needs(name) for name in self._spec.steps},
            begun,
            continues=self._spec.continues,
            canceled=self._job.status is Status.CANCEL_REQUESTED,
            skipped=[step for each in self._spec.conditions for step in self._skipped.get(each.name, ())],
        )

    async def _decide_conditions(self, begun: Mapping[str, Status]) -> list[str]:
        """Read the values of conditions that are now known, and return lines about them."""
        lines = []
        for condition in self._spec.conditions:
            value = condition.value
            waits = isinstance(value, FromStep) and begun.get(value.step) is not Status.COMPLETED
            if condition.name in self._skipped or waits:
                continue
            said = await self._value(value)
            self._skipped[condition.name] = condition.skipped(said.lower() == "true")
            names = ", ".join(self._skipped[condition.name]) or "none"
            lines.append(f"Condition {condition.name} is {said!r:.80}; not started: {names}")
        return lines

    async def _value(self, value: FromInput | FromStep | bool) -> str:
        if isinstance(value, FromStep):
            return await self._read(value)
        return str(value if isinstance(value, bool) else (self._spec.inputs.get(value.name) or {}).get("value"))

    def _ended(self) -> list[str]:
        """Record the outputs of completed steps, and return the ended steps."""
        lines = []
        for name, child in self._children.items():
            if child.status in (Status.COMPLETED, Status.FAILED, Status.CANCELED) and name not in self._told:
                self._told.add(name)
                lines.append(f"Step {name} (job {child.name}): {child.status}{_reused(child)}")
                if child.status is Status.COMPLETED:
                    self._register_outputs(name, child)
        return lines

    async def _read_values(self, step: str) -> None:
        """Read the values that other steps wrote for this step. Raises DataError for an unwritten or long value."""
        for given in self._spec.steps[step].inputs.values():
            if isinstance(given, FromStep) and self._is_value(given):
                self._values[given.step, given.output] = await self._read(given)

    def _is_value(self, given: FromStep) -> bool:
        declared = self._steps.component(self._spec.steps[given.step]).outputs.get(given.output)
        return declared is not None and declared.is_literal

    async def _read(self, given: FromStep) -> str:
        child, site = self._children[given.step], self._means.site
        what = f"Step {given.step!r} (job {child.name}): its output {given.output!r}, a value"
        place = site.places.place(location(places_of(child)[given.output]["uri"], what))
        if not isinstance(place, Place) or not await site.blobs.holds(place, "uri_file"):
            raise DataError(f"{what}, was not written.")
        data = b"".join([piece async for piece in site.blobs.read(place)])
        if len(data) > LONGEST_VALUE:
            raise DataError(f"{what}, has {len(data)} bytes; at most {LONGEST_VALUE} are a value.")
        return data.decode("utf-8", "replace").removesuffix("\n")

    def _output_of(self, step: str, output: str) -> Json:
        """Return an input's body for an output of a completed step."""
        value = self._values.get((step, output))
        return {**written_output(self._children[step], output), **({} if value is None else {"value": value})}

    def _register_outputs(self, name: str, child: Job) -> None:
        given = {output: taken for output, taken in self._spec.steps[name].outputs.items() if isinstance(taken, str)}
        if given:
            places = places_of(child)
            found = {taken: places[output] for output, taken in given.items()}
            self._workspace.update(self._job, places={**self._job.places, **found})

    def _start(self, name: str) -> str:
        step = self._spec.steps[name]
        pipeline = Pipeline(self._job.name, self._spec, shared(self._job.properties))
        body = self._steps.body(pipeline, step, self._output_of)
        mark = fingerprint(step, self._steps.component(step), body)
        root = self._job.properties["properties"].get("azureml.rootpipelinerunid", self._job.name)
        body["properties"] = {
            "azureml.pipelinerunid": self._job.name,
            "azureml.rootpipelinerunid": root,
            "azureml.nodeName": name,
        }
        if mark:
            body["properties"][FINGERPRINT] = mark
        earlier = self._earlier(mark) if mark and self._spec.reuses else None
        if earlier:
            body["properties"] |= {"azureml.isreused": "true", "azureml.reusedrunid": earlier.name}
        places = places_of(earlier) if earlier else None
        child, _ = self._workspace.submit(step_name(self._job.name, name), body, self._job.name, name, places)
        self._children[name] = child
        if earlier:
            self._complete(child)
        return f"Step {name} starts as job {child.name}"

    def _earlier(self, mark: str) -> Job | None:
        """Return a completed step with the same fingerprint, whose outputs can be reused, or None."""
        listing = Listing(archived=None, labels=(Label(PROPERTY, FINGERPRINT, mark),), of=None)
        found = self._workspace.jobs.page(listing, LOOKED_THROUGH)
        done = [job for job in found if job.status is Status.COMPLETED]
        return next((job for job in done if "azureml.reusedrunid" not in job.properties["properties"]), None)

    def _complete(self, child: Job) -> None:
        for status in (Status.QUEUED, Status.PREPARING, Status.RUNNING, Status.FINALIZING):
            self._workspace.set_status(child, status)
        self._workspace.set_status(child, Status.COMPLETED, ended=timestamp())

    def _end(self, decision: GraphDecision, lines: list[str]) -> tuple[End, list[str]]:
        if self._job.status is Status.CANCEL_REQUESTED:
            return End(Status.CANCELED), [*lines, "The pipeline was canceled."]
        if decision.failed:
            error = " ".join([*map(self._why, decision.failed), _never(decision)]).strip()
            return End(Status.FAILED, error), [*lines, error]
        try:
            self._register()
        except ArmError as error:
            return End(Status.FAILED, error.message), [*lines, error.message]
        return End(), [*lines, "All steps have completed."]

    def _why(self, name: str) -> str:
        child = self._children[name]
        said = ((child.error or {}).get("error") or {}).get("message", "")
        how = "was canceled" if child.status is Status.CANCELED else "failed"
        return f"Step {name!r} (job {child.name}) {how}{': ' + said if said else '.'}"

    def _register(self) -> None:
        """Register the pipeline's outputs with a named asset."""
        for output in outputs_of(self._job.name, {**self._job.properties, "outputs": self._outputs()}):
            if output.asset:
                self._means.site.register(self._job, output)

    def _outputs(self) -> Json:
        """Return the pipeline's outputs with their actual locations."""
        said = self._spec.outputs
        return {
            name: {**(said.get(name) or {}), "uri": place["uri"], "jobOutputType": place["type"]}
            for name, place in self._job.places.items()
        }


def _reused(child: Job) -> str:
    earlier = child.properties["properties"].get("azureml.reusedrunid")
    return f", with the outputs of job {earlier}, which ran the same component on the same inputs" if earlier else ""


def _never(decision: GraphDecision) -> str:
    return f"Not started: {', '.join(decision.never)}." if decision.never else ""
