"""An app with every trigger of the host; each function records its input."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from pathlib import Path
from typing import Any, List  # noqa: UP035 - azure-functions does not know list[str]

import azure.functions as func
from events import events

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
app.register_functions(events)


def record(kind: str, **facts: Any) -> None:
    """Append a line to the test's file, and log the line."""
    line = json.dumps({"kind": kind, **facts}, default=str, sort_keys=True)
    logging.getLogger("sample").info(line)
    with Path(os.environ["SAMPLE_RECORD"]).open("a") as out:
        out.write(line + "\n")


@app.route(route="echo/{name?}", methods=["GET", "POST"], auth_level=func.AuthLevel.ANONYMOUS)
def echo(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
    seen = {
        "method": req.method,
        "path": req.url.partition("/api")[2],
        "headers": {k: v for k, v in req.headers.items() if k.startswith("x-")},
        "params": dict(req.params),
        "route_params": dict(req.route_params),
        "body": req.get_body().decode(),
        "function": context.function_name,
        "retry": [context.retry_context.retry_count, context.retry_context.max_retry_count],
    }
    headers = {"X-Seen": "yes"}
    return func.HttpResponse(json.dumps(seen), status_code=201, mimetype="application/json", headers=headers)


@app.route(route="json", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
def json_body(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(json.dumps(req.get_json()))


@app.route(route="text", auth_level=func.AuthLevel.ANONYMOUS)
async def text(req: func.HttpRequest) -> str:
    await asyncio.sleep(0)
    return "plain text"


@app.route(route="described", auth_level=func.AuthLevel.ANONYMOUS)
def described(req: func.HttpRequest) -> str:
    return json.dumps({"statusCode": 418, "headers": {"X-Pot": "tea"}, "body": {"short": "stout"}})


@app.route(route="cookies", auth_level=func.AuthLevel.ANONYMOUS)
def cookies(req: func.HttpRequest) -> func.HttpResponse:
    response = func.HttpResponse(b"\x00\x01")
    response.headers.add("Set-Cookie", "a=1; Path=/; HttpOnly; SameSite=Lax; Max-Age=60")
    response.headers.add("Set-Cookie", "b=2; Expires=Sat, 21 Nov 2026 01:02:03 GMT; Secure; Domain=example.org")
    return response


@app.route(route="things/{id:int}", auth_level=func.AuthLevel.ANONYMOUS)
def thing_by_number(req: func.HttpRequest) -> str:
    return "number " + req.route_params["id"]


@app.route(route="things/latest", auth_level=func.AuthLevel.ANONYMOUS)
def thing_latest(req: func.HttpRequest) -> str:
    return "latest"


@app.route(route="things/{*rest}", auth_level=func.AuthLevel.ANONYMOUS)
def thing_by_path(req: func.HttpRequest) -> str:
    return "path " + req.route_params.get("rest", "(none)")


@app.route(route="boom", auth_level=func.AuthLevel.ANONYMOUS)
def boom(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("kaput")


@app.route(route="process", auth_level=func.AuthLevel.ANONYMOUS)
def process(req: func.HttpRequest) -> str:
    return str(os.getpid())


@app.route(route="quits", auth_level=func.AuthLevel.ANONYMOUS)
async def quits(req: func.HttpRequest) -> func.HttpResponse:
    raise SystemExit(3)


@app.route(route="nothing", auth_level=func.AuthLevel.ANONYMOUS)
def nothing(req: func.HttpRequest) -> func.HttpResponse:
    return None  # type: ignore[return-value]


@app.route(route="secret")
def secret(req: func.HttpRequest) -> str:
    return "opened"


@app.route(route="master", auth_level=func.AuthLevel.ADMIN)
def master(req: func.HttpRequest) -> str:
    return "mastered"


@app.route(route="block/{seconds}", auth_level=func.AuthLevel.ANONYMOUS)
async def block(req: func.HttpRequest) -> str:
    record("block")
    time.sleep(float(req.route_params["seconds"]))
    return "unblocked"


@app.route(route="sleep/{seconds}", auth_level=func.AuthLevel.ANONYMOUS)
async def sleep(req: func.HttpRequest, context: func.Context) -> str:
    record("sleep", invocation=context.invocation_id)
    await asyncio.sleep(float(req.route_params["seconds"]))
    return "slept"


@app.queue_trigger(arg_name="msg", queue_name="%SAMPLE_QUEUE%", connection="AzureWebJobsStorage")
async def work(msg: func.QueueMessage, context: func.Context) -> None:
    body = msg.get_body().decode()
    record("work", id=msg.id, body=body, tries=msg.dequeue_count, invocation=context.invocation_id)
    instruction = json.loads(body)
    await asyncio.sleep(instruction.get("seconds", 0))
    if instruction.get("fail", 0) >= (msg.dequeue_count or 1):
        raise ValueError("told to fail")


@app.queue_trigger(arg_name="msg", queue_name="%SAMPLE_QUEUE%-in", connection="AzureWebJobsStorage")
@app.queue_output(arg_name="$return", queue_name="%SAMPLE_QUEUE%-out", connection="AzureWebJobsStorage")
@app.queue_output(arg_name="more", queue_name="%SAMPLE_QUEUE%-more", connection="AzureWebJobsStorage")
def copy(msg: func.QueueMessage, more: func.Out[List[str]]) -> str:  # noqa: UP006
    more.set(["one", "two"])
    return "copied " + msg.get_body().decode()


@app.queue_trigger(arg_name="msg", queue_name="%SAMPLE_QUEUE%-plain", connection="AzureWebJobsStorage")
def plain(msg: str) -> None:
    record("plain", body=msg)


@app.timer_trigger(arg_name="timer", schedule="%SAMPLE_SCHEDULE%")
@app.retry(strategy="fixed_delay", max_retry_count="2", delay_interval="00:00:00")
def tick(timer: func.TimerRequest, context: func.Context) -> None:
    retry = context.retry_context
    facts = {"past_due": timer.past_due, "status": timer.schedule_status, "schedule": timer.schedule}
    record("tick", invocation=context.invocation_id, retry=retry.retry_count, max=retry.max_retry_count, **facts)
    if retry.retry_count < int(os.environ.get("SAMPLE_TIMER_FAILURES", "0")):
        raise ValueError("timer told to fail")
