"""Judge a chaos run from outside: from storage, from Azure ML's job list, and through the HTTP API.

The oracle shares nothing with the system except the names that users see: drops/<route>/<name>,
output/<experiment>/<run>.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import ssl
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient

from emulators.azureml.kernel.identity import token
from local.cloud import Cloud

ROUTE = "chaos"
CLUSTER = "cpu-cluster"
MARKER = "_SUCCESS"
# A node's messages about unreachable or forgetful storage: the words of aiohttp and of the service.
STORAGE_AWAY = re.compile(
    r"Cannot connect to host|Server disconnected|Connection (reset|lost|closed)|bytes arrived|ContainerNotFound"
    r"|The specified (blob|container|resource) does not exist",
    re.IGNORECASE,
)
FURTHER_JOB = re.compile(r"(-m\d+-\d+|-a\d+)$")  # the member and attempt, or the attempt, after the run's name
MEASURED = {"mlflow": 0.75, "elastic": 0.95}  # the last accuracy of each job under a key
FINAL = ("completed", "failed", "canceled")
# A node's message about missing input. Legitimate only for a drop whose files the storage has forgotten.
NOTHING_THERE = re.compile(r"^Input '\w+': there is nothing at ")
Files = dict[str, bytes]


def digest(files: Files) -> str:
    """Return what the benchmark's job computes from its input: one hash over names and contents, without the
    marker."""
    whole = hashlib.sha256()
    for name in sorted(files):
        if name != MARKER:
            whole.update(name.encode() + hashlib.sha256(files[name]).digest())
    return whole.hexdigest()


@dataclass
class Look:
    """A snapshot. `stored` holds the drops' blobs; `runs` holds the runs of each drop, newest first."""

    stored: dict[str, Files]
    drops: dict[str, dict[str, Any]]
    runs: dict[str, list[dict[str, Any]]]
    open: list[str]  # unfinished drops with data, and the reasons


@dataclass
class Verdict:
    """Counts, and one line for each fault."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def find(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.findings.append(f"{kind}: {what}")


class Oracle:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._blobs = BlobServiceClient.from_connection_string(cloud.connection_string, retry_total=1)

    def close(self) -> None:
        self._blobs.close()

    def look(self, names: list[str]) -> Look:
        """Take a snapshot. Raises OSError or AzureError while a part is away."""
        stored = self._stored()
        drops = {name: self._get(f"drops/{ROUTE}/{quote(name)}") or {} for name in names}
        runs: dict[str, list[dict[str, Any]]] = {}
        for run in self._runs():
            runs.setdefault(str(run.get("drop") or "").removeprefix(f"{ROUTE}/"), []).append(run)
        pending = [f"{n}: {why}" for n in names if (why := _pending(stored.get(n, {}), drops[n], runs.get(n, [])))]
        pending += [f"{run['run']} is {run['state']}" for run in runs.get("", ()) if not _is_done(run)]
        return Look(stored, drops, runs, pending)

    def judge(self, acknowledged: dict[str, Files], seen: Look, written: Files) -> Verdict:
        """Compare what the clients were told with the snapshot. `written` holds all contents ever written, by MD5."""
        verdict, self._written = Verdict(), written
        for name, files in acknowledged.items():
            self._judge_drop(name, files, seen, verdict)
        for line in seen.open:
            verdict.find("stuck", line)
        jobs = self._jobs()
        verdict.counts["jobs"] = len(jobs)
        known = {run["run"] for runs in seen.runs.values() for run in runs}
        for job in jobs:
            if FURTHER_JOB.sub("", job) not in known:
                verdict.find("jobs without a run", job)
        for queue, counts in (self._get("status") or {})["queues"].items():
            if counts["poison"]:
                verdict.find("poison", f"{counts['poison']} in {queue}")
        return verdict

    def judge_calls(self, answers: dict[str, set[str]], refused: list[str], verdict: Verdict) -> None:
        """Check that each key has exactly one run, which completed and has an archive."""
        runs = {run["run"]: run for run in self._runs()}
        verdict.counts["submissions under a key"] += len(answers)
        for line in refused:
            verdict.find("refused", line)
        for key, named in answers.items():
            if len(named) != 1:
                verdict.find("double", f"{key} made {len(named)} runs: {', '.join(sorted(named))}")
            for name in named:
                run = runs.get(name) or {"state": "missing"}
                verdict.counts[f"of them {run['state']}"] += 1
                judge_metrics(key, run, verdict)
                if run["state"] == "failed":
                    verdict.find("failed", f"{name} of {key}: {str(run.get('reason'))[:300]}")
                if run["state"] not in FINAL or not run.get("archived_at"):
                    verdict.find("stuck", f"{name} of {key} is {run['state']}, archived: {run.get('archived_at')}")

    def judge_nodes(self, elapsed: float, verdict: Verdict) -> None:
        """Check that the charged node time is no more than the cluster can have had since the benchmark began."""
        (cluster,) = [each for each in self._get("clusters") or [] if each["name"] == CLUSTER]
        charged = sum((run.get("cost") or {}).get("node_seconds") or 0.0 for run in self._runs())
        verdict.counts["node seconds charged"] += round(charged)
        if charged > cluster["max_nodes"] * elapsed:
            verdict.find(
                "books untrue", f"{charged:.0f} node seconds in {elapsed:.0f} s of {cluster['max_nodes']} nodes"
            )

    def _judge_drop(self, name: str, files: Files, seen: Look, verdict: Verdict) -> None:
        stored, runs = seen.stored.get(name, {}), seen.runs.get(name, [])
        data = {key: value for key, value in stored.items() if key != MARKER}
        gone = [key for key in files if stored.get(key) != files[key]]
        verdict.counts["files acknowledged"] += len(files)
        verdict.counts["files lost by the storage"] += len(gone)
        verdict.counts["drops that lost files"] += bool(gone)
        verdict.counts["runs"] += len(runs)
        if data and not runs and seen.drops[name].get("state") != "rejected":
            verdict.find("lost", f"{name} has {len(data)} files and no run")
        trained = [self._judge_run(name, run, bool(gone), verdict) for run in runs]
        results = Counter(found for found in trained if found)
        own = Counter(found for found, run in zip(trained, runs, strict=True) if found and _as_recorded(run))
        for result, times in own.items():
            if times > 1:
                verdict.find("double", f"{name} was trained {times} times on the same content ({result[:12]})")
        if digest(files) in results:
            verdict.counts["right"] += 1
        elif results and not gone and digest(stored) not in results:
            verdict.find("wrong content", f"{name}: no run trained on what lies there")

    def _judge_run(self, name: str, run: dict[str, Any], forgotten: bool, verdict: Verdict) -> str | None:
        """Compare the run's manifest with its blobs, and return the digest in the run's archive.

        `forgotten`: the storage has lost acknowledged files of this drop.
        """
        if run["state"] != "completed":
            if run["state"] in FINAL:
                reason = str(run.get("reason"))
                excused = STORAGE_AWAY.search(reason) or (forgotten and NOTHING_THERE.search(reason))
                kind = "failed for the storage" if excused else "failed"
                verdict.find(kind, f"{run['run']} of {name}: {reason[:160]}")
            return None
        if not run.get("archived_at"):
            return None
        container, _, folder = run["output"].partition("/")
        blobs = self._all(container, f"{folder}/")
        manifest = json.loads(blobs.get("manifest.json", b"null"))
        if manifest is None:
            # The manifest is written last, so an existing one is true; the storage may forget it, like any last write.
            verdict.counts["archives lost by the storage"] += 1
            return None
        for file in manifest["files"]:
            content = blobs.get(file["name"])
            if content is None or len(content) != file["size"]:
                verdict.find("archive untrue", f"{run['run']}: {file['name']} is not as the manifest says")
        model = blobs.get("models/digest.txt")
        if model is None and self._outputs(run["run"]):
            verdict.find("archive without a model", f"{run['run']} of {name} completed, and its job's model is there")
        verdict.counts["models lost by the storage"] += model is None and not self._outputs(run["run"])
        verdict.counts["archives read"] += 1
        if model is not None:
            self._judge_trained_on(run, blobs, model.decode(), verdict)
        return None if model is None else model.decode()

    def _judge_trained_on(self, run: dict[str, Any], blobs: Files, trained: str, verdict: Verdict) -> None:
        """Compare what the run reports about its data with the digest that its job computed."""
        says = str(run.get("trained_on") or "nothing")
        verdict.counts[f"says it trained on: {says}"] += 1
        rows = json.loads(gzip.decompress(blobs["data.json.gz"])) if "data.json.gz" in blobs else None
        if rows is None or any(md5 not in self._written for *_, md5 in rows):
            return
        recorded = digest({name.rpartition("/")[2]: self._written[md5] for name, _, _, md5 in rows})
        verdict.counts["trained on other than recorded"] += recorded != trained
        if (says == "recorded") != (recorded == trained) and says != "unknown":
            verdict.find("verdict untrue", f"{run['run']} says {says}, its job read {trained[:12]} of {recorded[:12]}")

    def _stored(self) -> dict[str, Files]:
        drops: dict[str, Files] = {}
        for path, content in self._all("drops", f"{ROUTE}/").items():
            name, _, file = path.partition("/")
            drops.setdefault(name, {})[file] = content
        return drops

    def _outputs(self, job: str) -> list[str]:
        """Return the model files that the job itself left in the workspace's default datastore."""
        stores = [c.name for c in self._blobs.list_containers() if c.name.startswith("azureml-blobstore")]
        clients = [self._blobs.get_container_client(name) for name in stores]
        return [name for client in clients for name in client.list_blob_names() if f"/{job}/models/" in f"/{name}"]

    def _all(self, container: str, prefix: str) -> Files:
        client = self._blobs.get_container_client(container)
        names = list(client.list_blob_names(name_starts_with=prefix))
        return {name.removeprefix(prefix): client.download_blob(name).readall() for name in names}

    def _runs(self) -> list[dict[str, Any]]:
        found, more = [], ""
        while True:
            going_on = f"&continue={quote(more)}" if more else ""
            page = self._get(f"runs?limit=200&details=true{going_on}") or {"runs": []}
            found += page["runs"]
            more = page.get("continue") or ""
            if not more:
                return found

    def _jobs(self) -> list[str]:
        """Return the names of all jobs that Azure ML received."""
        url = f"{self._cloud.azureml}{self._cloud.record.workspace_id}/jobs?api-version=2024-04-01&listViewType=All"
        names: list[str] = []
        while url:
            page = self._json(url, {"Authorization": f"Bearer {token()}"})
            names += [job["name"] for job in page["value"]]
            url = page.get("nextLink", "")
        return names

    def _get(self, path: str) -> Any:
        try:
            return self._json(f"{self._cloud.api}/{path}", {})
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def _json(self, url: str, headers: dict[str, str]) -> Any:
        context = ssl.create_default_context(cafile=str(self._cloud.certs))
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=20, context=context
        ) as answer:
            return json.load(answer)


def judge_metrics(key: str, run: dict[str, Any], verdict: Verdict) -> None:
    """Check that a completed MLflow job has the metrics it logged, and a completed elastic run its last step."""
    kind = key.rpartition("-")[2]
    if run["state"] != "completed" or kind not in MEASURED:
        return
    verdict.counts[f"completed: {kind}"] += 1
    found = ((run.get("metrics") or {}).get("last") or {}).get("accuracy")
    if found != MEASURED[kind]:
        verdict.find("metrics untrue", f"{run['run']} of {key} says its accuracy is {found}, not {MEASURED[kind]}")


def _as_recorded(run: dict[str, Any]) -> bool:
    """Return whether the run trained on its recorded data. Only such a run is a duplicate if another run trained on
    the same content."""
    return run.get("trained_on") not in ("other", "unknown")


AWAY = (
    OSError,
    AzureError,
    ValueError,
    KeyError,
)  # errors of a snapshot while a part is unreachable; HTTPError is an OSError


def _is_done(run: dict[str, Any]) -> bool:
    return run["state"] in FINAL and bool(run.get("archived_at"))


def _pending(stored: Files, drop: dict[str, Any], runs: list[dict[str, Any]]) -> str:
    """Return why this drop is unfinished; '' if the drop is finished, or if the storage lost all of its files."""
    if all(name == MARKER for name in stored):
        return ""
    if drop.get("state") not in ("sealed", "rejected"):
        return f"the drop is {drop.get('state') or 'unknown'}"
    late = [run["run"] for run in runs if run["state"] not in FINAL or not run.get("archived_at")]
    if late:
        return f"not archived: {', '.join(late)}"
    if drop["state"] == "sealed" and drop.get("run") not in [run["run"] for run in runs]:
        return f"its run {drop.get('run')} is not there"
    return ""
