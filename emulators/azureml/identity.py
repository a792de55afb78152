"""Managed identity as App Service offers it, so that an unmodified DefaultAzureCredential gets a token.

The tokens are unsigned and grant nothing: the control plane only asks that a request carries one.
"""

from __future__ import annotations

import base64
import json
import time

from aiohttp import web

from emulators.azureml.errors import ArmError
from emulators.azureml.models import Json

LIFETIME_SECONDS = 86400
TENANT = "00000000-0000-0000-0000-0000000000aa"
PRINCIPAL = "00000000-0000-0000-0000-0000000000bb"
HEADER = "trainyard-local"  # the value of IDENTITY_HEADER, which App Service asks back with every request


def token(audience: str = "https://management.azure.com/") -> str:
    """An unsigned JSON Web Token for `audience`."""
    now = int(time.time())
    claims = {"aud": audience, "iss": f"https://sts.windows.net/{TENANT}/", "tid": TENANT, "oid": PRINCIPAL}
    parts = ({"alg": "none", "typ": "JWT"}, {**claims, "iat": now, "nbf": now, "exp": now + LIFETIME_SECONDS})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join((*encoded, "unsigned"))


async def give_token(request: web.Request) -> web.Response:
    """GET IDENTITY_ENDPOINT?resource=...&api-version=2019-08-01, the protocol of App Service and Functions."""
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
