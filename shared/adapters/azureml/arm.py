"""The workspace's own REST API, for the few calls for which MLClient has no public method or only a harmful one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

from shared.adapters.azureml.circuit import Circuit
from shared.adapters.translation import translated
from shared.kernel.errors import BadSetting, NoAnswer, NotFound
from shared.kernel.settings import Workspace

if TYPE_CHECKING:
    from azure.core import PipelineClient
    from azure.core.credentials import TokenCredential

# The newest stable version against whose OpenAPI document this code was checked.
_API_VERSION = "2024-04-01"
_METRICS_VERSION = "2024-02-01"  # of Azure Monitor's metrics
# Copied from azure-ai-ml's table of clouds, to avoid importing that package.
_CLOUDS = {
    "AzureCloud": ("https://management.azure.com", "https://ml.azure.com"),
    "AzureUSGovernment": ("https://management.usgovcloudapi.net", "https://ml.azure.us"),
    "AzureChinaCloud": ("https://management.chinacloudapi.cn", "https://ml.azure.cn"),
}

_REGISTRY_VERSION = "2021-10-01-dataplanepreview"  # of a registry's own service, as MLClient has it
_READS_LEFT = "x-ms-ratelimit-remaining-subscription-reads"
SCARCE = 125  # reads; half of the burst that Resource Manager allows a caller
SCARCE_SECONDS = 5.0  # Resource Manager grants as many new reads in this time
_PATIENCE: dict[str, Any] = {"connection_timeout": 5, "read_timeout": 15}  # seconds
_NOT_CHECKED = (
    "The local workspace did not say within {seconds} s whether it can run the job, so nothing was submitted. This "
    "computer may be busy, for example with making an environment. Try again when it is less busy."
)
_LONGEST = 60  # seconds for one call with all its retries

Json = dict[str, Any]


def endpoints(client_kwargs: Mapping[str, Any]) -> tuple[str, str]:
    """Return the URLs of Resource Manager and Azure ML's data plane for these arguments of MLClient.

    `cloud` names one of Azure's clouds; URLs in `cloud_metadata` take precedence. Raises BadSetting.
    """
    cloud, given = client_kwargs.get("cloud", "AzureCloud"), client_kwargs.get("cloud_metadata", {})
    keys = ("resource_manager", "aml_resource_id")
    if cloud not in _CLOUDS and not given.keys() >= {*keys}:
        raise BadSetting(
            f"AML_CLIENT_KWARGS has cloud {cloud!r}. Choose {', '.join(_CLOUDS)}, or give {' and '.join(keys)} of "
            "your own in cloud_metadata."
        )
    manager, data = (given.get(key) or _CLOUDS[cloud][place] for place, key in enumerate(keys))
    return str(manager).rstrip("/"), str(data).rstrip("/")


class Arm:
    """Calls below the workspace's resource, with the app's identity. Errors are translated to Trainyard's."""

    def __init__(self, workspace: Workspace, credential: TokenCredential, circuit: Circuit) -> None:
        self._circuit = circuit
        self._manager, data = endpoints(workspace.client_kwargs)
        self.workspace_id = (
            f"/subscriptions/{workspace.subscription_id}/resourceGroups/{workspace.resource_group}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{workspace.name}"
        )
        from azure.core import PipelineClient
        from azure.mgmt.core import ARMPipelineClient

        from shared.adapters.transport import transport

        policies = _policies(self._manager, credential)
        self._client: ARMPipelineClient[Any, Any] = ARMPipelineClient(
            self._manager, policies=policies, transport=transport(**_PATIENCE)
        )
        self._data_client: PipelineClient[Any, Any] = PipelineClient(
            data, policies=_policies(data, credential), transport=transport(**_PATIENCE)
        )
        self._discovered: Json = {}
        self._reads_left = (0.0, SCARCE)  # when Resource Manager reported them, and how many
        self._lock = threading.Lock()

    def get(self, path: str = "") -> Json:
        """Return the resource at `path` below the workspace, or the workspace itself."""
        return self._send("GET", self._url(path))

    def scarce(self) -> bool:
        """Return whether Resource Manager's last answer, at most SCARCE_SECONDS ago, left few reads."""
        at, left = self._reads_left
        return left < SCARCE and time.monotonic() - at < SCARCE_SECONDS

    def find(self, path: str) -> Json | None:
        """Return the resource, or None if it does not exist."""
        try:
            return self.get(path)
        except NotFound:
            return None

    def find_in_registry(self, registry: str, path: str) -> Json | None:
        """Return the resource of a registry; None if the registry or the resource does not exist.

        As MLClient does, this asks the service of registries for the registry's address
        (azure/ai/ml/_utils/_registry_utils.py).
        """
        services = f"{self._services('api')}/registrymanagement/v1.0/registries/{quote(registry)}/discovery"
        try:
            where = self._send("GET", services)
            group = f"subscriptions/{where['subscriptionId']}/resourceGroups/{where['resourceGroup']}"
            home = f"{str(where['primaryRegionResourceProviderUri']).rstrip('/')}/mferp/managementfrontend/{group}"
            below = f"providers/Microsoft.MachineLearningServices/registries/{quote(registry)}/{quote(path)}"
            return self._send("GET", f"{home}/{below}?api-version={_REGISTRY_VERSION}")
        except NotFound:
            return None

    def items(self, path: str, **query: str) -> Iterator[Json]:
        """Yield all items of a collection, page by page."""
        url = self._url(path) + "".join(f"&{key}={quote(value, safe='=')}" for key, value in query.items())
        while url:
            page = self._send("GET", url)
            yield from page.get("value", [])
            url = page.get("nextLink") or ""

    def page(self, path: str, token: str = "") -> tuple[list[Json], str]:
        """Return one page of a collection, and the token of the next page, '' for the last page."""
        answer = self._send("GET", self._url(path) + (f"&$skip={quote(token, safe='')}" if token else ""))
        following = parse_qs(urlsplit(answer.get("nextLink") or "").query)
        return list(answer.get("value", [])), following.get("$skip", [""])[0]

    def put(self, path: str, body: Json) -> Json:
        return self._send("PUT", self._url(path), body)

    def post(self, path: str, body: Json) -> Json:
        return self._send("POST", self._url(path), body)

    def get_with_etag(self, path: str) -> tuple[Json, str]:
        """Return the resource and its etag ('' without an etag)."""
        headers: dict[str, str] = {}
        answer = self._send("GET", self._url(path), received=headers)
        return answer, headers.get("etag", "")

    def patch(self, path: str, body: Json, etag: str = "") -> None:
        """Change a resource. Returns when the service has accepted the change, which may take minutes more to happen.

        With an etag, raises Changed if the resource has changed since.
        """
        self._send("PATCH", self._url(path), body, headers={"If-Match": etag} if etag else None)

    def run_details(self, run: str) -> Json:
        """Return run history's record of a job: the job's error, and the URLs of the job's logs. Azure publishes no
        contract for this record.
        """
        return self._send("GET", f"{self._history()}/runs/{run}/details", client=self._data_client)

    def run_children(self, run: str) -> list[Json]:
        """Return run history's records of a pipeline's started steps, newest first; only the first page."""
        answer = self._send("GET", f"{self._history()}/runs/{run}/children", client=self._data_client)
        return list(answer.get("value", []))

    def tracking(self, path: str, query: str) -> Json:
        """Return an answer of the workspace's MLflow. Azure publishes its URL; the rest is MLflow's own REST API.

        The circuit does not count this call, because jobs work without MLflow.
        """
        from azure.core.rest import HttpRequest

        url = f"{self._services('api')}/mlflow/v2.0{self.workspace_id}/api/2.0/mlflow/{path}?{query}"
        with translated(f"MLflow did not answer {path}"):
            response = self._data_client.send_request(HttpRequest("GET", url))
            response.raise_for_status()
            answer: Json = response.json()
        return answer

    def metrics(self, query: Mapping[str, str]) -> Json:
        """Return values of Azure Monitor's metrics of the workspace.

        The circuit does not count this call, because jobs work without Azure Monitor.
        """
        from azure.core.rest import HttpRequest

        url = f"{self._manager}{self.workspace_id}/providers/Microsoft.Insights/metrics"
        with translated("Azure Monitor did not give the metrics of the workspace"):
            params = {"api-version": _METRICS_VERSION, **query}
            response = self._client.send_request(HttpRequest("GET", url, params=params))
            response.raise_for_status()
            answer: Json = response.json()
        return answer

    def preflight(self, job: Json) -> Json:
        """Return the workspace's own check of a job before the submission. Azure has no preflight and gives {}.

        A local workspace names its check in its discovery document, because it can't build every environment.
        """
        if not (service := self._discovery().get("preflight")):
            return {}
        url = f"{str(service).rstrip('/')}/preflight/v1.0{self.workspace_id}/jobs"
        try:
            return self._send("POST", url, {"job": job}, client=self._data_client)
        except NoAnswer as exc:
            from azure.core.exceptions import ServiceResponseTimeoutError

            if isinstance(exc.__cause__, ServiceResponseTimeoutError):
                raise NoAnswer(_NOT_CHECKED.format(seconds=_PATIENCE["read_timeout"])) from exc
            raise

    def _history(self) -> str:
        return f"{self._services('history')}/history/v1.0{self.workspace_id}"

    def _services(self, name: str) -> str:
        """Return the URL of a workspace service. Resource Manager is not one of these services."""
        return str(self._discovery().get(name) or self._discovery()["api"]).rstrip("/")

    def _discovery(self) -> Json:
        """Return the URLs of the workspace's services. Service URLs never change, so only the first call reads them."""
        with self._lock:
            if not self._discovered:
                self._discovered = self._send("GET", self.get()["properties"]["discoveryUrl"], client=self._data_client)
            return self._discovered

    def _url(self, path: str) -> str:
        return f"{self._manager}{self.workspace_id}/{quote(path)}".rstrip("/") + f"?api-version={_API_VERSION}"

    def _send(
        self,
        method: str,
        url: str,
        body: Json | None = None,
        client: PipelineClient[Any, Any] | None = None,
        headers: dict[str, str] | None = None,
        received: dict[str, str] | None = None,
    ) -> Json:
        """Return the answer's JSON, and store its headers in `received` under lower-case names."""
        from azure.core.rest import HttpRequest

        what = url.partition("?")[0].removeprefix(self._manager).removeprefix(self.workspace_id).strip("/")
        asked = f"{method} {what or 'the workspace'}"
        with self._circuit.call(), translated(f"Azure ML refused {asked}", f"Azure ML did not answer {asked}"):
            response = (client or self._client).send_request(HttpRequest(method, url, json=body, headers=headers))
            if left := response.headers.get(_READS_LEFT):
                self._reads_left = (time.monotonic(), int(left))
            response.raise_for_status()
        if received is not None:
            received.update({name.lower(): value for name, value in response.headers.items()})
        answer: Json = response.json() if response.content else {}
        return answer


def _policies(resource: str, credential: TokenCredential) -> list[Any]:
    """Return the policies of every request. The retry policy waits as long as a 429 or 503 says in Retry-After."""
    from azure.core.pipeline import policies
    from azure.mgmt.core.policies import ARMHttpLoggingPolicy

    return [
        policies.RequestIdPolicy(),
        policies.RetryPolicy(retry_total=3, retry_connect=1, retry_read=0, retry_backoff_factor=0.5, timeout=_LONGEST),
        policies.BearerTokenCredentialPolicy(credential, f"{resource}/.default"),
        ARMHttpLoggingPolicy(),
    ]
