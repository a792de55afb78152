"""Roles against the app's real requests, which are recorded on a local cloud rather than listed by hand."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest

from emulators.arm import declared
from emulators.arm.access import Access
from emulators.arm.operations import Need, needs, workspace_action
from emulators.process import wait_for
from local.cloud import Cloud, Options
from tests.e2e.lab import Lab
from tests.infra.declared import account_id, allowed, grants, main, principal, workspace_id
from tests.infra.recorder import Recorder

PROVIDER = "Microsoft.MachineLearningServices"
ADMINISTRATOR = "an-administrator"
SIGNING = "Key Vault Crypto User"  # Key Vault is tested in tests/shared/adapters/test_signing_keys.py
TELEMETRY = "Monitoring Metrics Publisher"  # the host's own telemetry; no stand-in for Azure Monitor here
ROUTES = """
routes:
  mnist: {template: quick.yaml, cluster: cpu-cluster}
"""
# A training's results, without the training, whose requests are the nodes' and not the app's.
QUICK = """
command: >-
  python -c "import pathlib, sys; pathlib.Path(sys.argv[1], 'model.json').write_text('1');
  pathlib.Path(sys.argv[2], 'metrics.jsonl').write_text(sys.argv[3])"
  ${{outputs.models}} ${{outputs.metrics}} '{"time": 1, "step": 1, "epoch": 1, "loss": 1}'
environment: azureml:trainyard@latest
inputs:
  data: {type: uri_folder, path: azureml://datastores/drops/paths/example/}
outputs:
  models: {type: uri_folder}
  metrics: {type: uri_folder}
"""


@dataclass(frozen=True)
class Asked:
    """The app's requests: permissions on the account, and actions on resources of the control plane."""

    storage: list[tuple[str, Need]]  # the request as text, and the need
    workspace: list[tuple[str, str]]  # action and id of the resource
    published: int  # events that our own topic received


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """All recorded requests of one drop, from upload to archive, and of every call of the API."""
    home = tmp_path_factory.mktemp("roles")
    (home / "routes.yaml").write_text(ROUTES)
    (home / "quick.yaml").write_text(QUICK)
    with Recorder(home / "cloud" / "storage") as recorder:
        options = Options(
            routes=home / "routes.yaml",
            node_start_seconds=0.2,
            app_env={"AzureWebJobsStorage": recorder.connection_string},
        )
        with Cloud.start(home / "cloud", options) as cloud:
            lab = Lab(cloud, home)
            live(lab)
            sent = lab.control(f"{cloud.azureml}/control/requests")
            published = lab.control(f"{cloud.eventgrid}/control/counts")["topics"][main().one(declared.TOPICS).name]
    storage = [(f"{r.service} {r.method} {r.path}", need) for r, _ in recorder.requests for need in needs(r)]
    return Asked(storage, [workspace_action(r["method"], r["path"]) for r in sent if PROVIDER in r["path"]], published)


def live(lab: Lab) -> None:
    """A job from drop to archive, another job that is canceled and removed, and a read of everything."""
    lab.upload("mnist/a", {"1.bin": b"1", "job.yaml": b"display_name: one\n"})
    run = lab.archived("mnist/a")
    assert run["state"] == "completed", run["reason"]
    post(lab, "register")
    name = run["run"] if "run" in run else run["name"]
    looks = ("status", "drops", "drops/mnist/a", "runs", "clusters", "health", "costs", "usage", "schedules", "notices")
    for path in looks:
        lab.get(path)
    for part in ("logs", "metrics", "usage", "artifacts", "artifacts/manifest.json"):
        with urllib.request.urlopen(f"{lab.cloud.api}/runs/{name}/{part}", timeout=30) as response:
            assert response.status == 200
    again = post(lab, f"runs/{name}/retry")
    post(lab, f"runs/{again['run']}/cancel")
    wait_for(lambda: lab.get(f"runs/{again['run']}")["archived_at"], 60, "the canceled run's archive", 0.3)
    post(lab, f"runs/{again['run']}/remove")
    wait_for(lambda: lab.get("removals")[0]["done_at"], 60, "the canceled run's removal", 0.3)
    keep_up(lab)
    wait_for(lambda: to_zero(lab), 60, "the cluster's new node to be idle", 0.3)


def to_zero(lab: Lab) -> bool:
    """Scale to zero; this fails while the node that keep_up requested is still starting."""
    request = urllib.request.Request(
        f"{lab.cloud.api}/clusters/cpu-cluster/scale-to-zero?force=true", b"", method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return bool(response.status == 202)
    except urllib.error.HTTPError as error:
        if error.code == 409:
            return False
        raise


def keep_up(lab: Lab) -> None:
    """Give the cluster a permanent node, as an administrator may, so that the app has something to change."""
    record = lab.cloud.record
    url = f"{record.azureml}{record.workspace_id}/computes/cpu-cluster?api-version=2024-04-01"
    body = {"properties": {"properties": {"scaleSettings": {"minNodeCount": 1, "maxNodeCount": 2}}}}
    headers = {"Authorization": f"Bearer {ADMINISTRATOR}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PATCH")
    context = ssl.create_default_context(cafile=record.certs)
    urllib.request.urlopen(request, timeout=30, context=context).close()


def post(lab: Lab, path: str) -> Any:
    request = urllib.request.Request(f"{lab.cloud.api}/{path}", b"", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.read().decode()}") from error


def in_azure(resource_id: str) -> str:
    """The same resource in the declared workspace, whose name differs from the local one."""
    _, _, below = resource_id.partition("/workspaces/")
    return "/".join([workspace_id(), *below.split("/")[1:]])


def refused(access: Access, who: str, asked: Asked) -> list[str]:
    """The recorded requests that this identity's roles do not allow."""
    storage = [words for words, need in asked.storage if not allowed(access, who, need)]
    workspace = [action for action, target in asked.workspace if not access.may(who, action, in_azure(target))]
    send = "Microsoft.EventGrid/events/send/action"
    topic = [] if access.may(who, send, main().one(declared.TOPICS).id) else [send] * asked.published
    return [*storage, *workspace, *topic]


def test_the_recording_is_whole(asked: Asked) -> None:
    """The recording includes rare requests: copies, a code upload, a cluster's change, a cancel, an event, a
    transaction."""
    actions = {action.partition(f"{PROVIDER}/workspaces/")[2] for action, _ in asked.workspace}
    assert {
        *("computes/write", "jobs/write", "jobs/cancel/action", "codes/versions/write", "environments/versions/write"),
    } <= actions
    words = "\n".join(words for words, _ in asked.storage)
    assert "table POST /$batch" in words
    assert "-poison" in words
    assert asked.published > 0


def test_the_app_may_do_all_that_it_does(asked: Asked) -> None:
    """The roles of infra/ allow every recorded request of the app and its host."""
    assert sorted(set(refused(grants(), principal("id-app-"), asked))) == []


def test_the_app_makes_nothing_that_is_declared(asked: Asked) -> None:
    """Containers, queues and tables of infra/ exist before the app, so the app never asks to create them."""
    made = {need.target for _, need in asked.storage for some in need.any_of for action in some if making(action)}
    ours = {resource.id for kind in (declared.CONTAINERS, declared.QUEUES) for resource in main().of(kind)}
    assert not {account_id() + target for target in made} & ours
    assert not [words for words, _ in asked.storage if words.startswith("table POST /Tables")]


def making(action: str) -> bool:
    return action in (f"{declared.CONTAINERS}/write", f"{declared.QUEUES}/write")


def test_every_role_of_the_app_is_needed(asked: Asked) -> None:
    """Without any one of the app's roles, some request of the app would be refused."""
    access, who = grants(), principal("id-app-")
    everything = access.grants
    for grant in [g for g in everything if g.principal == who and g.role.name not in (TELEMETRY, SIGNING)]:
        access.grants = [g for g in everything if g is not grant]
        assert refused(access, who, asked), f"{grant.role.name} on {grant.scope} is not needed"


def test_nodes_reach_their_table_and_no_other(tmp_path: Any) -> None:
    """Every Table Storage request of the elastic client is allowed on its table, and none creates the table."""
    from azure.data.tables import TableServiceClient

    from emulators.testing import azurite
    from trainers.elastic.client import connect

    with Recorder(tmp_path / "azurite") as recorder, azurite.start(tmp_path / "azurite") as storage:
        with TableServiceClient.from_connection_string(storage.connection_string) as service:
            service.create_table("rendezvous")
        table = connect("", {"AZURE_STORAGE_CONNECTION_STRING": recorder.connection_string})
        rows, deadline = table.rows("run-1", "store"), time.monotonic() + 30
        version = rows.insert("key", b"a", deadline)
        rows.replace("key", b"b", version, deadline)
        rows.get("key", deadline)
        rows.many(["key", "other"], deadline)
        rows.insert("gone", b"a", deadline)
        table.remove_expired(deadline)
        table.clear("run-1", deadline)
        table.close()
    found = [need for request, _ in recorder.requests for need in needs(request)]
    assert len(found) > 6
    access, who = grants(), principal("id-nodes-")
    assert [need for need in found if not allowed(access, who, need)] == []
    assert {need.target for need in found} == {"/tableServices/default/tables/rendezvous"}
