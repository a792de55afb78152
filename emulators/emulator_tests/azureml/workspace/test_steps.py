"""A step's inputs from the pipeline and from other steps."""

from __future__ import annotations

from emulators.azureml.bodies import component_body, pipeline_body
from emulators.azureml.kernel.models import Asset, Job
from emulators.azureml.workspace.families import written_output
from emulators.azureml.workspace.steps import Pipeline, Steps

SPEC = {"type": "command", "command": "x", "outputs": {"artifacts": {"type": "uri_folder"}}}
BODY = {
    "jobType": "Pipeline",
    "inputs": {"where": {"jobInputType": "literal", "value": "many"}},
    "settings": {"default_datastore": "azureml:mine"},
    "jobs": {"one": {"type": "command", "componentId": "azureml:c:1", "computeId": "${{parent.inputs.where}}"}},
}


def test_a_cluster_may_be_an_input_of_the_pipeline() -> None:
    """A published pipeline may have the cluster of its steps as an input, which the submitter chooses."""
    assert component_body.parse(SPEC).kind == "command"
    spec = pipeline_body.parse("p", BODY)
    steps = Steps(lambda _: Asset("components", "c", "1", {"componentSpec": SPEC}, ""))
    body = steps.body(Pipeline("p", spec, {}), spec.steps["one"], lambda *_: {})
    assert body["computeId"] == "many"
    assert "uri" not in body["outputs"]["artifacts"], "it lies where the job's own files are"


def test_a_file_may_be_given_to_a_component_that_takes_folders() -> None:
    """The command gets the path of the file, as in Azure."""
    component = {**SPEC, "inputs": {"data": {"type": "uri_folder"}}}
    file = {"job_input_type": "uri_file", "uri": "wasbs://c@a.blob.core.windows.net/x.csv"}
    one = {"type": "command", "componentId": "azureml:c:1", "inputs": {"data": file}}
    spec = pipeline_body.parse("p", {**BODY, "jobs": {"one": one}})
    steps = Steps(lambda _: Asset("components", "c", "1", {"componentSpec": component}, ""))
    body = steps.body(Pipeline("p", spec, {}), spec.steps["one"], lambda *_: {})
    assert body["inputs"]["data"]["jobInputType"] == "uri_file"


def test_artifacts_are_what_the_job_left_beside_its_outputs() -> None:
    """An output named artifacts is the job's ./outputs and logs; for a reused step, those of the first job. With a
    path of its own, the output is like any other."""

    def taken(**said: str) -> str:
        properties = {"jobType": "Command", "properties": {}, "outputs": {"artifacts": said}}
        if reused := said.pop("reused", ""):
            properties["properties"] = {"azureml.reusedrunid": reused}
        return str(written_output(Job("j", 1, properties, ""), "artifacts")["uri"])

    assert taken() == "azureml://jobs/j/outputs/artifacts/paths/"
    assert taken(reused="first") == "azureml://jobs/first/outputs/artifacts/paths/"
    place = "azureml://datastores/mine/paths/a/"
    assert taken(uri=place, jobOutputType="uri_folder") == place
