"""How jobs run, seen by a plain HTTP client: processes, logs, data, limits, the queue."""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path

import pytest
import requests
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas

from emulator_tests.azureml.clouds import PROBE, TERMINAL, Cloud, cluster_body, configuration, gone, launch, told
from emulators.azureml.running.uploads import NO_TEXT
from emulators.azureml.running.views import LOOKS_AGAIN
from emulators.process import wait_for
from emulators.storage import services
from emulators.storage.keys import ACCOUNT
from emulators.storage.services import Services

RUN = f"python '{PROBE}'"  # the repository may lie in a path with spaces


def test_log_grows_while_the_job_runs_and_is_exact_at_the_end(cloud: Cloud, tmp_path: Path) -> None:
    """The log can be read before the job ends; a completed job's log has every byte once, in order."""
    cloud.submit("talks", "cpu-cluster", f"{RUN} --lines 20000 --gate {tmp_path}/go")
    wait_for(lambda: cloud.log("talks").endswith("WAITING\n"), 60, "the log of a running job")
    log = cloud.log("talks")
    assert cloud.job("talks")["status"] == "Running"
    (tmp_path / "go").touch()
    assert cloud.wait("talks")["status"] == "Completed"
    assert cloud.log("talks") == log + "DONE\n"
    lines = [line for line in log.splitlines() if line.startswith("line")]
    assert lines == [f"line {n} of rank 0 é" for n in range(20000)]


def test_last_words_of_a_short_job_are_not_lost(cloud: Cloud) -> None:
    """Output without a final newline, on both streams, right before the end, is in the log."""
    cloud.submit("brief", "cpu-cluster", "printf out; printf err >&2; exit 3")
    assert cloud.wait("brief")["status"] == "Failed"
    assert cloud.log("brief") in ("outerr", "errout")
    assert "exited with status code 3." in cloud.details("brief")["error"]["error"]["message"]


def test_what_a_job_leaves_in_the_background_ends_with_it(cloud: Cloud, tmp_path: Path) -> None:
    """A process and a temporary file that a job made and forgot are gone when the job has ended."""
    cloud.submit("leaves", "cpu-cluster", f"{RUN} --child {tmp_path}/pid && mktemp")
    assert cloud.wait("leaves")["status"] == "Completed"
    temporary = Path(cloud.log("leaves").splitlines()[-1])
    assert re.fullmatch(r"job-\w+", temporary.parent.name)
    assert not temporary.parent.exists()
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: gone(pid), 60, "the child to be gone")


def test_a_job_without_distribution_runs_once_per_node(cloud: Cloud) -> None:
    """Two nodes without distribution are two processes, each of which knows its node."""
    cloud.submit("plain", "cpu-cluster", RUN, resources={"instanceCount": 2})
    assert cloud.wait("plain")["status"] == "Completed"
    logs = [cloud.log("plain", f"user_logs/std_log_process_{n}.txt") for n in range(2)]
    assert [told(log, "ENV")["NODE_RANK"] for log in logs] == ["0", "1"]
    assert "RANK" not in told(logs[0], "ENV")


def test_variables_of_the_job_win(cloud: Cloud) -> None:
    """environmentVariables override the control plane's variables; without them, ranks share the threads."""
    cloud.submit("own", "cpu-cluster", RUN, environmentVariables={"OMP_NUM_THREADS": "7", "EXTRA": "a b"})
    cloud.submit("shared", "cpu-cluster", RUN, resources={"instanceCount": 4})
    cloud.wait("own")
    cloud.wait("shared")
    own = told(cloud.log("own"), "ENV")
    assert (own["OMP_NUM_THREADS"], own["EXTRA"]) == ("7", "a b")
    assert int(told(cloud.log("shared", "user_logs/std_log_process_0.txt"), "ENV")["OMP_NUM_THREADS"]) >= 1
    assert "AML_CLIENT_KWARGS" not in own


def test_a_file_input_is_a_path_to_the_file(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A uri_file input's placeholder is the file itself, in `${{inputs.x}}` and in AZURE_ML_INPUT_x."""
    storage.get_blob_client("drops", "one.csv").upload_blob(b"1,2,3", overwrite=True)
    given = {"data": {"jobInputType": "uri_file", "uri": "azureml://datastores/drops/paths/one.csv"}}
    cloud.submit("file", "cpu-cluster", 'cat "${{inputs.data}}" "$AZURE_ML_INPUT_data"', inputs=given)
    assert cloud.wait("file")["status"] == "Completed"
    assert cloud.log("file") == "1,2,31,2,3"


def test_inputs_with_names_alike_are_all_there(cloud: Cloud, storage: BlobServiceClient) -> None:
    """`x` and `x.complete` are separate files."""
    given = {}
    for name in ("x.complete", "x"):
        storage.get_blob_client("drops", f"alike/{name}").upload_blob(f"{name} ".encode(), overwrite=True)
        given[name] = {"jobInputType": "uri_file", "uri": f"azureml://datastores/drops/paths/alike/{name}"}
    cloud.submit("alike", "cpu-cluster", "cat ${{inputs.x}} ${{inputs.x.complete}}", inputs=given)
    assert cloud.wait("alike")["status"] == "Completed"
    assert cloud.log("alike") == "x x.complete "
    cloud.arm("DELETE", "jobs/alike")  # MLClient, which lists this workspace too, takes no name with a dot


def test_a_mounted_input_can_only_be_read(cloud: Cloud, storage: BlobServiceClient) -> None:
    """As in Azure ML, a mount refuses both a new file and a change. A downloaded file belongs to the job, and another
    attempt finds the content of the storage.
    """
    storage.get_blob_client("drops", "only/sub/a.txt").upload_blob(b"a", overwrite=True)
    body = {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/only/"}
    for name, mode, says in (("mounted", "ReadOnlyMount", "refused refused "), ("copied", "Download", "")):
        given = {"data": {**body, "mode": mode}}
        try_it = "for f in a b; do { echo x > ${{inputs.data}}/sub/$f.txt; } 2>/dev/null || printf 'refused '; done"
        cloud.submit(f"{name}-input", "cpu-cluster", try_it, inputs=given)
        assert cloud.wait(f"{name}-input")["status"] == "Completed"
        assert cloud.log(f"{name}-input") == says


def test_marks_of_folders_are_no_files(cloud: Cloud, storage: BlobServiceClient) -> None:
    """Empty blobs by which Data Lake tools mark a folder become the folder, not a file in its way."""
    drops = storage.get_container_client("drops")
    for name in ("lake", "lake/in"):
        drops.upload_blob(name, b"", metadata={"hdi_isfolder": "true"}, overwrite=True)
    drops.upload_blob("lake/in/a.txt", b"a", overwrite=True)
    given = {"data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/lake"}}
    cloud.submit("lake", "cpu-cluster", "cd ${{inputs.data}} && find . -type f", inputs=given)
    assert cloud.wait("lake")["status"] == "Completed"
    assert cloud.log("lake") == "./in/a.txt\n"


def test_jobs_that_mount_one_place_see_one_folder(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A file of one job in a mounted output is visible to another running job; both jobs leave the file in storage."""
    place = "azureml://datastores/workspaceblobstore/paths/shared/here/"
    mounted = {"out": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": place}}
    there, seen = "${{outputs.out}}/there", "${{outputs.out}}/seen"
    waits = f"until [ -e {there} ]; do sleep 0.1; done; cat {there}; touch {seen}"
    cloud.submit("reader", "cpu-cluster", waits, outputs=mounted)
    cloud.wait("reader", "Running")
    cloud.submit("writer", "cpu-cluster", "printf word > ${{outputs.out}}/there", outputs=mounted)
    assert cloud.wait("writer")["status"] == "Completed"
    assert cloud.wait("reader")["status"] == "Completed"
    assert cloud.log("reader") == "word"
    container = next(c.name for c in storage.list_containers() if c.name.startswith("azureml-blobstore"))
    names = {blob.name for blob in storage.get_container_client(container).list_blobs("shared/here/")}
    assert names == {"shared/here/there", "shared/here/seen"}


def test_literals_and_optional_sections_are_text(cloud: Cloud) -> None:
    """Literal inputs are put into the command as they are; a section whose input is missing disappears."""
    given = {"lr": {"jobInputType": "literal", "value": "0.1"}}
    command = "echo lr=${{inputs.lr}} $[[--momentum ${{inputs.momentum}}]] end"
    cloud.submit("literal", "cpu-cluster", command, inputs=given)
    cloud.wait("literal")
    assert cloud.log("literal") == "lr=0.1 end\n"


def test_what_no_process_can_have_fails_the_job(cloud: Cloud) -> None:
    """A command with a zero byte gets an error in words."""
    cloud.submit("zero", "cpu-cluster", "echo a\0b")
    assert cloud.wait("zero")["status"] == "Failed"
    assert "can't be started: embedded null byte" in cloud.details("zero")["error"]["error"]["message"]


@pytest.mark.parametrize("kind", ["uri_file", "uri_folder"])
def test_missing_input_fails_the_job_with_its_path(cloud: Cloud, kind: str) -> None:
    """A job with a missing input never starts the command, and the error names the input and the path."""
    given = {"data": {"jobInputType": kind, "uri": "azureml://datastores/drops/paths/not/there"}}
    cloud.submit(f"missing-{kind}", "cpu-cluster", "echo ${{inputs.data}}", inputs=given)
    assert cloud.wait(f"missing-{kind}")["status"] == "Failed"
    message = cloud.details(f"missing-{kind}")["error"]["error"]["message"]
    assert "Input 'data': there is nothing at azureml://datastores/drops/paths/not/there" in message
    assert cloud.log(f"missing-{kind}") == ""


def test_blob_names_cannot_leave_the_input_folder(cloud: Cloud, account: Services) -> None:
    """A blob name with '..' fails the job and is written nowhere."""
    rights = ContainerSasPermissions(write=True, create=True)
    expiry = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    sas = generate_container_sas(ACCOUNT, "drops", account_key=account.key, permission=rights, expiry=expiry)
    url = f"{account.blob_url}/drops/evil%2Fx%2F..%2F..%2Fescaped.txt?{sas}"
    assert requests.put(url, b"!", headers={"x-ms-blob-type": "BlockBlob"}, timeout=10).status_code == 201
    given = {"data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/evil/x"}}
    cloud.submit("evil", "cpu-cluster", "echo ${{inputs.data}}", inputs=given)
    assert cloud.wait("evil")["status"] == "Failed"
    assert "can't be a file name under the folder" in cloud.details("evil")["error"]["error"]["message"]
    assert not list(cloud.config.parent.rglob("escaped.txt"))


def test_outputs_arrive_while_the_job_runs(cloud: Cloud, storage: BlobServiceClient, tmp_path: Path) -> None:
    """A checkpoint is in storage before the job ends; a file that is deleted again goes from storage too."""
    place = {"jobOutputType": "uri_folder", "uri": "azureml://datastores/drops/paths/results/steady"}
    steps = f"touch a && echo first > $O/one && echo x > $O/old && {RUN} --gate {tmp_path}/go && rm $O/old"
    command = "export O=${{outputs.out}}; " + steps
    cloud.submit("steady", "cpu-cluster", command, outputs={"out": place})
    blobs = storage.get_container_client("drops")

    def stored() -> set[str]:
        return set(blobs.list_blob_names(name_starts_with="results/steady/"))

    wait_for(lambda: stored() == {"results/steady/one", "results/steady/old"}, 60, "outputs of a running job")
    assert cloud.job("steady")["status"] == "Running"
    (tmp_path / "go").touch()
    assert cloud.wait("steady")["status"] == "Completed"
    assert stored() == {"results/steady/one"}
    assert blobs.download_blob("results/steady/one").readall() == b"first\n"


def test_a_file_that_no_blob_can_be_is_left_out(cloud: Cloud, storage: BlobServiceClient) -> None:
    """The log mentions an output's file with a name outside of UTF-8, once; other files are kept."""
    place = {"jobOutputType": "uri_folder", "uri": "azureml://datastores/drops/paths/results/names"}
    command = "cd ${{outputs.out}} && printf x > $(printf 'caf\\351') && touch zoo && sleep 2"
    cloud.submit("names", "cpu-cluster", command, outputs={"out": place})
    assert cloud.wait("names")["status"] == "Completed"
    kept = storage.get_container_client("drops").list_blob_names(name_starts_with="results/names/")
    assert list(kept) == ["results/names/zoo"]
    assert cloud.log("names") == f"[azureml] b'caf\\xe9' is not kept: {NO_TEXT}\n"


def test_a_file_that_is_refused_holds_no_other_back(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A file refused by storage fails the job with the reason, and every other file arrives."""
    place = {"jobOutputType": "uri_folder", "uri": "azureml://datastores/drops/paths/results/long"}
    longest = "/".join(["a" * 250] * 5)
    command = f"cd ${{{{outputs.out}}}} && mkdir -p {longest} && touch {longest}/b zoo"
    cloud.submit("long", "cpu-cluster", command, outputs={"out": place})
    assert cloud.wait("long")["status"] == "Failed"
    assert longest in cloud.details("long")["error"]["error"]["message"]
    kept = storage.get_container_client("drops").list_blob_names(name_starts_with="results/long/")
    assert list(kept) == ["results/long/zoo"]


def test_timeout_cancels_the_job(cloud: Cloud, tmp_path: Path) -> None:
    """A job beyond limits.timeout is Canceled, and the details give the reason."""
    limits = {"jobLimitsType": "Command", "timeout": "PT1S"}
    cloud.submit("slow", "cpu-cluster", f"{RUN} --gate {tmp_path}/never", limits=limits)
    assert cloud.wait("slow")["status"] == "Canceled"
    assert "longer than its limit of PT1S" in cloud.details("slow")["error"]["error"]["message"]
    assert "got SIGTERM" in cloud.log("slow")


@pytest.mark.parametrize(("tier", "days"), [("low_priority", 7), ("dedicated", 21)])
def test_no_job_lives_longer_than_azure_ml_lets_it(tmp_path: Path, tier: str, days: int) -> None:
    """Azure ML ends a job after 7 days on low-priority nodes and 21 on others, whatever limit the job has itself
    (https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas). Here a day lasts a tenth of a second."""
    seed = {"name": "cpu-cluster", "max_instances": 1, "tier": tier}
    with services.start(tmp_path / "account") as account:
        config = configuration(tmp_path, account, clusters=[seed], job_day_seconds=0.1)
        cloud = Cloud(launch(config), config)
        try:
            limits = {"jobLimitsType": "Command", "timeout": "P30D"}
            cloud.submit("old", "cpu-cluster", f"{RUN} --gate {tmp_path}/never", limits=limits)
            assert cloud.wait("old")["status"] == "Canceled"
            message = cloud.details("old")["error"]["error"]["message"]
            assert f"maximum lifetime of a job on {tier.replace('_', '-')} nodes, {days} days" in message
        finally:
            cloud.part.stop()


def test_a_job_too_big_for_its_cluster_waits_with_the_reason(cloud: Cloud) -> None:
    """It stays Queued, says why, holds nobody back, and starts as soon as the cluster may have enough nodes."""
    cloud.arm("PUT", "computes/tight", cluster_body(maximum=1))
    cloud.submit("big", "tight", "true", resources={"instanceCount": 2})
    cloud.submit("behind", "tight", "true")
    assert cloud.wait("behind")["status"] == "Completed"
    assert cloud.job("big")["status"] == "Queued"
    assert cloud.details("big")["warnings"][0]["message"] == "The job needs 2 nodes and the cluster may have 1."
    cloud.arm("PATCH", "computes/tight", {"properties": cluster_body(maximum=2)["properties"]})
    assert cloud.wait("big")["status"] == "Completed"


def test_a_queued_job_is_canceled_at_once(cloud: Cloud) -> None:
    """Canceling a waiting job ends the job; canceling an ended job changes nothing."""
    cloud.arm("PUT", "computes/none", cluster_body(maximum=0))
    cloud.submit("waits", "none", "true")
    cloud.arm("POST", "jobs/waits/cancel")
    assert cloud.job("waits")["status"] == "Canceled"
    cloud.submit("done", "cpu-cluster", "true")
    assert cloud.wait("done")["status"] == "Completed"
    cloud.arm("POST", "jobs/done/cancel")
    assert cloud.job("done")["status"] == "Completed"


def test_a_cancellation_outweighs_a_preemption(cloud: Cloud, tmp_path: Path) -> None:
    """A job canceled during the grace period of a preempted node is Canceled, not Failed. A later job of this name,
    with requeueing after a preemption, runs a second time.
    """
    cloud.submit("both", "cpu-cluster", f"{RUN} --stubborn --gate {tmp_path}/never")
    wait_for(lambda: "WAITING" in cloud.log("both"), 60, "the job to run")
    victim = next(node for node in cloud.nodes("cpu-cluster") if node["job"] == "both")
    cloud.call("POST", "/control/clusters/cpu-cluster/preempt", {"node": victim["id"]})
    cloud.arm("POST", "jobs/both/cancel")
    assert cloud.wait("both")["status"] == "Canceled"
    assert "attempt 2" not in cloud.log("both")
    cloud.arm("DELETE", "jobs/both")
    cloud.submit("both", "cpu-cluster", f"{RUN} --gate {tmp_path}/go")
    wait_for(lambda: cloud.log("both").count("WAITING") == 2, 60, "the second job to run")
    victim = next(node for node in cloud.nodes("cpu-cluster") if node["job"] == "both")
    cloud.call("POST", "/control/clusters/cpu-cluster/preempt", {"node": victim["id"], "job": "queued"})
    (tmp_path / "go").touch()
    assert cloud.wait("both")["status"] == "Completed"


def test_a_preempted_job_fails_in_azures_words(cloud: Cloud, tmp_path: Path) -> None:
    """A preempted job fails by default ("You have to restart a preempted job"). Code and message are those that users
    of Azure ML saw: MachineLearningNotebooks#1242 and MLOpsPython#346."""
    cloud.submit("taken", "cpu-cluster", f"{RUN} --gate {tmp_path}/never")
    wait_for(lambda: "WAITING" in cloud.log("taken"), 60, "the job to run")
    victim = next(node for node in cloud.nodes("cpu-cluster") if node["job"] == "taken")
    cloud.call("POST", "/control/clusters/cpu-cluster/preempt", {"node": victim["id"]})
    assert cloud.wait("taken")["status"] == "Failed"
    error = cloud.details("taken")["error"]["error"]
    assert (error["code"], error["message"]) == (
        "UserError",
        "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or "
        "restarted. Reason: Received pre-emption warning signal",
    )


def test_a_node_hears_that_it_will_be_taken(cloud: Cloud) -> None:
    """A node asks for Scheduled Events at the address in its environment, and neighbours hear of the event too; at the
    end of the notice the node is taken, the job fails, and the event is gone.
    """
    cloud.arm("PUT", "computes/told", cluster_body(maximum=2, minimum=2))
    command = (
        "python -c \"import os, time; print('ASK', os.environ['NODE_METADATA_ENDPOINT'], flush=True); time.sleep(60)\""
    )
    cloud.submit("told", "told", command)
    wait_for(lambda: "ASK" in cloud.log("told"), 60, "the job to run")
    (asked,) = re.findall(r"^ASK (\S+)$", cloud.log("told"), re.MULTILINE)
    path = asked.removeprefix(cloud.url)
    headers, query = {"Metadata": "true"}, "metadata/scheduledevents?api-version=2020-07-01"
    assert cloud.call("GET", f"{path}/{query}").status_code == 400, "without the header"
    before = cloud.call("GET", f"{path}/{query}", headers=headers).json()
    assert before["Events"] == []

    victim = next(node for node in cloud.nodes("told") if node["job"] == "told")
    body = {"node": victim["id"], "notice": 2}
    assert cloud.call("POST", "/control/clusters/told/preempt", body).json()["job"] == "told"
    neighbour = next(node["id"] for node in cloud.nodes("told") if node["id"] != victim["id"])
    for node in (path, f"/nodes/{neighbour}"):
        document = cloud.call("GET", f"{node}/{query}", headers=headers).json()
        assert document["DocumentIncarnation"] > before["DocumentIncarnation"]
        assert [(e["EventType"], e["Resources"]) for e in document["Events"]] == [("Preempt", [victim["id"]])]
    name = cloud.call(
        "GET", f"{path}/metadata/instance/compute/name?api-version=2021-02-01&format=text", headers=headers
    )
    assert name.text == victim["id"]
    assert cloud.wait("told")["status"] == "Failed"
    assert cloud.call("GET", f"/nodes/{neighbour}/{query}", headers=headers).json()["Events"] == []


WRITES = """
import os, pathlib, sys, time
folder, rank = pathlib.Path(sys.argv[1]), int(os.environ["NODE_RANK"])
def wait(name):
    while not (folder / name).exists(): time.sleep(0.1)
if rank == 0:
    with (folder / "long").open("w") as file:
        file.write("half"); file.flush()
        (folder / "rewritten").write_text("first")
        wait("seen-first")
        file.write(" and half")
    (folder / "rewritten").write_text("second, and longer")
    (folder / "last").write_text("x")
    wait("done")
else:
    wait("rewritten")
    print("SAW", "long", (folder / "long").exists(), flush=True)
    (folder / "seen-first").write_text("x")
    wait("long"); wait("last"); time.sleep(2.5)
    print("SAW", (folder / "long").read_text(), "|", (folder / "rewritten").read_text(), flush=True)
    (folder / "done").write_text("x")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which files are open")
def test_a_node_sees_a_mount_as_it_is_in_azure(cloud: Cloud, tmp_path: Path) -> None:
    """With the fault, another node sees a file once the file is closed; a node keeps its first view of a file for ever,
    unless the job asks the mounts to refresh.
    """
    (tmp_path / "writes.py").write_text(WRITES)
    jobs: dict[str, tuple[dict[str, str], str]] = {
        "views-once": ({}, "first"),
        "views-again": ({LOOKS_AGAIN: "1"}, "second, and longer"),
    }
    cloud.call("PUT", "/control/faults", {"mounts": "own"})
    try:
        for name, (variables, _) in jobs.items():
            cloud.submit(
                name,
                "cpu-cluster",
                f"python '{tmp_path}/writes.py' ${{{{outputs.out}}}}",
                resources={"instanceCount": 2},
                distribution={"distributionType": "PyTorch", "processCountPerInstance": 1},
                environmentVariables=variables,
                outputs={"out": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount"}},
            )
        ended = {name: cloud.wait(name, timeout=120)["status"] for name in jobs}
    finally:
        cloud.call("PUT", "/control/faults", {})
    assert ended == dict.fromkeys(jobs, "Completed")
    for name, (_, sees) in jobs.items():
        log = cloud.log(name, "user_logs/std_log_process_1.txt")
        assert re.findall(r"^SAW (.*)$", log, re.MULTILINE) == ["long False", f"half and half | {sees}"]


def test_a_job_can_be_canceled_at_any_moment(cloud: Cloud) -> None:
    """A job canceled at any moment ends, as Canceled or with its result, and the node is free."""
    cloud.arm("PUT", "computes/hasty", cluster_body(maximum=4, minimum=4))
    for number in range(16):
        cloud.submit(f"hasty-{number}", "hasty", "true")
    for number in range(16):
        if number % 4:
            cloud.wait(f"hasty-{number}", *(["Preparing", "Running", "Finalizing", *TERMINAL][number % 4 - 1 :]))
        cloud.arm("POST", f"jobs/hasty-{number}/cancel")
    assert {cloud.wait(f"hasty-{number}")["status"] for number in range(16)} <= {"Canceled", "Completed"}
    wait_for(lambda: {n["state"] for n in cloud.nodes("hasty")} == {"idle"}, 60, "idle nodes")


def test_deleting_a_cluster_cancels_its_jobs(cloud: Cloud, tmp_path: Path) -> None:
    """A deleted cluster's running and queued jobs end as Canceled, also jobs submitted during the deletion; then the
    cluster is gone.
    """
    cloud.arm("PUT", "computes/doomed", cluster_body(maximum=1))
    for name in ("doomed-1", "doomed-2"):
        cloud.submit(name, "doomed", f"{RUN} --stubborn --gate {tmp_path}/never")
    wait_for(lambda: "WAITING" in cloud.log("doomed-1"), 60, "the job to run")
    cloud.arm("DELETE", "computes/doomed")
    late = {**cloud.job("doomed-2"), "command": "true"}  # the first job ignores SIGTERM for the grace period of 1 s
    taken = cloud.call("PUT", f"{cloud.workspace}/jobs/doomed-3", {"properties": late}).status_code == 201
    for number in (1, 2, 3) if taken else (1, 2):
        assert cloud.wait(f"doomed-{number}")["status"] == "Canceled"
    wait_for(lambda: cloud.call("GET", f"{cloud.workspace}/computes/doomed").status_code == 404, 60, "a 404")


def test_an_idle_cluster_goes_back_to_its_minimum(cloud: Cloud) -> None:
    """Nodes come for a job and leave after the idle time; listNodes and the counts tell their states."""
    cloud.arm("PUT", "computes/tidal", cluster_body(maximum=3, idle="PT4S"))
    cloud.submit("tide", "tidal", "true", resources={"instanceCount": 3})
    cloud.wait("tide")
    nodes = cloud.arm("POST", "computes/tidal/listNodes")["nodes"]
    assert len(nodes) == 3
    assert {n["nodeState"] for n in nodes} <= {"idle", "running"}
    wait_for(lambda: not cloud.nodes("tidal"), 60, "the nodes to leave")
    inner = cloud.arm("GET", "computes/tidal")["properties"]["properties"]
    assert (inner["currentNodeCount"], inner["targetNodeCount"]) == (0, 0)


def test_a_preempted_idle_node_is_shown_and_leaves(cloud: Cloud) -> None:
    """Preempting a node without a job removes the node from the cluster; an unknown node is a 404 with the list of
    nodes.
    """
    cloud.arm("PUT", "computes/lazy", cluster_body(maximum=1, minimum=1))
    idle = wait_for(lambda: [n for n in cloud.nodes("lazy") if n["state"] == "idle"], 60, "an idle node")
    cloud.call("POST", "/control/clusters/lazy/preempt", {"node": idle[0]["id"]})
    states = [n["state"] for n in cloud.nodes("lazy") if n["id"] == idle[0]["id"]]
    assert states in (["preempted"], [])  # it is shown for 0.3 s, and a busy machine may ask later
    wait_for(lambda: [n["state"] for n in cloud.nodes("lazy")] == ["idle"], 60, "another node, and that one gone")
    assert cloud.nodes("lazy")[0]["id"] != idle[0]["id"]
    answer = cloud.call("POST", "/control/clusters/lazy/preempt", {"node": 99})
    assert answer.status_code == 404
    assert "99" in answer.json()["error"]["message"]
