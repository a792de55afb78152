"""Callers of the API during a chaos run: they submit under keys, and repeat each request until it is answered."""

from __future__ import annotations

import json
import random
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

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
BODIES: dict[str, dict[str, Any]] = {
    "command": {"job": COMMAND},
    "pipeline": {"job": PIPELINE},
    "sweep": {"job": COMMAND, "parameters": {"rate": "0.25,0.75"}, "sweep": SWEEP},
}
AGAIN_SECONDS = 0.5


@dataclass
class Callers:
    """Submits jobs of every kind in turn, each under a key and each twice, and keeps the answers."""

    api: str
    count: int
    random: random.Random
    answers: dict[str, set[str]] = field(default_factory=dict)  # by key: the runs that were answered
    refused: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        kinds = list(BODIES)
        for number in range(self.count):
            kind = kinds[number % len(kinds)]
            key = f"chaos-{number}-{kind}"
            for _ in range(2):
                self._submit(key, BODIES[kind])
            self.stop.wait(self.random.uniform(0, 4))

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
