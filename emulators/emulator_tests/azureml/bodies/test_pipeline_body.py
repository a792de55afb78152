"""A pipeline's body is read completely, and an error has the name of the step."""

from __future__ import annotations

from typing import Any

import pytest

from emulators.azureml.bodies import pipeline_body
from emulators.azureml.bodies.pipeline_body import FromInput, FromStep
from emulators.azureml.kernel.errors import BadRequest

COMPONENT = "azureml:train:1"


def bound(text: str) -> dict[str, str]:
    return {"job_input_type": "literal", "value": text}


def body(**steps: Any) -> dict[str, Any]:
    made = {name: {"type": "command", "componentId": COMPONENT, **step} for name, step in steps.items()}
    return {"jobType": "Pipeline", "jobs": made, "inputs": {"raw": {}}, "outputs": {"model": {}}}


def test_bindings_are_read() -> None:
    """parent.inputs, parent.jobs and parent.outputs are bindings; any other text is a literal value."""
    spec = pipeline_body.parse(
        "p",
        body(
            one={"inputs": {"a": {"mode": "ro_mount", **bound("${{ parent.inputs.raw }}")}, "b": bound("3")}},
            two={
                "inputs": {"c": bound("${{parent.jobs.one.outputs.o}}")},
                "outputs": {
                    "m": {"value": "${{parent.outputs.model}}", "type": "literal"},
                    "n": {"uri": "azureml://x"},
                },
            },
        ),
    )
    one, two = spec.steps["one"], spec.steps["two"]
    assert one.inputs == {"a": FromInput("raw"), "b": {"jobInputType": "literal", "value": "3"}}
    assert one.modes == {"a": "ro_mount"}
    assert two.inputs == {"c": FromStep("one", "o")}
    assert two.needs == {"one"}
    assert two.outputs == {"m": "model", "n": {"uri": "azureml://x"}}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ({"one": {"inputs": {"a": bound("${{parent.inputs.row}}")}}}, "Step 'one': input 'a' .*'row'.*has: raw"),
        (
            {"one": {"inputs": {"a": bound("${{parent.jobs.two.outputs.o}}")}}},
            "Step 'one': input 'a' .*'two'.*has: one",
        ),
        ({"one": {"outputs": {"a": {"value": "${{parent.outputs.b}}"}}}}, "Step 'one': output 'a' .*'b'.*has: model"),
        ({"one": {"inputs": {"a": bound("x-${{parent.inputs.raw}}")}}}, "Step 'one', input 'a'.*stands alone"),
        ({"one": {"type": "spark"}}, "Step 'one'.*'spark'.*whose environment has pyspark"),
        (
            {
                "one": {"inputs": {"a": bound("${{parent.jobs.two.outputs.o}}")}},
                "two": {"inputs": {"a": bound("${{parent.jobs.one.outputs.o}}")}},
            },
            "in a circle: (one -> two -> one|two -> one -> two)",
        ),
    ],
)
def test_what_cannot_be_is_refused(steps: dict[str, Any], words: str) -> None:
    """A binding to a missing object, a binding within a text, an unknown kind of step and a cycle are refused with
    the step's name."""
    with pytest.raises(BadRequest, match=words):
        pipeline_body.parse("p", body(**steps))
