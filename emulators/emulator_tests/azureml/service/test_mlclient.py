"""The unmodified azure.ai.ml.MLClient works with the part end to end, and every answer matches Microsoft's OpenAPI."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient

from emulator_tests.azureml.clouds import CODE, Cloud, cluster_body, gone, told
from emulator_tests.azureml.conftest import Receiver
from emulators.process import wait_for

# The SDK warns about its own experimental classes. The contract fixture checks the part's answers.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("contract")]

# Two seconds, because on a busy machine the job may end before the SDK's first poll, which then prints no log.
COMMAND = "python probe.py --data ${{inputs.data}} --models ${{outputs.models}} --metrics ${{outputs.metrics}}"
FILES = {"a.bin": 10, "sub/b.bin": 5_000_000, "empty": 0}


def job(name: str, command: str, **changes: Any) -> Any:
    from azure.ai.ml import command as command_job

    values = {"code": str(CODE), "environment": "azureml:AzureML-local:1", "compute": "cpu-cluster", **changes}
    return command_job(name=name, command=command, **values)


@pytest.fixture(scope="module")
def streamed(cloud: Cloud, ml: Any, storage: BlobServiceClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run the job `two-nodes` (two nodes, two processes each, an input, two outputs); return what `stream` printed.

    The job waits until `stream` has printed its first word, because `stream` prints only the end of a finished job.
    """
    from azure.ai.ml import Input, Output, PyTorchDistribution

    for name, size in FILES.items():
        storage.get_blob_client("drops", f"digits/one/{name}").upload_blob(b"x" * size, overwrite=True)
    seen = tmp_path_factory.mktemp("stream") / "seen"
    wanted = job(
        "two-nodes",
        f"echo BEGUN; until test -e '{seen}'; do sleep 0.1; done; {COMMAND}",
        instance_count=2,
        distribution=PyTorchDistribution(process_count_per_instance=2),
        experiment_name="digits",
        inputs={"data": Input(type="uri_folder", path="azureml://datastores/drops/paths/digits/one/")},
        outputs={"models": Output(type="uri_folder"), "metrics": Output(type="uri_folder")},
        tags={"drop": "digits/one"},
    )
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []

        def write(text: str) -> int:
            written.append(text)
            if "BEGUN" in text:
                seen.touch()
            return len(text)

        patch.setattr("sys.stdout.write", write)
        ml.jobs.create_or_update(wanted)
        ml.jobs.stream("two-nodes")
    return "".join(written)


@pytest.fixture(scope="module")
def code_id(ml: Any, streamed: str) -> str:
    """The ARM id of the probe's code version."""
    return str(ml.jobs.get("two-nodes").code)


def test_stream_prints_the_log_and_the_end(streamed: str) -> None:
    """`jobs.stream` follows a running job, and prints the log and the summary."""
    assert "RunId: two-nodes" in streamed
    assert "DATA" in streamed
    assert "DONE" in streamed
    assert "Execution Summary" in streamed


def test_every_rank_has_the_variables_of_pytorch_distribution(cloud: Cloud, streamed: str) -> None:
    """Four ranks on two nodes know their rank, share one master, and have one working folder per node."""
    seen = [told(cloud.log("two-nodes", f"user_logs/std_log_process_{r}.txt"), "ENV") for r in range(4)]
    places = [(e["RANK"], e["NODE_RANK"], e["LOCAL_RANK"], e["WORLD_SIZE"], e["LOCAL_WORLD_SIZE"]) for e in seen]
    assert places == [(str(r), str(r // 2), str(r % 2), "4", "2") for r in range(4)]
    assert {e["AZUREML_RUN_ID"] for e in seen} == {"two-nodes"}
    assert len({(e["MASTER_ADDR"], e["MASTER_PORT"]) for e in seen}) == 1
    assert len({e["cwd"] for e in seen}) == 2
    assert len({e["AZ_BATCH_NODE_ID"] for e in seen}) == 2


def test_inputs_are_files_with_the_blobs_bytes(cloud: Cloud, streamed: str) -> None:
    """A uri_folder input is a folder with every blob at its path, including empty and large blobs."""
    log = cloud.log("two-nodes", "user_logs/std_log_process_3.txt")
    assert told(log, "DATA") == {Path(name).name: size for name, size in FILES.items()}


def test_outputs_of_all_nodes_arrive_in_one_folder(cloud: Cloud, streamed: str, storage: BlobServiceClient) -> None:
    """The output files of all ranks are in azureml/JOB/OUTPUT/. ./outputs is stored beside the run's logs."""
    default = cloud.arm("GET", "datastores?isDefault=true")["value"][0]["properties"]["containerName"]
    models = storage.get_container_client(default).list_blob_names(name_starts_with="azureml/two-nodes/")
    assert set(models) == {
        "azureml/two-nodes/metrics/metrics.jsonl",
        *(f"azureml/two-nodes/models/rank{r}.bin" for r in range(4)),
    }
    notes = storage.get_container_client("azureml").list_blob_names(
        name_starts_with="ExperimentRun/dcid.two-nodes/outputs"
    )
    assert [Path(name).name for name in notes] == [f"note-{r}.txt" for r in range(4)]


def test_download_fetches_logs_and_named_outputs(ml: Any, streamed: str, tmp_path: Path) -> None:
    """`jobs.download(all=True)` brings named outputs and artifacts through the TLS front of the storage."""
    ml.jobs.download("two-nodes", download_path=tmp_path, all=True)
    assert (tmp_path / "named-outputs/models/rank3.bin").read_bytes() == b"3" * 1000
    assert (tmp_path / "artifacts/outputs/note-0.txt").read_text() == "rank 0"
    assert "DONE" in (tmp_path / "artifacts/user_logs/std_log_process_2.txt").read_text()


def test_statuses_are_published_in_event_grids_schema(streamed: str, receiver: Receiver) -> None:
    """Each status is published as a RunStatusChanged event with the documented data, and success as a RunCompleted
    event."""
    wait_for(lambda: len(receiver.of("two-nodes")) == 7, 60, "seven events")
    events = receiver.of("two-nodes")
    changes = [e["data"]["runStatus"] for e in events if e["eventType"].endswith("RunStatusChanged")]
    assert changes == ["NotStarted", "Queued", "Preparing", "Running", "Finalizing", "Completed"]
    completed = [e for e in events if e["eventType"] == "Microsoft.MachineLearningServices.RunCompleted"]
    assert [set(e["data"]) for e in completed] == [
        {"experimentId", "experimentName", "runId", "runType", "runTags", "runProperties"}
    ]
    assert completed[0]["subject"] == f"experiments/{completed[0]['data']['experimentId']}/runs/two-nodes"
    assert completed[0]["data"]["runTags"] == {"drop": "digits/one"}
    assert len({e["id"] for e in events}) == 7


def test_code_that_is_there_is_not_uploaded_again(ml: Any, cloud: Cloud, streamed: str) -> None:
    """A second submission of the same folder finds the code by its hash and uploads nothing."""
    before = len(cloud.call("GET", "/control/requests").json())
    ml.jobs.create_or_update(job("same-code", "python probe.py"))
    paths = [(e["method"], e["path"]) for e in cloud.call("GET", "/control/requests").json()[before:]]
    assert not [path for _, path in paths if path.endswith("startPendingUpload")]
    assert [method for method, _ in paths] == ["GET", "GET", "PUT"]
    cloud.wait("same-code")


def test_warm_submission_is_one_request(ml: Any, cloud: Cloud, code_id: str) -> None:
    """With the code as an ARM id and a registered environment, submitting is exactly one request."""
    from azure.ai.ml.entities import Environment

    ml.environments.create_or_update(Environment(name="trainer", version="3", image="python:3.11"))
    assert ml.environments.get("trainer", version="3").image == "python:3.11"
    assert ml.environments.get("trainer", label="latest").version == "3"
    before = len(cloud.call("GET", "/control/requests").json())
    ml.jobs.create_or_update(job("warm", "python probe.py", code=code_id, environment="azureml:trainer:3"))
    entries = cloud.call("GET", "/control/requests").json()[before:]
    assert [(e["method"], e["path"].rpartition("/")[2]) for e in entries] == [("PUT", "warm")]
    assert cloud.wait("warm")["status"] == "Completed"


def test_a_job_submitted_twice_runs_once(ml: Any, cloud: Cloud, code_id: str) -> None:
    """A second PUT of a finished job returns the finished job and runs nothing. A different job with the same name
    is refused."""
    wanted = job("once", "python probe.py", code=code_id)
    ml.jobs.create_or_update(wanted)
    cloud.wait("once")
    assert ml.jobs.create_or_update(job("once", "python probe.py", code=code_id)).status == "Completed"
    with pytest.raises(HttpResponseError, match="already exists, with another command"):
        ml.jobs.create_or_update(job("once", "python probe.py --fail 3", code=code_id))
    assert cloud.log("once").count("DONE") == 1


def test_local_folder_becomes_an_input(ml: Any, cloud: Cloud, code_id: str, tmp_path: Path) -> None:
    """The SDK uploads a local folder through the TLS front into the default datastore, and the job reads it."""
    from azure.ai.ml import Input

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "größe.txt").write_text("hello")
    inputs = {"data": Input(type="uri_folder", path=str(tmp_path / "in"))}
    ml.jobs.create_or_update(job("uploads", "python probe.py --data ${{inputs.data}}", code=code_id, inputs=inputs))
    assert cloud.wait("uploads")["status"] == "Completed"
    assert told(cloud.log("uploads"), "DATA") == {"größe.txt": 5}


def test_cluster_from_creation_to_deletion(ml: Any, cloud: Cloud) -> None:
    """begin_create_or_update, get, list, update, list_nodes and begin_delete work on a cluster."""
    from azure.ai.ml.entities import AmlCompute

    wanted = AmlCompute(
        name="small", size="Standard_D2s_v5", min_instances=1, max_instances=2, tier="low_priority",
        idle_time_before_scale_down=60,
    )  # fmt: skip
    assert ml.compute.begin_create_or_update(wanted).result().provisioning_state == "Succeeded"
    assert {"small", "cpu-cluster"} <= {compute.name for compute in ml.compute.list()}
    wait_for(lambda: [vars(n)["nodeState"] for n in ml.compute.list_nodes("small")] == ["idle"], 60, "an idle node")
    assert ml.compute.get("small").tier == "low_priority"
    wanted.min_instances, wanted.idle_time_before_scale_down = 0, 1
    ml.compute.begin_update(wanted).result()
    assert ml.compute.get("small").min_instances == 0
    wait_for(lambda: not list(ml.compute.list_nodes("small")), 60, "no node left")
    ml.compute.begin_delete("small").result()
    with pytest.raises(ResourceNotFoundError, match="small"):
        ml.compute.get("small")


@pytest.mark.parametrize("spelling", ["LowPriority", "low_priority", "lowpriority"])
def test_the_tier_of_a_cluster_is_taken_in_any_spelling(ml: Any, spelling: str) -> None:
    """The SDK sends the "LowPriority" of its docstring as `Lowpriority`, and Resource Manager accepts any case."""
    from azure.ai.ml.entities import AmlCompute

    ml.compute.begin_create_or_update(AmlCompute(name="tiers", size="Standard_D2s_v5", tier=spelling)).result()
    assert ml.compute.get("tiers").tier == "low_priority"
    ml.compute.begin_delete("tiers").result()


def test_an_update_changes_neither_size_nor_tier(ml: Any) -> None:
    """An update keeps size and tier and reports success, as in Azure (Azure/azure-rest-api-specs#18889), in any
    spelling of the name."""
    from azure.ai.ml.entities import AmlCompute

    ml.compute.begin_create_or_update(AmlCompute(name="fixed", size="Standard_D2s_v5", tier="low_priority")).result()
    other = AmlCompute(name="Fixed", size="Standard_DS4_v2", tier="dedicated", max_instances=7)
    ml.compute.begin_create_or_update(other).result()
    kept = ml.compute.get("fixed")
    assert (kept.size, kept.tier, kept.max_instances) == ("Standard_D2s_v5", "low_priority", 7)
    ml.compute.begin_delete("fixed").result()


def test_datastores_are_listed_created_and_deleted(ml: Any, storage: BlobServiceClient) -> None:
    """The default datastore is listed, a new datastore is created with its container, and a missing datastore is
    not found."""
    from azure.ai.ml.entities import AzureBlobDatastore

    assert ml.datastores.get_default().name == "workspaceblobstore"
    ml.datastores.create_or_update(
        AzureBlobDatastore(name="extra", account_name="devstoreaccount1", container_name="extra-container")
    )
    assert ml.datastores.get("extra").container_name == "extra-container"
    assert storage.get_container_client("extra-container").exists()
    assert {"drops", "extra", "workspaceartifactstore"} <= {d.name for d in ml.datastores.list()}
    ml.datastores.delete("extra")
    with pytest.raises(ResourceNotFoundError, match="extra"):
        ml.datastores.get("extra")


def test_failing_job_says_why(ml: Any, cloud: Cloud, code_id: str, receiver: Receiver) -> None:
    """The run's details have the exit code, and the log and last output of the failing rank. No RunCompleted event
    is sent."""
    from azure.ai.ml import PyTorchDistribution

    command = "python probe.py --fail 7 --fail-rank 1"
    ranks = {"instance_count": 2, "distribution": PyTorchDistribution(process_count_per_instance=1)}
    ml.jobs.create_or_update(job("fails", command, code=code_id, **ranks))
    assert cloud.wait("fails")["status"] == "Failed"
    assert cloud.details("fails")["error"]["error"]["message"] == (
        "Execution failed. User process 'python' exited with status code 7. Please check log file "
        "'user_logs/std_log_process_1.txt' for error details. Error: ValueError: the loss is not a number"
    )
    wait_for(lambda: receiver.of("fails")[-1]["data"].get("runStatus") == "Failed", 60, "the last event")
    assert not [e for e in receiver.of("fails") if e["eventType"].endswith("RunCompleted")]
    with pytest.raises(Exception, match="the loss is not a number"):
        ml.jobs.stream("fails")


def test_cancel_ends_a_running_job(ml: Any, cloud: Cloud, code_id: str, tmp_path: Path) -> None:
    """begin_cancel sends SIGTERM and later SIGKILL. The job is Canceled, and its log is kept."""
    command = f"python probe.py --stubborn --gate {tmp_path}/never"
    ml.jobs.create_or_update(job("cancelled", command, code=code_id))
    wait_for(lambda: "WAITING" in cloud.log("cancelled"), 60, "the job to wait")
    pid = int(told(cloud.log("cancelled"), "ENV")["pid"])
    ml.jobs.begin_cancel("cancelled").result()
    assert ml.jobs.get("cancelled").status == "Canceled"
    assert "got SIGTERM" in cloud.log("cancelled")
    assert gone(pid)


def test_preempted_job_runs_again_and_finds_its_files(
    ml: Any, cloud: Cloud, code_id: str, tmp_path: Path, receiver: Receiver
) -> None:
    """A job that is requeued after losing a node has both attempts in its log, and its outputs keep the first
    attempt's files."""
    from azure.ai.ml import Output, PyTorchDistribution

    command = f"python probe.py --models ${{{{outputs.models}}}} --gate {tmp_path}/go"
    ranks = {"instance_count": 2, "distribution": PyTorchDistribution(process_count_per_instance=1)}
    outputs = {"models": Output(type="uri_folder", path="azureml://datastores/workspaceblobstore/paths/kept/")}
    ml.jobs.create_or_update(job("preempted", command, code=code_id, outputs=outputs, **ranks))
    log = "user_logs/std_log_process_1.txt"
    wait_for(lambda: "WAITING" in cloud.log("preempted", log), 60, "the first attempt to wait")
    victim = next(n for n in reversed(cloud.nodes("cpu-cluster")) if n["job"] == "preempted")
    cloud.call("POST", "/control/clusters/cpu-cluster/preempt", {"node": victim["index"], "job": "queued"})
    wait_for(lambda: cloud.log("preempted", log).count("WAITING") == 2, 60, "the second attempt to wait")
    (tmp_path / "go").touch()
    assert cloud.wait("preempted")["status"] == "Completed"
    text = cloud.log("preempted", log)
    assert "[azureml] attempt 2 runs the command again: a node was preempted" in text
    assert told(text, "FOUND") == ["rank0.bin", "rank1.bin"]
    first, second = (json.loads(e) for e in re.findall(r"^ENV (.*)$", text, re.MULTILINE))
    assert first["AZ_BATCH_NODE_ID"] == victim["id"] != second["AZ_BATCH_NODE_ID"]
    changes = [e["data"]["runStatus"] for e in receiver.of("preempted") if "runStatus" in e["data"]]
    assert changes.count("Queued") == changes.count("Running") == 2


def test_listing_pages_newest_first(ml: Any, cloud: Cloud) -> None:
    """jobs.list returns each job once over several pages, newest first, without archived jobs."""
    cloud.arm("PUT", "computes/crowd", cluster_body(maximum=0))
    names = [f"crowd-{n:03}" for n in range(60)]
    for name in names:
        cloud.submit(name, "crowd", "true")
    ml.jobs.archive("crowd-030")
    listed = [j.name for j in ml.jobs.list() if j.name.startswith("crowd-")]
    assert listed == [name for name in reversed(names) if name != "crowd-030"]


def test_unknown_names_are_not_found(ml: Any) -> None:
    """Missing jobs, computes and code versions raise ResourceNotFoundError with the name."""
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        ml.jobs.get("nowhere")
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        ml.compute.get("nowhere")
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        ml.environments.get("nowhere", version="1")


def test_a_job_for_an_unknown_cluster_is_refused(ml: Any, code_id: str) -> None:
    """Submitting to a missing cluster fails at once, with the names of the existing clusters."""
    with pytest.raises(HttpResponseError, match=r"'nowhere' was not found; there are: .*cpu-cluster"):
        ml.jobs.create_or_update(job("lost", "python probe.py", code=code_id, compute="nowhere"))


def test_a_job_without_a_compute_runs(ml: Any, cloud: Cloud) -> None:
    """A serverless job runs without a named cluster, no cluster is listed for it, and its two processes find their
    master."""
    from azure.ai.ml import PyTorchDistribution

    spread = PyTorchDistribution(process_count_per_instance=2)
    words = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"
    ml.jobs.create_or_update(job("no-compute", words, code=None, compute=None, distribution=spread))
    assert cloud.wait("no-compute")["status"] == "Completed"
    told = {cloud.log("no-compute", f"user_logs/std_log_process_{rank}.txt").strip() for rank in range(2)}
    assert len({line.rpartition(" ")[2] for line in told}) == 1
    assert {line.partition(" at 127.0.0.1:")[0] for line in told} == {"0 of 2", "1 of 2"}
    assert "serverless" not in [compute.name for compute in ml.compute.list()]


def test_a_cluster_that_was_read_can_be_changed_and_sent(ml: Any) -> None:
    """A cluster can be read, changed and sent again, as notebooks do."""
    from azure.ai.ml.entities import AmlCompute

    made = AmlCompute(name="changing", size="Standard_D2s_v5", max_instances=2, idle_time_before_scale_down=120)
    ml.compute.begin_create_or_update(made).result()
    found = ml.compute.get("changing")
    found.idle_time_before_scale_down = 60
    assert ml.compute.begin_create_or_update(found).result().idle_time_before_scale_down == 60
    assert ml.compute.get("changing").max_instances == 2
    ml.compute.begin_delete("changing").result()
