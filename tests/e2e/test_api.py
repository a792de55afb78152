"""Submit, follow and fetch over HTTP: the real host, Azurite and Azure ML's stand-in, with real processes as jobs."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import random
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from azure.storage.blob import ContainerClient

from cli.api.client import Api
from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0  # seconds; a training takes some ten, most of them for importing torch

# Writes every byte separately, so that the log sometimes ends with half a character.
SPEAKER = """
import sys, time
for i in range(60):
    for byte in f"Zeile {i}: größer 数 🚂\\n".encode():
        sys.stdout.buffer.write(bytes([byte])); sys.stdout.buffer.flush()
    time.sleep(0.05)
sys.stdout.buffer.write("das Ende 数".encode())
"""
SLEEPER = "import time; print('here', flush=True); time.sleep(600)"
# Uses the node's identity as a training could: requests a token, and tries to write rows and jobs.
TRIES = """
import json, os, ssl, urllib.error, urllib.request
trust = ssl.create_default_context(cafile=os.environ["REQUESTS_CA_BUNDLE"])
def ask(what, url, body=None, **headers):
    data = body and json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "x-ms-version": "2020-12-06", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), context=trust) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    print(what, status, flush=True)
    return text
def token(resource, **query):
    query = "&".join(f"{k}={v}" for k, v in {"api-version": "2017-09-01", "resource": resource, **query}.items())
    answer = ask("token", os.environ["MSI_ENDPOINT"] + "?" + query, secret=os.environ["MSI_SECRET"])
    return {"Authorization": "Bearer " + json.loads(answer).get("access_token", "")}
me = {"clientid": os.environ["DEFAULT_IDENTITY_CLIENT_ID"]}
token("https://storage.azure.com")
storage, manager = token("https://storage.azure.com", **me), token("https://management.azure.com/", **me)
row = {"PartitionKey": "p", "RowKey": "r"}
for table in ("rendezvous", "runs", "drops"):
    ask(table, os.environ["TABLES"] + "/" + table, row, **storage)
ask("jobs", os.environ["WORKSPACE"] + "/jobs?api-version=2024-04-01", **manager)
"""
ROUTES = """
routes:
  mnist: {trainer: mnist, cluster: cpu-cluster, nodes: 2}
  speak: {template: speak.yaml, cluster: cpu-cluster}
  sleep: {template: sleep.yaml, cluster: cpu-cluster, nodes: 4}
"""


def job(program: str) -> str:
    """A job that runs this Python program."""
    text = base64.b64encode(program.encode()).decode()
    command = f"python -c \"import base64; exec(base64.b64decode('{text}'))\""
    return f"environment: azureml:trainyard@latest\ncommand: {json.dumps(command)}\n"


class Lab:
    """A cloud, and a client of its API."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.api = Api(cloud.api)  # retries a busy API
        weakref.finalize(self, self.api.close)
        limits = httpx.Limits(max_connections=200)
        self.http = httpx.Client(base_url=cloud.api, timeout=PATIENCE, limits=limits)

    def submit(self, body: dict[str, Any], key: str | None = None) -> str:
        answer = self.http.post("runs", json=body, headers={"Idempotency-Key": key} if key else {})
        assert answer.status_code == 202, answer.text
        run: str = answer.json()["run"]
        assert answer.headers["location"] == f"/api/runs/{run}"
        return run

    def get(self, path: str, **query: Any) -> Any:
        return self.api.get(*path.split("/"), **query)

    def archived(self, run: str) -> Any:
        def look() -> Any:
            found = self.get(f"runs/{run}")
            return found if found["archived_at"] else None

        return wait_for(look, PATIENCE, f"run {run} to be archived", 0.3)

    def artifact(self, run: str, name: str) -> bytes:
        answer = self.http.get(f"runs/{run}/artifacts/{name}")
        assert answer.status_code == 302
        return httpx.get(answer.headers["location"]).raise_for_status().content

    def jobs_made(self) -> Counter[str]:
        """How often each job was created at Azure ML. A repeated PUT of an existing job after a lost answer does
        not count."""
        context = ssl.create_default_context(cafile=str(self.cloud.certs))
        with urllib.request.urlopen(f"{self.cloud.azureml}/control/requests", context=context) as response:
            paths = [
                r["path"].partition("?")[0] for r in json.load(response) if (r["method"], r["status"]) == ("PUT", 201)
            ]
        return Counter(path.rpartition("/")[2] for path in paths if "/jobs/" in path)


def follow(url: str, run: str, rank: int = 0) -> Iterator[bytes]:
    """Each answer's bytes, to the end of the log. After a broken connection the follow resumes at its last offset."""
    offset = 0
    for _ in range(2000):
        try:
            query = {"rank": rank, "offset": offset, "wait": 5}
            answer = httpx.get(f"{url}/runs/{run}/logs", params=query, timeout=PATIENCE).raise_for_status()
        except httpx.TransportError:
            continue
        yield answer.content
        offset = int(answer.headers["x-next-offset"])
        if answer.headers["x-log-complete"] == "true":
            return
    raise AssertionError("the log does not end")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("api")
    for name, text in (("routes", ROUTES), ("speak", job(SPEAKER)), ("sleep", job(SLEEPER))):
        (home / f"{name}.yaml").write_text(text)
    digits.write(home / "digits")
    options = Options(routes=home / "routes.yaml", node_start_seconds=0.2, preemption_grace_seconds=1.0)
    with Cloud.start(home / "cloud", options) as cloud:
        with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
            for file in (home / "digits").iterdir():
                drops.upload_blob(f"shelf/digits/{file.name}", file.read_bytes())
        lab = Lab(cloud)
        with lab.http:
            yield lab


def test_a_run_is_submitted_followed_fetched_and_verified(lab: Lab) -> None:
    """One run from the POST to the fetched model: the whole log, the curves, and every file as in the manifest."""
    body = {"trainer": "mnist", "data": "drops/shelf/digits", "parameters": {"epochs": 2}, "experiment": "over-http"}
    run = lab.submit(body, "one")
    told = b"".join(follow(lab.cloud.api, run))
    assert b"test accuracy" in told.splitlines()[-1]

    row = lab.archived(run)
    assert (row["state"], row["output"], row["nodes"]) == ("completed", f"output/over-http/{run}", 2)
    curve = lab.get(f"runs/{run}/metrics", name="test_accuracy")["series"]["test_accuracy"]
    assert [round(curve[-1][1], 6), len(curve)] == [round(row["metrics"]["last"]["test_accuracy"], 6), 2]

    artifacts = lab.get(f"runs/{run}/artifacts")
    manifest = json.loads(lab.artifact(run, "manifest.json"))
    assert artifacts == {"complete": True, "files": manifest["files"], "outputs": manifest["outputs"], "pictures": {}}
    assert manifest["run"]["name"] == run
    for file in artifacts["files"]:
        content = lab.artifact(run, file["name"])
        assert len(content) == file["size"]
        assert file["md5"] in ("", hashlib.md5(content).hexdigest())
        assert file["name"] != "logs/std_log_process_0.txt" or content == told
    assert {"models/model.safetensors", "logs/std_log_process_1.txt"} <= {file["name"] for file in artifacts["files"]}
    assert lab.submit(body, "one") == run


class Cutting(socketserver.BaseRequestHandler):
    """A proxy that forwards one GET, and drops the connection inside two of three answers."""

    upstream: tuple[str, int]
    dice = random.Random(1)
    cuts = 0

    def handle(self) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += self.request.recv(65536)
        with socket.create_connection(self.upstream) as host:
            host.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            answer = b"".join(iter(lambda: host.recv(65536), b""))
        if self.dice.random() < 2 / 3:
            type(self).cuts += 1
            answer = answer[: self.dice.randrange(len(answer))]
        self.request.sendall(answer)


@contextmanager
def bad_line(api: str) -> Iterator[str]:
    """The API's address behind a proxy that breaks connections."""
    url = httpx.URL(api)
    Cutting.upstream = (url.host, url.port or 80)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Cutting) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}/api"
        proxy.shutdown()


def test_a_follow_that_is_cut_loses_nothing(lab: Lab) -> None:
    """Over a connection that breaks repeatedly, even inside characters, a follower gets every byte once."""
    run = lab.submit({"template": "speak"})
    with bad_line(lab.cloud.api) as url:
        pieces = [piece for piece in follow(url, run) if piece]
    expected = "".join(f"Zeile {i}: größer 数 🚂\n" for i in range(60)) + "das Ende 数"
    assert "".join(piece.decode() for piece in pieces) == expected
    assert len(pieces) > 1  # on a busy machine many lines arrive at once
    assert Cutting.cuts > 1
    lab.archived(run)
    assert lab.artifact(run, "logs/std_log.txt").decode() == expected
    ranged = lab.http.get(f"runs/{run}/logs", headers={"Range": "bytes=-4"})
    assert (ranged.status_code, ranged.content) == (206, " 数".encode())


def test_a_running_job_is_canceled(lab: Lab) -> None:
    """A cancel ends a running job and its log is kept; a retry is another run."""
    run = lab.submit({"template": "sleep", "nodes": 1})
    wait_for(lambda: b"here" in lab.http.get(f"runs/{run}/logs", params={"wait": 5}).content, PATIENCE, "its log")
    assert lab.http.delete(f"runs/{run}").status_code == 202
    assert lab.http.post(f"runs/{run}/retry").json()["code"] == "not_final"
    row = lab.archived(run)
    assert (row["state"], row["reason"]) == ("canceled", "Canceled as asked.")
    assert lab.artifact(run, "logs/std_log.txt") == b"here\n"
    again = lab.http.post(f"runs/{run}/retry").json()["run"]
    assert lab.http.post(f"runs/{run}/retry").json()["run"] == again != run
    assert lab.http.post(f"runs/{again}/cancel").status_code == 202
    assert lab.archived(again)["state"] == "canceled"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGSTOP")
def test_a_training_has_its_nodes_rights_and_no_more(lab: Lab) -> None:
    """With its node's identity a training may write to the rendezvous, but not to runs, drops or the workspace. A
    caller that does not name the identity gets no token."""
    tables = lab.cloud.table_tls_url
    variables = {"TABLES": tables, "WORKSPACE": f"{lab.cloud.azureml}{lab.cloud.record.workspace_id}"}
    text = yaml.safe_load(job(TRIES))
    run = lab.submit({"job": {**text, "compute": "azureml:cpu-cluster", "environment_variables": variables}})
    assert lab.archived(run)["state"] == "completed"
    said = lab.artifact(run, "logs/std_log.txt").decode().split("\n")
    expected = ["token 400", "token 200", "token 200", "rendezvous 201", "runs 403", "drops 403", "jobs 403"]
    assert [line for line in said if line] == expected


SMOKED = (
    *("health", "forged caller", "upload without keys", "message encoding", "drop to archive", "node counts"),
    *("log followers", "token on a node", "GPU on a node", "rename on a mount", "mount seen by another node"),
    *("mount seen by the first node", "traffic between jobs", "events of command jobs", "scheduled events on a node"),
    *("eviction announced to its node", "another job after an eviction", "preemption words"),
)


def test_a_deployment_is_registered_and_smoked(lab: Lab) -> None:
    """`admin register` returns the ids that jobs then have. `admin smoke` finds no problem: a drop reaches its
    archive, and jobs on several nodes print the expected output."""
    env = {**os.environ, "TRAINYARD_CLOUD": str(lab.cloud.home)}
    cli = [sys.executable, "-m", "cli", "admin"]
    options: dict[str, Any] = {"cwd": ROOT, "env": env, "capture_output": True, "text": True, "timeout": 200}
    done = subprocess.run([*cli, "register", "--json"], **options)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {route["problem"] for route in told["routes"]} == {""}

    done = subprocess.run([*cli, "smoke", "--json", "--patience", "120"], **options)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {check["check"]: check["result"] for check in json.loads(done.stdout)}
    not_ok = {name for name, result in found.items() if result != "ok"}
    assert not_ok == {"forged caller", "upload without keys"}, done.stdout
    assert found.keys() == set(SMOKED)
    details = {check["check"]: check["detail"] for check in json.loads(done.stdout)}
    assert details["message encoding"] == "events come as Event Grid's schema, base64"
    assert "PreemptionError: Nodes of this job got pre-empted" in details["preemption words"]
    assert "Preempt" in details["eviction announced to its node"]
    run = lab.get("runs", experiment="mnist", details="true")["runs"][0]
    assert b"mlflow" not in lab.http.get(f"runs/{run['run']}/logs").content.lower(), "off on the nodes of a laptop"
    assert run["environment"] == told["environment"]
    assert f"/codes/trainyard-{run['code'][:16]}/" in told["code"]


def test_a_workspace_that_hangs_holds_up_nothing_else(lab: Lab) -> None:
    """With Azure ML stopped but not dead, lists, logs, the description and drops answer as usual, and the status
    gives the reason."""
    run = lab.submit({"template": "speak"}, "one that speaks")
    lab.archived(run)
    lab.http.get(f"runs/{run}/logs").raise_for_status()
    pid = lab.cloud.record.parts["azureml"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(16) as pool:  # more requests that need Azure ML than it can serve at once
            asking = [pool.submit(lab.http.get, "clusters") for _ in range(16)]
            began = time.monotonic()
            for path in ("openapi.json", "runs", f"runs/{run}", f"runs/{run}/logs", f"runs/{run}/artifacts", "drops"):
                assert lab.http.get(path).status_code == 200, path
            assert lab.http.get("runs?state=running").status_code == 200
            waited = time.monotonic() - began
            answers = {asked.result().status_code for asked in asking}
        assert waited < 20
        assert answers == {503}
        assert "Azure ML" in lab.get("status")["checks"]["workspace"]
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: lab.http.get("clusters").status_code == 200, PATIENCE, "the clusters")


def test_200_submissions_at_once_are_neither_lost_nor_doubled(lab: Lab) -> None:
    """150 requests with 50 keys and 50 requests without make 100 runs, and each run is one job, created at Azure ML
    once."""
    before = {row["run"] for row in lab.get("runs", limit=1000)["runs"]}
    keys = [f"key-{i // 3}" for i in range(150)] + [None] * 50
    random.Random(2).shuffle(keys)
    with ThreadPoolExecutor(200) as pool:
        runs = list(pool.map(lambda key: lab.submit({"template": "sleep"}, key), keys))
    by_key = {key: {run for k, run in zip(keys, runs, strict=True) if k == key} for key in keys}
    assert len(by_key.pop(None)) == 50
    assert [len(made) for made in by_key.values()] == [1] * 50
    made = set(runs)
    assert len(made) == 100

    def listed() -> set[str]:
        page, found = lab.get("runs", limit=40), set[str]()
        for _ in itertools.count():
            found |= {row["run"] for row in page["runs"]}
            if not page["continue"]:
                return found - before
            page = lab.get("runs", limit=40, **{"continue": page["continue"]})
        raise AssertionError

    assert listed() == made
    wait_for(lambda: made <= lab.jobs_made().keys(), PATIENCE, "every job to be at Azure ML")
    of_these = {job: count for job, count in lab.jobs_made().items() if job[: len("run-0123456789abcdef")] in made}
    assert of_these == dict.fromkeys(made, 1)


@pytest.mark.parametrize("part", ["azureml", "storage", "eventgrid"])
def test_every_route_answers_while_a_part_hangs(lab: Lab, part: str) -> None:
    """A stopped part keeps its connections, yet health and every list answer within five seconds, which allows for
    a slow machine but not for a wait on that part."""
    routes = ("health", "status", "runs", "drops", "clusters", "costs", "trainers", "schedules", "notices", "page/")
    lab.get("status")

    def ask(route: str) -> tuple[float, int]:
        began = time.monotonic()
        answer = lab.http.get(route, timeout=60)
        return time.monotonic() - began, answer.status_code

    pid = lab.cloud.record.parts[part]
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(len(routes)) as pool:
            answers = dict(zip(routes, pool.map(ask, routes), strict=True))
    finally:
        os.kill(pid, signal.SIGCONT)
    late = 5 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert {route: found for route, found in answers.items() if found[0] > late or found[1] not in (200, 503)} == {}
    wait_for(lambda: ask("health")[1] == 200, 60, "all to answer again")
