"""Functions that log from our own threads: an HTTP handler's thread, and the threads of batch work."""

from __future__ import annotations

import logging

import azure.functions as func

from functions import attribution
from functions.attribution import attributed
from functions.http import Answer, handler
from shared.kernel.operation import ANYONE
from shared.kernel.parallel import in_threads

attribution.prepare_logging()
app = func.FunctionApp()
log = logging.getLogger("threads")


def say(what: str) -> None:
    log.warning(what)


def plain(req: func.HttpRequest) -> func.HttpResponse:
    say("plain")
    return func.HttpResponse("done")


def many(req: func.HttpRequest) -> func.HttpResponse:
    in_threads(say, ["many", "many"])
    return func.HttpResponse("done")


async def waiting(req: func.HttpRequest) -> func.HttpResponse:
    in_threads(say, ["waiting"])
    return func.HttpResponse("done")


answers: dict[str, Answer] = {"plain": plain, "many": many, "waiting": waiting}
for name, answer in answers.items():
    app.route(route=name, auth_level=func.AuthLevel.ANONYMOUS)(handler(name, ANYONE, answer))


@app.queue_trigger("message", "work", "AzureWebJobsStorage")
@attributed
def work(message: func.QueueMessage) -> None:
    in_threads(say, ["work", "work"])
