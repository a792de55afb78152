"""The HTTP trigger: each request becomes one invocation, whose result becomes the response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from aiohttp import HttpVersion11, web
from aiohttp.web_response import Response

from emulators.host.functions import Function, HttpTrigger
from emulators.host.http.keys import Gate
from emulators.host.http.routing import Route, Router
from emulators.host.worker.backend import HttpRequestData, HttpResponseData, Value
from emulators.host.worker.invoker import Invoker
from emulators.serving import read_body

LARGEST_BODY = 100 * 1024 * 1024  # Azure's limit, unless FUNCTIONS_REQUEST_BODY_SIZE_LIMIT is set
HOME = "<!DOCTYPE html><title>Functions host</title><p>Your Functions app is up and running."
# aiohttp writes these itself; a function that sets them would contradict the body that is really sent.
OWN_HEADERS = {"content-length", "transfer-encoding", "connection"}


class HttpFront:
    """Answers for the app's HTTP functions: 404 without a matching route and method, 401 without a known key, 403
    for a key of too low a level, 500 for a failed function."""

    def __init__(
        self, functions: Iterable[Function], invoker: Invoker, gate: Gate, settings: Mapping[str, str]
    ) -> None:
        self._invoker = invoker
        self._largest_body = int(settings.get("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT") or LARGEST_BODY)
        self._has_home = settings.get("AzureWebJobsDisableHomepage", "").lower() != "true"
        self._gate = gate
        self._router = router_of(functions)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if "%00" in path:
            return Response(status=400)
        match = self._router.find(request.method, path)
        if match is None:
            return self._home() if path == "/" else Response(status=404)
        (function, trigger), params = match
        if refusal := self._gate.refusal(request, trigger.auth_level):
            return Response(status=refusal)
        if (request.content_length or 0) > self._largest_body:
            return Response(status=500)
        data = await read_request(request, params)
        metadata = {name: Value("string", text) for name, text in params.items()}
        outcome = await self._invoker.invoke(function, {trigger.parameter: Value("http", data)}, metadata)
        response = to_response(outcome.returned) if outcome.ok else Response(status=500)
        if response.body and request.version >= HttpVersion11:
            response.enable_chunked_encoding()
        return response

    def _home(self) -> Response:
        return Response(text=HOME, content_type="text/html") if self._has_home else Response(status=204)


def router_of(functions: Iterable[Function]) -> Router[tuple[Function, HttpTrigger]]:
    """Return a router whose routes are sorted by function name, ignoring case. As in Azure, the first match wins."""
    return Router(
        Route(function.trigger.route, function.trigger.methods, (function, function.trigger))
        for function in sorted(functions, key=lambda function: function.name.lower())
        if isinstance(function.trigger, HttpTrigger)
    )


async def read_request(request: web.Request, params: Mapping[str, str]) -> HttpRequestData:
    """Return the request in the host's form: empty query values are dropped, repeated values are joined, and a body
    is read only with a Content-Length."""
    query = {name: ",".join(request.query.getall(name)) for name in request.query}
    return HttpRequestData(
        method=request.method,
        url=str(request.url),
        headers={name.lower(): ",".join(request.headers.getall(name)) for name in request.headers},
        query={name: text for name, text in query.items() if text},
        params=params,
        body=await read_body(request) if request.content_length else b"",
    )


def to_response(returned: Value | None) -> Response:
    """Return the response for a function's return value, an HttpResponse or text."""
    if returned is None:
        return Response(status=204)
    if isinstance(returned.content, HttpResponseData):
        return _complete(returned.content)
    text = str(returned.content)
    return _described(text) or Response(text=text)


def _complete(data: HttpResponseData) -> Response:
    headers = {name: text for name, text in data.headers.items() if name.lower() not in OWN_HEADERS}
    response = Response(status=data.status, headers=headers, body=data.body)
    for cookie in data.cookies:
        response.headers.add("Set-Cookie", cookie)
    return response


def _described(text: str) -> Response | None:
    """Return the response that a text describes, or None. As in Azure's host, a JSON object with a member `body`
    describes a response."""
    try:
        content = json.loads(text)
    except ValueError:
        return None
    if not isinstance(content, dict) or "body" not in content:
        return None
    body = content["body"]
    status = int(content.get("statusCode") or content.get("status") or 200)
    headers = {str(name): str(value) for name, value in (content.get("headers") or {}).items()}
    if isinstance(body, str):
        return Response(status=status, headers={"Content-Type": "text/plain; charset=utf-8", **headers}, body=body)
    return Response(status=status, headers={"Content-Type": "application/json", **headers}, body=json.dumps(body))
