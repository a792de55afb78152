"""How jobs run, as a plain HTTP client sees it: processes, logs, limits and the queue."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulator_tests.azureml.clouds import RUN, TERMINAL, Cloud, cluster_body, configuration, gone, launch, told
from emulators.process import wait_for
from emulators.storage import services


def test_log_grows_while_the_job_runs_and_is_exact_at_the_end(cloud: Cloud, tmp_path: Path) -> None:
    """The log can be read before the job ends. The final log has every byte once, in order."""
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
    """The log contains output without a final newline that a job writes to both streams right before its end."""
    cloud.submit("brief", "cpu-cluster", "printf out; printf err >&2; exit 3")
    assert cloud.wait("brief")["status"] == "Failed"
    assert cloud.log("brief") in ("outerr", "errout")
    assert "exited with status code 3." in cloud.details("brief")["error"]["error"]["message"]


def test_what_a_job_leaves_in_the_background_ends_with_it(cloud: Cloud, tmp_path: Path) -> None:
    """Background processes and temporary files of a job are removed when the job ends."""
    cloud.submit("leaves", "cpu-cluster", f"{RUN} --child {tmp_path}/pid && mktemp")
    assert cloud.wait("leaves")["status"] == "Completed"
    temporary = Path(cloud.log("leaves").splitlines()[-1])
    assert re.fullmatch(r"job-\w+", temporary.parent.name)
    assert not temporary.parent.exists()
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: gone(pid), 60, "the child to be gone")


def test_a_job_without_distribution_runs_once_per_node(cloud: Cloud) -> None:
    """On two nodes a job without distribution is two processes, and each knows its node."""
    cloud.submit("plain", "cpu-cluster", RUN, resources={"instanceCount": 2})
    assert cloud.wait("plain")["status"] == "Completed"
    logs = [cloud.log("plain", f"user_logs/std_log_process_{n}.txt") for n in range(2)]
    assert [told(log, "ENV")["NODE_RANK"] for log in logs] == ["0", "1"]
    assert "RANK" not in told(logs[0], "ENV")


def test_variables_of_the_job_win(cloud: Cloud) -> None:
    """environmentVariables override the control plane's variables. Without such variables, the ranks share the
    threads."""
    cloud.submit("own", "cpu-cluster", RUN, environmentVariables={"OMP_NUM_THREADS": "7", "EXTRA": "a b"})
    cloud.submit("shared", "cpu-cluster", RUN, resources={"instanceCount": 4})
    cloud.wait("own")
    cloud.wait("shared")
    own = told(cloud.log("own"), "ENV")
    assert (own["OMP_NUM_THREADS"], own["EXTRA"]) == ("7", "a b")
    assert int(told(cloud.log("shared", "user_logs/std_log_process_0.txt"), "ENV")["OMP_NUM_THREADS"]) >= 1
    assert "AML_CLIENT_KWARGS" not in own


def test_literals_and_optional_sections_are_text(cloud: Cloud) -> None:
    """Literal inputs are inserted into the command unchanged. A section whose input is missing is removed."""
    given = {"lr": {"jobInputType": "literal", "value": "0.1"}}
    command = "echo lr=${{inputs.lr}} $[[--momentum ${{inputs.momentum}}]] end"
    cloud.submit("literal", "cpu-cluster", command, inputs=given)
    cloud.wait("literal")
    assert cloud.log("literal") == "lr=0.1 end\n"


def test_what_no_process_can_have_fails_the_job(cloud: Cloud) -> None:
    """A command with a zero byte fails the job with a readable error."""
    cloud.submit("zero", "cpu-cluster", "echo a\0b")
    assert cloud.wait("zero")["status"] == "Failed"
    assert "can't be started: embedded null byte" in cloud.details("zero")["error"]["error"]["message"]


def test_timeout_cancels_the_job(cloud: Cloud, tmp_path: Path) -> None:
    """A job that exceeds limits.timeout is Canceled, and its details have the reason."""
    limits = {"jobLimitsType": "Command", "timeout": "PT1S"}
    cloud.submit("slow", "cpu-cluster", f"{RUN} --gate {tmp_path}/never", limits=limits)
    assert cloud.wait("slow")["status"] == "Canceled"
    assert "longer than its limit of PT1S" in cloud.details("slow")["error"]["error"]["message"]
    assert "got SIGTERM" in cloud.log("slow")


@pytest.mark.parametrize(("tier", "days"), [("low_priority", 7), ("dedicated", 21)])
def test_no_job_lives_longer_than_azure_ml_lets_it(tmp_path: Path, tier: str, days: int) -> None:
    """Azure ML ends a job after 7 days on low-priority nodes and 21 days on others, whatever the job's own limit
    (https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas). Here a day lasts a tenth of a
    second."""
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
    """A job larger than its cluster stays Queued with a reason and blocks no other job. It starts as soon as the
    cluster's maximum allows enough nodes."""
    cloud.arm("PUT", "computes/tight", cluster_body(maximum=1))
    cloud.submit("big", "tight", "true", resources={"instanceCount": 2})
    cloud.submit("behind", "tight", "true")
    assert cloud.wait("behind")["status"] == "Completed"
    assert cloud.job("big")["status"] == "Queued"
    assert cloud.details("big")["warnings"][0]["message"] == "The job needs 2 nodes and the cluster may have 1."
    cloud.arm("PATCH", "computes/tight", {"properties": cluster_body(maximum=2)["properties"]})
    assert cloud.wait("big")["status"] == "Completed"


def test_a_queued_job_is_canceled_at_once(cloud: Cloud) -> None:
    """Canceling a queued job ends it at once. Canceling an ended job changes nothing."""
    cloud.arm("PUT", "computes/none", cluster_body(maximum=0))
    cloud.submit("waits", "none", "true")
    cloud.arm("POST", "jobs/waits/cancel")
    assert cloud.job("waits")["status"] == "Canceled"
    cloud.submit("done", "cpu-cluster", "true")
    assert cloud.wait("done")["status"] == "Completed"
    cloud.arm("POST", "jobs/done/cancel")
    assert cloud.job("done")["status"] == "Completed"


def test_a_cancellation_outweighs_a_preemption(cloud: Cloud, tmp_path: Path) -> None:
    """A job that is canceled during the grace period of a preempted node is Canceled, not Failed. A later job of
    this name, which requeues after a preemption, runs a second time."""
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
    """A preempted job fails by default ("You have to restart a preempted job"). Users of Azure ML reported this
    code and message in MachineLearningNotebooks#1242 and MLOpsPython#346."""
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
    """A node gets Scheduled Events from the address in its environment, and its neighbours see the event too. When
    the notice ends, the node is preempted, the job fails, and the event disappears."""
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


def test_a_job_can_be_canceled_at_any_moment(cloud: Cloud) -> None:
    """A job that is canceled at any moment ends as Canceled or with its result, and its node becomes free."""
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
    """Deleting a cluster cancels its running and queued jobs, including jobs submitted during the deletion. Then
    the cluster disappears."""
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
    """Nodes are allocated for a job and released after the idle time. listNodes and the counts show their states."""
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
    """Preempting an idle node removes the node from the cluster. An unknown node is a 404 with the list of nodes."""
    cloud.arm("PUT", "computes/lazy", cluster_body(maximum=1, minimum=1))
    idle = wait_for(lambda: [n for n in cloud.nodes("lazy") if n["state"] == "idle"], 60, "an idle node")
    cloud.call("POST", "/control/clusters/lazy/preempt", {"node": idle[0]["id"]})
    states = [n["state"] for n in cloud.nodes("lazy") if n["id"] == idle[0]["id"]]
    assert states in (["preempted"], [])  # shown for 0.3 s, and a busy machine may be later
    wait_for(lambda: [n["state"] for n in cloud.nodes("lazy")] == ["idle"], 60, "another node, and that one gone")
    assert cloud.nodes("lazy")[0]["id"] != idle[0]["id"]
    answer = cloud.call("POST", "/control/clusters/lazy/preempt", {"node": 99})
    assert answer.status_code == 404
    assert "99" in answer.json()["error"]["message"]
