"""A job's files: inputs, outputs, and mounts."""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path

import pytest
import requests
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas

from emulator_tests.azureml.clouds import RUN, Cloud
from emulators.azureml.running.uploads import NO_TEXT
from emulators.azureml.running.views import LOOKS_AGAIN
from emulators.process import wait_for
from emulators.storage.keys import ACCOUNT
from emulators.storage.services import Services


def test_a_file_input_is_a_path_to_the_file(cloud: Cloud, storage: BlobServiceClient) -> None:
    """`${{inputs.x}}` and AZURE_ML_INPUT_x of a uri_file input are the path of the file itself."""
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
    cloud.arm("DELETE", "jobs/alike")  # MLClient, which also lists this workspace, refuses names with a dot


def test_a_mounted_input_can_only_be_read(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A mount refuses new files and changes, as in Azure ML. A downloaded file belongs to the job, and the next
    attempt gets the content of the storage again."""
    storage.get_blob_client("drops", "only/sub/a.txt").upload_blob(b"a", overwrite=True)
    body = {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/only/"}
    for name, mode, says in (("mounted", "ReadOnlyMount", "refused refused "), ("copied", "Download", "")):
        given = {"data": {**body, "mode": mode}}
        try_it = "for f in a b; do { echo x > ${{inputs.data}}/sub/$f.txt; } 2>/dev/null || printf 'refused '; done"
        cloud.submit(f"{name}-input", "cpu-cluster", try_it, inputs=given)
        assert cloud.wait(f"{name}-input")["status"] == "Completed"
        assert cloud.log(f"{name}-input") == says


def test_marks_of_folders_are_no_files(cloud: Cloud, storage: BlobServiceClient) -> None:
    """Empty blobs that mark folders for Data Lake tools become folders, not files."""
    drops = storage.get_container_client("drops")
    for name in ("lake", "lake/in"):
        drops.upload_blob(name, b"", metadata={"hdi_isfolder": "true"}, overwrite=True)
    drops.upload_blob("lake/in/a.txt", b"a", overwrite=True)
    given = {"data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/lake"}}
    cloud.submit("lake", "cpu-cluster", "cd ${{inputs.data}} && find . -type f", inputs=given)
    assert cloud.wait("lake")["status"] == "Completed"
    assert cloud.log("lake") == "./in/a.txt\n"


def test_jobs_that_mount_one_place_see_one_folder(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A running job sees the files that another job writes to the same mounted output. Both jobs' files stay in
    storage."""
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


@pytest.mark.parametrize("kind", ["uri_file", "uri_folder"])
def test_missing_input_fails_the_job_with_its_path(cloud: Cloud, kind: str) -> None:
    """A missing input fails the job before its command starts. The error has the input and the path."""
    given = {"data": {"jobInputType": kind, "uri": "azureml://datastores/drops/paths/not/there"}}
    cloud.submit(f"missing-{kind}", "cpu-cluster", "echo ${{inputs.data}}", inputs=given)
    assert cloud.wait(f"missing-{kind}")["status"] == "Failed"
    message = cloud.details(f"missing-{kind}")["error"]["error"]["message"]
    assert "Input 'data': there is nothing at azureml://datastores/drops/paths/not/there" in message
    assert cloud.log(f"missing-{kind}") == ""


def test_blob_names_cannot_leave_the_input_folder(cloud: Cloud, account: Services) -> None:
    """A blob name with '..' fails the job, and the blob is not written to the disk."""
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
    """A checkpoint is in storage before the job ends. A file that the job deletes is also deleted in storage."""
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
    """A file whose name is not UTF-8 is logged once and left out of the output; the other files are kept."""
    place = {"jobOutputType": "uri_folder", "uri": "azureml://datastores/drops/paths/results/names"}
    command = "cd ${{outputs.out}} && printf x > $(printf 'caf\\351') && touch zoo && sleep 2"
    cloud.submit("names", "cpu-cluster", command, outputs={"out": place})
    assert cloud.wait("names")["status"] == "Completed"
    kept = storage.get_container_client("drops").list_blob_names(name_starts_with="results/names/")
    assert list(kept) == ["results/names/zoo"]
    assert cloud.log("names") == f"[azureml] b'caf\\xe9' is not kept: {NO_TEXT}\n"


def test_a_file_that_is_refused_holds_no_other_back(cloud: Cloud, storage: BlobServiceClient) -> None:
    """A file that storage refuses fails the job with the reason, and every other file is uploaded."""
    place = {"jobOutputType": "uri_folder", "uri": "azureml://datastores/drops/paths/results/long"}
    longest = "/".join(["a" * 250] * 5)
    command = f"cd ${{{{outputs.out}}}} && mkdir -p {longest} && touch {longest}/b zoo"
    cloud.submit("long", "cpu-cluster", command, outputs={"out": place})
    assert cloud.wait("long")["status"] == "Failed"
    assert longest in cloud.details("long")["error"]["error"]["message"]
    kept = storage.get_container_client("drops").list_blob_names(name_starts_with="results/long/")
    assert list(kept) == ["results/long/zoo"]


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
    """With the fault, another node sees a file only after it is closed. A node never updates its first view of a
    file unless the job has the mounts refreshed."""
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
