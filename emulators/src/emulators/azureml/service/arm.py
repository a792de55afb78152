"""The rules of Azure Resource Manager for every request, and the headers of every answer.

https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
https://github.com/Azure/azure-resource-manager-rpc/blob/master/v1.0/common-api-details.md
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from emulators.azureml.kernel.config import PROVIDER
from emulators.azureml.kernel.errors import ArmError, BadRequest
from emulators.tokens import TENANT

# The versions that Microsoft has published for this provider, and those that its clients send.
STABLE = (
    "2018-11-19 2019-05-01 2019-06-01 2019-11-01 2020-01-01 2020-03-01 2020-04-01 2020-06-01 2020-08-01 2021-01-01 "
    "2021-04-01 2021-07-01 2022-05-01 2022-10-01 2023-04-01 2023-10-01 2024-04-01 2024-10-01 2025-06-01 2025-09-01 "
    "2025-12-01"
)
PREVIEWS = (
    "2018-03-01 2020-05-01 2020-05-15 2020-09-01 2021-03-01 2022-01-01 2022-02-01 2022-06-01 2022-10-01 2022-12-01 "
    "2023-02-01 2023-03-01 2023-04-01 2023-06-01 2023-08-01 2024-01-01 2024-04-01 2024-05-01 2024-07-01 2024-10-01 "
    "2025-01-01 2025-04-01 2025-07-01 2025-10-01 2026-05-01"
)
VERSIONS = frozenset(STABLE.split()) | {f"{date}-preview" for date in PREVIEWS.split()}
LATEST = STABLE.split()[-1]
# Azure Monitor's: the folders of Azure/azure-rest-api-specs, specification/monitor/resource-manager/Microsoft.Insights,
# that have a metrics_API.json or metricDefinitions_API.json.
INSIGHTS = "Microsoft.Insights"
INSIGHTS_VERSIONS = frozenset(["2018-01-01", "2021-05-01", "2023-10-01", "2024-02-01"])
DEEPEST = 100  # maximum levels of nesting in a body
CHANGES = frozenset({"PUT", "PATCH", "DELETE"})
# The challenge in WWW-Authenticate: where a client can get a token.
CHALLENGE = (
    f'Bearer authorization_uri="https://login.microsoftonline.com/{TENANT}", error="invalid_token", '
    "error_description=\"The authentication failed because of missing 'Authorization' header.\""
)
LITERAL = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|/[A-Za-z][\w.]*")


def is_arm(request: web.Request) -> bool:
    """Return whether Resource Manager answers this request. Run history and data have other paths and rules."""
    return request.path.lower().startswith(("/subscriptions", "/providers/"))


def insensitive(route: web.RouteDef) -> web.RouteDef:
    """Return a route whose path is case-insensitive, because Resource Manager ignores the case of ids."""
    if "/subscriptions/" not in route.path:
        return route
    numbers: Iterator[int] = iter(range(100))

    def either(match: re.Match[str]) -> str:
        text = match[0]
        return text if text[0] == "{" else f"/{{_{next(numbers)}:(?i:{re.escape(text[1:])})}}"

    return web.RouteDef(route.method, LITERAL.sub(either, route.path), route.handler, route.kwargs)


def check_version(request: web.Request) -> None:
    """Raise BadRequest unless the request has an api-version of the provider. For other providers any version is
    accepted."""
    if PROVIDER.lower() not in request.path.lower():
        return
    if f"/providers/{INSIGHTS}/".lower() in request.path.lower():
        provider, versions = INSIGHTS, INSIGHTS_VERSIONS
    else:
        provider, versions = PROVIDER, VERSIONS
    version = request.query.get("api-version")
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise BadRequest(message, "MissingApiVersionParameter")
    if version.lower() not in versions:
        raise BadRequest(
            f"No registered resource provider found for API version '{version}' for '{provider}'. The supported "
            f"api-versions are '{', '.join(sorted(versions))}'.",
            "NoRegisteredProviderFound",
        )


def check_depth(document: Any) -> None:
    """Raise BadRequest for a body nested deeper than DEEPEST, so that later recursion is safe."""
    level, depth = [document], 0
    while level:
        if (depth := depth + 1) > DEEPEST:
            raise BadRequest(f"The body nests deeper than {DEEPEST} levels.", "InvalidRequestContent")
        inner = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = [value for values in inner for value in values]


def tag(body: bytes) -> str:
    """Return the entity tag of an answer with this body."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@web.middleware
async def preconditions(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check If-Match and If-None-Match: 412 if the client has not read the current version, 304 for a repeated
    read.

    A resource's etag is a hash of its body, so it also changes with the resource's status.
    """
    wanted, unwanted = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if request.method in CHANGES and (wanted or unwanted):
        present = await _present(request)
        if (wanted and not _among(present, wanted)) or (unwanted and _among(present, unwanted)):
            condition = f"If-Match: {wanted}" if wanted else f"If-None-Match: {unwanted}"
            message = f"The condition '{condition}' is not satisfied; the resource's etag is {present or 'none'}."
            raise ArmError(412, "PreconditionFailed", message)
    response = await handler(request)
    if isinstance(response, web.Response) and response.status in (200, 201) and isinstance(response.body, bytes):
        if request.method == "GET" or request.method in CHANGES:
            response.headers["ETag"] = tag(response.body)
        if request.method == "GET" and unwanted and _among(response.headers["ETag"], unwanted):
            return web.Response(status=304, headers={"ETag": response.headers["ETag"]})
    return response


async def _present(request: web.Request) -> str | None:
    """Return the etag of the existing resource, or None if there is none."""
    for route in request.match_info.route.resource or ():
        if route.method == "GET":
            try:
                found = await route.handler(request)
            except ArmError as error:
                if error.status == 404:
                    return None
                raise
            body = found.body if isinstance(found, web.Response) else None
            return tag(body) if isinstance(body, bytes) else None
    return None


def _among(present: str | None, listed: str) -> bool:
    """Return whether a header's list contains the etag. `*` matches any etag."""
    wanted = {text.strip().removeprefix("W/") for text in listed.split(",")}
    return present is not None and ("*" in wanted or present in wanted)


def identify(request: web.Request, response: web.StreamResponse) -> None:
    """Add to an answer its own ids, by which support finds it, and the client's id."""
    response.headers["x-ms-request-id"] = str(uuid.uuid4())
    response.headers["x-ms-correlation-request-id"] = request.headers.get(
        "x-ms-correlation-request-id", str(uuid.uuid4())
    )
    if client := request.headers.get("x-ms-client-request-id"):
        response.headers["x-ms-client-request-id"] = client


def readable(document: bytes) -> Any:
    """Return the JSON of a recorded body, or None if the body is not JSON."""
    try:
        return json.loads(document) if document else None
    except (ValueError, RecursionError):
        return None
