"""Every path of a drop through host, Azurite, Event Grid and Azure ML, with real training."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.lab import PATIENCE, Lab

ROUTES = """
routes:
  mnist: {trainer: mnist, cluster: cpu-cluster, nodes: 2}
  unchecked: {trainer: mnist, cluster: cpu-cluster, nodes: 2, check: off}
  strict: {trainer: mnist, cluster: cpu-cluster, job_file: forbidden}
  list: {template: list.yaml, cluster: cpu-cluster}
  patient: {template: patient.yaml, cluster: cpu-cluster, nodes: 2}
  members: {trainer: cifar_elastic, cluster: cpu-cluster, nodes: {min: 1, max: 2}, check: off}
"""
# The first attempt runs until it is stopped; the next attempt finds the first one's file, and ends.
PATIENT = """
command: >-
  python -c "import pathlib, sys, time; begun = pathlib.Path(sys.argv[1], 'begun');
  time.sleep(0 if begun.exists() else begun.write_text('x') * 600)" ${{outputs.models}}
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/example/}}
outputs: {models: {type: uri_folder}}
"""
LIST = """
command: >-
  python -c "import json, pathlib, sys; top = pathlib.Path(sys.argv[1]);
  names = [p.relative_to(top).as_posix() for p in top.rglob('*') if p.is_file()];
  pathlib.Path(sys.argv[2], 'names.json').write_text(json.dumps(names))" ${{inputs.data}} ${{outputs.models}}
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/example/}}
outputs: {models: {type: uri_folder}}
"""
# Each of two working members writes a mark. A member that works beside another and finds its mark ends.
MEMBER = """python -m elastic.launch --no-python sh -c
'[ $WORLD_SIZE = 2 ] && [ -e $0/$RANK ] && exit 0; [ $WORLD_SIZE = 2 ] && touch $0/$RANK; exec sleep 600'
${{outputs.checkpoints}}"""
AWAY = {"code": "AllocationFailed", "message": "there are no nodes just now"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("paths")
    (home / "routes.yaml").write_text(ROUTES)
    (home / "list.yaml").write_text(LIST)
    (home / "patient.yaml").write_text(PATIENT)
    digits.write(home / "digits")
    with Cloud.start(home / "cloud", Options(routes=home / "routes.yaml", node_start_seconds=0.2)) as cloud:
        with QueueClient.from_connection_string(cloud.connection_string, "drop-events") as queue:
            queue.send_message("no event at all")  # its five tries take a while, so the last test checks
        yield Lab(cloud, home / "digits")


def test_an_unknown_route_is_rejected(lab: Lab) -> None:
    """A drop into a folder that is no route is rejected, with the names of the routes."""
    lab.upload("minst/a", {"1.bin": b"x"})

    assert (
        lab.drop_that_is("minst/a", "rejected")["why"]
        == "There is no route 'minst'. Routes: list, members, mnist, patient, strict, unchecked."
    )


def test_a_job_file_that_azure_ml_refuses_is_explained(lab: Lab) -> None:
    """Azure ML's own schema finds the faults, and the drop shows each with its line. A corrected file runs."""
    bad = b"inputs:\n  epochs: 1\ndistribution:\n  type: magic\nresources:\n  instance_count: many\n"
    lab.upload("mnist/bad-job", {"1.bin": b"x", "job.yaml": bad})
    why = lab.drop_that_is("mnist/bad-job", "rejected")["why"]

    assert "job.yaml line 4: distribution" in why
    assert "job.yaml line 6: resources.instance_count: is 'many'; use a whole number" in why


def test_a_forbidden_job_file_is_rejected(lab: Lab) -> None:
    """A job file on a route without job files is rejected with that reason."""
    lab.upload("strict/a", {"1.bin": b"x", "job.yaml": b"command: rm -rf /\n"})

    assert "does not accept job files" in lab.drop_that_is("strict/a", "rejected")["why"]


def test_a_failing_trainer_is_explained_on_the_run(lab: Lab) -> None:
    """A truncated IDX file is refused. If the route does not check, the run names the file and the reason of its
    failure."""
    files = lab.digits()
    name = next(n for n in files if n.startswith("train-images"))
    broken = {**files, name: files[name][:5000], "_SUCCESS": b""}
    lab.upload("mnist/broken", broken)
    lab.upload("unchecked/broken", broken)
    assert f"{name}: expected a complete gzip file" in lab.drop_that_is("mnist/broken", "rejected")["why"]
    run = lab.archived("unchecked/broken")

    assert run["state"] == "failed"
    assert "exited with status code 2" in run["reason"]
    assert name in run["reason"]
    assert {"logs/std_log_process_0.txt", "manifest.json"} <= lab.output(run).keys()


def test_lost_events_cost_one_period(lab: Lab) -> None:
    """If every event of the job is lost, the reconcile timer still brings the run to its archive."""
    faults = f"{lab.cloud.eventgrid}/control/faults"
    kinds = [f"Microsoft.MachineLearningServices.Run{what}" for what in ("StatusChanged", "Completed")]
    lab.control(faults, {"lose": 1.0, "event_types": kinds})
    try:
        lab.upload("mnist/lost", {**lab.digits(), "_SUCCESS": b""})
        run = lab.archived("mnist/lost")
    finally:
        lab.control(faults, {})

    assert run["state"] == "completed"
    assert run["metrics"]["last"]["test_accuracy"] > 0.9
    assert {"models/model.safetensors", "metrics/metrics.jsonl", "manifest.json"} <= lab.output(run).keys()


@pytest.mark.parametrize("becomes", ["failed", "queued"])
def test_a_preempted_node_costs_an_attempt(lab: Lab, becomes: str) -> None:
    """A node is preempted while the job runs. Either the job fails, as Azure documents, and another job follows, or
    the job returns to its queue. In both cases the run continues and completes."""
    drop = f"patient/{becomes}"
    lab.upload(drop, {"1.bin": becomes.encode(), "_SUCCESS": b""})
    name = lab.drop_that_is(drop, "sealed")["run"]
    wait_for(lambda: lab.get(f"runs/{name}")["state"] == "running", PATIENCE, "the run to run")
    cluster = f"{lab.cloud.azureml}/control/clusters/cpu-cluster"
    faults = f"{lab.cloud.azureml}/control/faults"
    lab.control(faults, {"allocations": {"cpu-cluster": AWAY}}, "PUT")  # otherwise it has nodes again before the check
    try:
        nodes = sorted(lab.control(cluster)["nodes"], key=lambda node: node["job"] == name)  # idle nodes first
        for node in [*(node for node in nodes if node["job"] is None), nodes[-1]]:
            asked = {"node": node["id"]} | ({"job": "queued"} if becomes == "queued" else {})
            lab.control(f"{cluster}/preempt", asked)
        wait_for(lambda: lab.get(f"runs/{name}")["attempts"] == 2, PATIENCE, "the second attempt")
    finally:
        lab.control(faults, {}, "PUT")
    run = lab.archived(drop)

    assert (run["state"], run["attempts"]) == ("completed", 2), run["reason"]
    states = [moment["state"] for moment in run["history"]]
    again = states.index("queued", states.index("running"))
    assert states[-1] == "completed"
    words = {"queued": "lost its nodes", "failed": "job 2 continues"}
    assert words[becomes] in run["history"][again]["why"]


def test_a_lost_member_of_an_elastic_run_is_replaced(lab: Lab) -> None:
    """Two members meet in the table of the local cloud. Azure preempts the first node; the other member continues,
    another job replaces the first without using a resubmission, and both end. test_elastic.py trains like this,
    each night."""
    job = json.dumps({"command": " ".join(MEMBER.split("\n"))}).encode()
    lab.upload("members/two", {"1.bin": b"1", "job.json": job, "_SUCCESS": b""})
    name = lab.drop_that_is("members/two", "sealed")["run"]
    mounts = lab.cloud.home / "azureml" / "work" / ".mounts"
    wait_for(lambda: len([*mounts.glob("*/[01]")]) == 2, PATIENCE, "two members to work together")
    cluster = f"{lab.cloud.azureml}/control/clusters/cpu-cluster"
    (node,) = [node for node in lab.control(cluster)["nodes"] if node["job"] == f"{name}-m0-1"]
    lab.control(f"{cluster}/preempt", {"node": node["id"]})
    run = lab.archived("members/two")

    assert run["state"] == "completed", run["reason"]
    assert [member["attempt"] for member in run["elastic"]["members"]] == [2, 1]
    assert (run["elastic"]["resubmitted"], len(run["elastic"]["losses"])) == (0, 1)


@pytest.mark.parametrize("name", ["größe 名前/daten 1#%41.bin", "x/" * 400 + "deep.bin"])
def test_unusual_names_reach_the_job_as_they_are(lab: Lab, name: str) -> None:
    """Unicode, spaces, percent signs and very long paths become files with exactly that name on the node."""
    drop = f"list/names-{len(name)}"
    lab.upload(drop, {name: b"x", "_SUCCESS": b""})
    run = lab.archived(drop)
    container, _, prefix = run["output"].partition("/")
    with ContainerClient.from_connection_string(lab.cloud.connection_string, container) as output:
        seen = json.loads(output.download_blob(f"{prefix}/models/names.json").readall())

    assert run["state"] == "completed"
    assert sorted(seen) == sorted([name, "_SUCCESS"])


def test_a_malformed_message_ends_among_the_poison(lab: Lab) -> None:
    """An unreadable message is tried five times, then moved to the poison queue, and the status shows it."""
    poison = wait_for(lambda: lab.get("status")["poison"].get("drop-events"), PATIENCE, "the poison message")

    assert poison == ["no event at all"]
