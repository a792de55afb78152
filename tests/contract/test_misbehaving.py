"""Every call of every adapter while the service hangs, resets the connection or throttles: each error is temporary.

Each call is first made undisturbed, to count its requests. Then the call is repeated for each of its requests, with
that request failing as `requests` reports it, on every retry. The first request fails in every way, the others in
turns. All other requests are answered, as after some seconds of an outage.
"""

from __future__ import annotations

import io
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import HttpTransport
from azure.keyvault.keys import KeyClient
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from shared.adapters.azureml import circuit
from shared.adapters.azureml.clusters import AzureMLClusters
from shared.adapters.azureml.jobs import AzureMLJobs
from shared.adapters.azureml.models import AzureMLModels
from shared.adapters.keys.signing import VaultKey
from shared.adapters.outgoing.eventgrid import TopicEvents
from shared.adapters.outgoing.retail_prices import AzureRetailPrices
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.storage.queues import StorageQueues
from shared.adapters.tables.asset_table import TableAssets
from shared.adapters.tables.removal_table import TableRemovals
from shared.jobs.location import Location
from shared.jobs.readers.azureml import read_job
from shared.jobs.readers.place_text import read_place
from shared.kernel.errors import Unavailable
from shared.kernel.settings import EventTopic
from shared.kernel.storage import Blob, Copy, Place
from shared.models.model import Version
from shared.removals.model import Removal, RemovalKind
from tests.contract.sides import environment, job_of, pipeline_of, snapshot
from tests.contract.wire import LocalAzureML

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")

HANG, RESET, THROTTLE, BUSY = "hangs", "resets", "throttles", "is busy"
FAULTS = (HANG, RESET, THROTTLE, BUSY)
MOST_REQUESTS = 12  # disturbed requests per call
AT = datetime(2026, 1, 2, tzinfo=UTC)
KIND = "text/plain"
Call = Callable[[], object]
VAULT = "https://trainyard.vault.azure.net"
# A public key of P-256, from RFC 7517, appendix A.1
PUBLIC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}


@dataclass
class Wire:
    """Counts the requests, and injects the fault into request number `since` and each retry of that request."""

    fault: str = ""
    since: int = 0
    sent: int = field(default=0)
    spoiled: str = field(default="")

    def send(self, send: Callable[..., Any], adapter: HTTPAdapter, request: Any, **options: Any) -> Any:
        self.sent += 1
        what = f"{request.method} {request.url.partition('?')[0]}"
        if self.fault and self.sent == self.since + 1:
            self.spoiled = what
        if self.spoiled != what:
            return send(adapter, request, **options)
        if self.fault == HANG:
            raise requests.exceptions.ReadTimeout("Read timed out. (read timeout=15)", request=request)
        if self.fault == RESET:
            error = ConnectionResetError(104, "Connection reset by peer")
            raise requests.exceptions.ConnectionError(error, request=request)
        status = 429 if self.fault == THROTTLE else 503
        raw = HTTPResponse(io.BytesIO(), {"Retry-After": "0"}, status, preload_content=False)
        return adapter.build_response(request, raw)

    def spoil(self, fault: str, since: int) -> None:
        self.fault, self.since, self.sent, self.spoiled = fault, since, 0, ""


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The HTTP layer of all SDKs, without pauses between retries and without open circuits."""
    made, send = Wire(), HTTPAdapter.send
    monkeypatch.setattr(HTTPAdapter, "send", lambda self, request, **options: made.send(send, self, request, **options))
    monkeypatch.setattr(HttpTransport, "sleep", lambda _self, _seconds: None, raising=False)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setattr(circuit, "FAILURES", 10**9)
    return made


def storage_calls(clients: StorageClients, names: Iterator[str]) -> dict[str, Call]:
    blobs, queues, removals = StorageBlobs(clients.blob), StorageQueues(clients.queue), TableRemovals(clients.table)
    blob, place = blobs.write("calls", "a/1", b"data\n", KIND), Place("calls", "a/")
    removal = Removal(RemovalKind.RUN, "run-1", AT)
    queues.put("calls", "text")
    queues.put("others", "text")
    removals.put(removal)
    return {
        "list": lambda: list(blobs.list(place)),
        "first": lambda: blobs.first(place),
        "folders": lambda: blobs.folders(place),
        "read": lambda: blobs.read("calls", "a/1", 99),
        "read_from": lambda: blobs.read_from("calls", "a/1", 1, 2),
        "grown": lambda: blobs.grown("calls", "a/1", 1, 2),
        "lines": lambda: list(blobs.lines("calls", "a/1")),
        "tail": lambda: blobs.tail("calls", "a/1", 2),
        "write": lambda: blobs.write("calls", next(names), b"data", KIND),
        "write_once": lambda: blobs.write_once("calls", next(names), b"data", KIND),
        "copy": lambda: list(blobs.copy([Copy(blob, "calls", "copies", next(names))])),
        "remove": lambda: blobs.remove("calls", [next(names)]),
        "remove_listed": lambda: blobs.remove_listed("calls", [Blob(next(names), "0x1", 1)]),
        "check": blobs.check,
        "put": lambda: queues.put("calls", "text"),
        "counts": lambda: queues.counts(["calls"]),
        "ages": lambda: queues.ages(["calls"]),
        "peek": lambda: queues.peek("calls"),
        "give_back": lambda: queues.give_back("calls", "others", 1),
        "clear": lambda: queues.clear("others", lambda _: True, 1),
        "table put": lambda: removals.put(removal),
        "table get": lambda: removals.get(removal.what, removal.name, AT),
        "table query": removals.newest,
    }


def azureml_calls(
    azureml: LocalAzureML, clients: StorageClients, folder: Path, names: Iterator[str]
) -> dict[str, Call]:
    jobs = AzureMLJobs(azureml.workspace, TableAssets(clients.table), StorageBlobs(clients.blob))
    clusters = AzureMLClusters(azureml.workspace)
    there = read_job(job_of("there", "true"))
    jobs.submit(there)
    digests = (f"{number:064x}" for number in itertools.count(1))
    through_sdk = {**job_of("sdk", "true"), "environment": {"image": "ubuntu", "description": "of its own"}}

    def fresh() -> AzureMLJobs:
        return AzureMLJobs(azureml.workspace, TableAssets(clients.table), StorageBlobs(clients.blob))

    return {
        "submit": lambda: jobs.submit(read_job(job_of(next(names), "true"))),
        "submit through the SDK": lambda: jobs.submit(read_job({**through_sdk, "name": next(names)})),
        "submit a pipeline": lambda: jobs.submit(pipeline_of(next(names))),
        "status": lambda: jobs.status("there"),
        "times": lambda: jobs.times("there"),
        "listed": lambda: list(jobs.listed("20260101T00")),
        "cancel": lambda: jobs.cancel("there"),
        "active": jobs.active,
        "lacks": lambda: jobs.lacks(there),
        "logged": lambda: jobs.logged("there"),
        "folder": lambda: fresh().folder("there"),
        "place": lambda: fresh().place(read_place("azureml://datastores/drops/paths/a/")),
        "register_code": lambda: jobs.register_code(snapshot(folder), next(digests)),
        "register_environment": lambda: jobs.register_environment(str(environment(folder)), next(digests)),
        "vm_size": lambda: jobs.vm_size("nothing"),
        "check": jobs.check,
        "clusters": clusters.list,
        "scale": lambda: clusters.scale("warm", min_nodes=1),
    }


def model_calls(azureml: LocalAzureML, names: Iterator[str]) -> dict[str, Call]:
    registry, files = AzureMLModels(azureml.workspace), Location("workspaceblobstore", "a/")

    def version() -> Version:
        return Version(next(names), 1, "there", AT, "proof/", "0" * 64, "signer")

    return {"register": lambda: registry.register(version(), files, "a model"), "workspace": registry.workspace}


class Token:
    """A token as Entra ID gives it to the app."""

    def get_token(self, *_: str, **__: object) -> AccessToken:
        return AccessToken("token", int(AT.timestamp()) + 10**9)


def vault_or_topic(_adapter: HTTPAdapter, request: Any, **_: Any) -> Any:
    """Answer as Key Vault and Event Grid do, without a network, because the app reaches both over HTTPS alone.

    https://learn.microsoft.com/rest/api/keyvault/keys/get-key/get-key and sign/sign; Event Grid answers 200.
    """
    body: dict[str, Any] = {}
    status, headers = 200, {"Content-Type": "application/json"}
    if VAULT in request.url:
        kid = f"{VAULT}/keys/signing/{'0' * 32}"
        body = {"kid": kid, "value": "A" * 86} if request.method == "POST" else {"key": {**PUBLIC, "kid": kid}}
        if "Authorization" not in request.headers:
            login = "https://login.microsoftonline.com/tenant"
            status = 401
            headers["WWW-Authenticate"] = f'Bearer authorization="{login}", resource="https://vault.azure.net"'
    raw = HTTPResponse(io.BytesIO(json.dumps(body).encode()), headers, status, preload_content=False)
    return HTTPAdapter().build_response(request, raw)


def outside_calls(names: Iterator[str]) -> dict[str, Call]:
    topic = TopicEvents(EventTopic("https://topic.westeurope-1.eventgrid.azure.net/api/events", "a2V5"))

    def key() -> VaultKey:
        made = VaultKey(f"{VAULT}/keys/signing")
        made.__dict__["_client"] = KeyClient(VAULT, Token())
        return made

    return {
        "publish": lambda: topic.publish("RunArchived", "run-1", {}, next(names), AT),
        "public key": lambda: key().public_key(),
        "sign": lambda: key().sign(b"data"),
    }


def faulty(wire: Wire, call: Call) -> list[str]:
    """The errors of the call that are not temporary, one per failed request."""
    wire.spoil("", 0)
    call()
    wrong = []
    later = ((number, FAULTS[number % len(FAULTS)]) for number in range(1, min(wire.sent, MOST_REQUESTS)))
    for number, fault in [*((0, fault) for fault in FAULTS), *later]:
        wire.spoil(fault, number)
        try:
            call()
        except Unavailable:
            continue
        except Exception as exc:  # noqa: BLE001
            wrong.append(f"{fault} at request {number + 1}: {exc!r}"[:300])
        else:
            if wire.spoiled and number == 0:
                wrong.append(f"{fault} at request 1: the call says that all is well")
    return wrong


def test_the_storage_account_misbehaves(wire: Wire, tables: StorageClients, unique: Callable[[], str]) -> None:
    """Whichever request of a blob, queue or table call fails, the call can be retried."""
    names = (f"{unique()}" for _ in itertools.count())
    wrong = {name: faulty(wire, call) for name, call in storage_calls(tables, names).items()}
    assert {name: each for name, each in wrong.items() if each} == {}


def test_azure_ml_misbehaves(
    wire: Wire, azureml: LocalAzureML, tables: StorageClients, tmp_path: Path, unique: Callable[[], str]
) -> None:
    """Whichever request of a call on jobs, clusters or assets fails, the call can be retried."""
    StorageBlobs(tables.blob).write("drops", "a/1", b"data", KIND)
    names = (unique() for _ in itertools.count())
    wrong = {name: faulty(wire, call) for name, call in azureml_calls(azureml, tables, tmp_path, names).items()}
    assert {name: each for name, each in wrong.items() if each} == {}


def test_the_registry_of_models_misbehaves(wire: Wire, azureml: LocalAzureML, unique: Callable[[], str]) -> None:
    """Whichever request of a registration fails, the registration can be retried."""
    names = (unique() for _ in itertools.count())
    wrong = {name: faulty(wire, call) for name, call in model_calls(azureml, names).items()}
    assert {name: each for name, each in wrong.items() if each} == {}


def test_event_grid_and_key_vault_misbehave(
    wire: Wire, unique: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever request of an event or a signature fails, the call can be retried."""
    send = lambda self, request, **options: wire.send(vault_or_topic, self, request, **options)  # noqa: E731
    monkeypatch.setattr(HTTPAdapter, "send", send)
    names = (unique() for _ in itertools.count())
    wrong = {name: faulty(wire, call) for name, call in outside_calls(names).items()}
    assert {name: each for name, each in wrong.items() if each} == {}


RETAIL_FAULTS: dict[str, Exception] = {
    HANG: TimeoutError("timed out"),
    RESET: ConnectionResetError(104, "Connection reset by peer"),
    THROTTLE: urllib.error.HTTPError("https://prices", 429, "Too Many Requests", Message(), None),
    BUSY: urllib.error.HTTPError("https://prices", 503, "Service Unavailable", Message(), None),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("page", [1, 2])
def test_the_retail_prices_misbehave(monkeypatch: pytest.MonkeyPatch, fault: str, page: int) -> None:
    """Whichever page of prices fails, the call can be retried. Prices are read with urllib, without an SDK."""
    asked = itertools.count(1)

    def answer(_url: str, **_: object) -> io.BytesIO:
        if next(asked) == page:
            raise RETAIL_FAULTS[fault]
        return io.BytesIO(b'{"Items": [], "NextPageLink": "https://prices.azure.com/next"}')

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    with pytest.raises(Unavailable):
        AzureRetailPrices("https://prices.azure.com/api", lambda: AT).of("Standard_D2s_v5", "eastus")
