"""Clients of the API during a chaos run. They submit under keys and repeat each request until the API answers.

They submit one job of each kind: a command, a pipeline, a sweep, a job that logs to MLflow, and an elastic run of two
members.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.api.client import Api
from cli.errors import CliError
from cli.files.job_upload import Sender

MODEL = "import json, pathlib, sys, time; time.sleep(0.5); pathlib.Path(sys.argv[1], 'metrics.jsonl').write_text("
PROGRAM = MODEL + "json.dumps({'step': 1, 'accuracy': float(sys.argv[2])}) + chr(10))"
COMMAND: dict[str, Any] = {
    "type": "command",
    "command": f'python -c "{PROGRAM}" ${{{{outputs.metrics}}}} ${{{{inputs.rate}}}}',
    "environment": "azureml:trainyard@latest",
    "compute": "azureml:cpu-cluster",
    "inputs": {"rate": 0.5},
    "outputs": {"metrics": {"type": "uri_folder"}},
}
STEP = {"type": "command", "command": "echo done", "environment": "azureml:trainyard@latest"}
PIPELINE = {"type": "pipeline", "compute": "azureml:cpu-cluster", "jobs": {"first": STEP, "second": STEP}}
SWEEP = {"metric": "accuracy", "trials": 2, "at_once": 2}
LOGGED = 0.75  # the accuracy of a job that logs to MLflow
MLFLOW = {**STEP, "command": "python log.py", "compute": "azureml:cpu-cluster"}
ELASTIC = {
    **STEP,
    "command": "python -m elastic.launch steps.py ${{outputs.metrics}}",
    "compute": "azureml:cpu-cluster",
    "outputs": {"metrics": {"type": "uri_folder"}},
}
BODIES: dict[str, dict[str, Any]] = {
    "command": {"job": COMMAND},
    "pipeline": {"job": PIPELINE},
    "sweep": {"job": COMMAND, "parameters": {"rate": "0.25,0.75"}, "sweep": SWEEP},
    "mlflow": {"job": MLFLOW},
    "elastic": {"job": ELASTIC, "nodes": {"min": 1, "max": 2}},
}
OWN_CODE = ("mlflow", "elastic")  # the kinds whose code is uploaded
TRAINERS = Path(__file__).resolve().parent.parent / "trainers"
# The request of MLflow's client for log_metric, so that no environment with the client has to be built first.
# https://mlflow.org/docs/latest/api_reference/rest-api.html#log-metric
LOG = f"""
import json, os, ssl, time, urllib.request
env, now = os.environ, int(time.time() * 1000)
metric = {{"run_id": env["MLFLOW_RUN_ID"], "key": "accuracy", "value": {LOGGED}, "timestamp": now, "step": 1}}
headers = {{"Content-Type": "application/json", "Authorization": "Bearer " + env["MLFLOW_TRACKING_TOKEN"]}}
url = env["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric"
trusted = ssl.create_default_context(cafile=env["MLFLOW_TRACKING_SERVER_CERT_PATH"])
for attempt in range(60):
    try:
        request = urllib.request.Request(url, json.dumps(metric).encode(), headers)
        urllib.request.urlopen(request, timeout=10, context=trusted).close()
        break
    except OSError as error:
        print(error, flush=True)
        time.sleep(1)
else:
    raise SystemExit("the tracking service did not answer")
"""
# The script of an elastic run. It imports no torch; torchrun's agent, which starts it on each node, does.
STEPS = """
import json, os, pathlib, sys, time
file = pathlib.Path(sys.argv[1], "metrics.jsonl")
done = sum(1 for _ in file.open()) if file.exists() else 0
for step in range(done, 20):
    time.sleep(0.1)
    if os.environ["RANK"] == "0":
        with file.open("a") as out:
            out.write(json.dumps({"step": step, "accuracy": step / 20}) + chr(10))
"""
AGAIN_SECONDS = 0.5


def send_code(api: str, patience: float) -> str:
    """Upload the code of the kinds in OWN_CODE, as `submit` does, and return the place of the code.

    A cloud that has just started on a busy machine may answer 503; the upload is then repeated.
    """
    until = time.monotonic() + patience
    while True:
        try:
            return _send_code(api)
        except CliError:
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN_SECONDS)


def _send_code(api: str) -> str:
    with tempfile.TemporaryDirectory() as folder, Api(api) as client:
        shutil.copytree(TRAINERS / "elastic", Path(folder) / "elastic", ignore=shutil.ignore_patterns("__pycache__"))
        (Path(folder) / "steps.py").write_text(STEPS)
        (Path(folder) / "log.py").write_text(LOG)
        return Sender(client, lambda _: None).send(Path(folder), "code")


@dataclass
class Callers:
    """Submits jobs of these kinds in turn, each under its own key and each twice, and keeps the answers.

    `code` is the place of the uploaded code for the kinds in OWN_CODE.
    """

    api: str
    count: int
    random: random.Random
    kinds: tuple[str, ...] = tuple(BODIES)
    code: str = ""
    answers: dict[str, set[str]] = field(default_factory=dict)  # by key: the runs in the answers
    refused: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in range(self.count):
            kind = self.kinds[number % len(self.kinds)]
            key = f"chaos-{number}-{kind}"
            for _ in range(2):
                self._submit(key, self._body(kind))
            self.stop.wait(self.random.uniform(0, 4))

    def _body(self, kind: str) -> dict[str, Any]:
        body = BODIES[kind]
        return {**body, "job": {**body["job"], "code": self.code}} if kind in OWN_CODE else body

    def _submit(self, key: str, body: dict[str, Any]) -> None:
        while not self.stop.is_set():
            try:
                self.answers.setdefault(key, set()).add(str(post(self.api, "runs", body, key)["run"]))
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    self.refused.append(f"{key}: {error.code} {error.read()[:200]!r}")
                    return
                self.stop.wait(AGAIN_SECONDS)
            except (OSError, ValueError):
                self.stop.wait(AGAIN_SECONDS)
            else:
                return


def post(api: str, path: str, body: dict[str, Any], key: str = "") -> Any:
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
    request = urllib.request.Request(f"{api}/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
