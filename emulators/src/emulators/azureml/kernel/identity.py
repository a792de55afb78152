"""Managed identities in the form of App Service and of Azure ML's nodes, with which an unmodified
DefaultAzureCredential gets a token.

The app's tokens are unsigned and grant nothing: the control plane only requires that a request has one. The nodes'
tokens are signed, because the storage account checks them.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from pathlib import Path

from aiohttp import web

from emulators.azureml.kernel.config import NodeIdentity
from emulators.azureml.kernel.errors import ArmError
from emulators.azureml.kernel.models import Json
from emulators.tokens import LIFETIME_SECONDS, TENANT, issue

PRINCIPAL = "00000000-0000-0000-0000-0000000000bb"
NODES_PATH = "/msi/node"
HEADER = "azure-emulators"  # the value of IDENTITY_HEADER, which App Service requires in requests


def token(audience: str = "https://management.azure.com/", run: str = "") -> str:
    """Return an unsigned JSON Web Token for `audience`. A job's token has the job's name in the claim `run`."""
    now = int(time.time())
    claims = {"aud": audience, "iss": f"https://sts.windows.net/{TENANT}/", "tid": TENANT, "oid": PRINCIPAL}
    claims |= {"run": run} if run else {}
    parts = ({"alg": "none", "typ": "JWT"}, {**claims, "iat": now, "nbf": now, "exp": now + LIFETIME_SECONDS})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join((*encoded, "unsigned"))


def claim(header: str, name: str) -> str:
    """Return a claim of the token in an Authorization header, or '' if the token does not have it."""
    try:
        body = json.loads(base64.urlsafe_b64decode(header.removeprefix("Bearer ").split(".")[1] + "=="))
        return str(body.get(name) or "")
    except (IndexError, AttributeError, ValueError, TypeError, RecursionError):
        return ""


async def give_token(request: web.Request) -> web.Response:
    """Answer GET IDENTITY_ENDPOINT?resource=...&api-version=2019-08-01, the protocol of App Service and Functions."""
    if request.headers.get("X-IDENTITY-HEADER") != HEADER:
        raise ArmError(401, "Unauthorized", "The X-IDENTITY-HEADER header is not the value of IDENTITY_HEADER.")
    resource = request.query.get("resource", "")
    body: Json = {
        "access_token": token(resource),
        "expires_on": str(int(time.time()) + LIFETIME_SECONDS),
        "resource": resource,
        "token_type": "Bearer",
        "client_id": PRINCIPAL,
    }
    return web.json_response(body)


class NodeTokens:
    """Issues tokens of the cluster's identity to processes on nodes.

    As in Azure ML, a request that does not name an identity gets no token, because a cluster may have several
    identities (https://github.com/Azure/azure-sdk-for-python/issues/30427).
    """

    def __init__(self, nodes: NodeIdentity | None) -> None:
        self._nodes = nodes
        self._secret = secrets.token_urlsafe(24)

    def environment(self, service_url: str, bundle: Path) -> dict[str, str]:
        """Return the variables with which a process on a node gets a token: the endpoint, the secret, and the
        client id."""
        if not self._nodes:
            return {}
        return {
            "MSI_ENDPOINT": f"{service_url}{NODES_PATH}",
            "MSI_SECRET": self._secret,
            "DEFAULT_IDENTITY_CLIENT_ID": self._nodes.client_id,
            "REQUESTS_CA_BUNDLE": str(bundle.resolve()),
            "SSL_CERT_FILE": str(bundle.resolve()),
        }

    async def give(self, request: web.Request) -> web.Response:
        """Answer GET MSI_ENDPOINT?resource=...&clientid=...&api-version=2017-09-01 with the header `secret`."""
        nodes, resource = self._nodes, request.query.get("resource", "")
        if not nodes or not hmac.compare_digest(request.headers.get("secret", "").encode(), self._secret.encode()):
            raise ArmError(401, "Unauthorized", "The secret header is not the value of MSI_SECRET.")
        if (client_id := request.query.get("clientid", "")) != nodes.client_id:
            found = f"clientid is {client_id!r}" if client_id else "clientid is missing"
            raise ArmError(400, "BadRequest", f"{found}. It must be the value of DEFAULT_IDENTITY_CLIENT_ID.")
        body: Json = {
            "access_token": issue(nodes.token_key, nodes.principal, resource.rstrip("/")),
            "expires_on": int(time.time()) + LIFETIME_SECONDS,
            "resource": resource,
            "token_type": "Bearer",
            "client_id": nodes.client_id,
        }
        return web.json_response(body)
