"""The workspace's computes, read and written with the rights of the administrator who is signed in here, never with
the app's rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from ..errors import CliError, Unreachable, extra
from ..setup.profiles import Profile

MANAGER = "https://management.azure.com"
VERSION = "2024-04-01"
WORKSPACE = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/workspaces/[^/]+", re.I
)


class Workspace:
    """Client for the resources below a workspace's resource id. Calls raise CliError with Azure's own message, and
    Unreachable if Azure does not answer."""

    def __init__(self, http: httpx.Client, workspace_id: str) -> None:
        self._http, self._id = http, workspace_id

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Return the workspace's AmlComputes by name."""
        clusters: dict[str, dict[str, Any]] = {}
        address = f"{self._id}/computes?api-version={VERSION}"
        while address:
            page = self._send("GET", address).json()
            clusters |= {c["name"]: c for c in page["value"] if c["properties"].get("computeType") == "AmlCompute"}
            address = page.get("nextLink") or ""
        return clusters

    def location(self) -> str:
        return str(self._send("GET", f"{self._id}?api-version={VERSION}").json()["location"])

    def get(self, name: str) -> tuple[dict[str, Any], str]:
        """Return a compute and its etag, which is '' if the service sends none."""
        answer = self._send("GET", self._address(name))
        return answer.json(), answer.headers.get("etag", "")

    def put(self, name: str, body: dict[str, Any], etag: str = "") -> None:
        """Create or change a compute. Azure continues the operation for some minutes after this call returns."""
        self._send("PUT", self._address(name), body, {"If-Match": etag} if etag else {})

    def _address(self, name: str) -> str:
        return f"{self._id}/computes/{name}?api-version={VERSION}"

    def _send(
        self, method: str, address: str, body: object = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, address, json=body, headers=headers or {})
        except httpx.HTTPError as exc:
            raise Unreachable(f"Azure does not answer ({exc or type(exc).__name__}).") from exc
        if answer.is_success:
            return answer
        try:
            error = answer.json()["error"]
            words = f"{error['code']}: {error['message']}"
        except (ValueError, KeyError, TypeError):
            words = answer.text[:300]
        raise CliError(f"Azure refused ({answer.status_code}). {words}")


@contextmanager
def opened(profile: Profile, workspace_id: str) -> Iterator[Workspace]:
    """Yield the named workspace, or the local cloud's if no name is given. Raises CliError if there is neither."""
    if not workspace_id and profile.workspace_id:
        import ssl

        context = ssl.create_default_context(cafile=profile.certs)
        with httpx.Client(base_url=profile.azureml, verify=context, headers=_bearer("administrator")) as http:
            yield Workspace(http, profile.workspace_id)
        return
    if not WORKSPACE.fullmatch(workspace_id.rstrip("/")):
        raise CliError(
            "Name the workspace: --workspace /subscriptions/<id>/resourceGroups/<group>/providers/"
            "Microsoft.MachineLearningServices/workspaces/<name> (`az ml workspace show --query id`)."
        )
    with httpx.Client(base_url=MANAGER, headers=_bearer(_token()), timeout=60) as http:
        yield Workspace(http, workspace_id.rstrip("/"))


def _token() -> str:
    try:
        from azure.core.exceptions import ClientAuthenticationError
        from azure.identity import DefaultAzureCredential
    except ImportError as exc:
        raise CliError(f"Signing in to Azure needs more packages: {extra('admin')}.") from exc
    try:
        return DefaultAzureCredential().get_token(f"{MANAGER}/.default").token
    except ClientAuthenticationError as exc:
        raise CliError(
            f"You are not signed in to Azure on this machine. Run `az login`. {str(exc).partition(chr(10))[0]}"
        ) from exc


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
