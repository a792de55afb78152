"""HTTP API responses that several features share: an accepted run, and the address of a file."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, defstruct

from shared.kernel.reply import Reply
from shared.runs.features import before_start, said_before_start
from shared.runs.model import Run, RunState
from shared.runs.results.artifacts import ADDRESS_LIFE

FilePath = Annotated[str, Meta(min_length=1, description="A name from the run's artifacts; it may contain slashes.")]


class FileQuery(Struct):
    link: Annotated[bool, Meta(description="Answer with the address as JSON, not with a redirect.")] = False


class FileAddress(Struct):
    url: str
    seconds: int


class _Accepted(Struct):
    run: str
    state: RunState
    estimated_cost: Annotated[float | None, Meta(description="Dollars; null if unknown.")] = None
    greatest_cost: Annotated[float | None, Meta(description="Dollars; null if no price is known.")] = None


Accepted = defstruct("Accepted", said_before_start(), bases=(_Accepted,), module=__name__)


def accepted(run: Run) -> Reply:
    """Response 202 for a new run, with the run's address and possible cost."""
    body: dict[str, Any] = {"run": run.name, "state": run.progress.state}
    body |= {"estimated_cost": run.money.estimated, "greatest_cost": run.money.greatest, **before_start(run)}
    return Reply(body, 202, {"Location": f"/api/runs/{run.name}"})


def file_address(url: str, query: FileQuery) -> Reply:
    """A redirect to an address of the file, valid for some minutes; with `link`, the address itself, for a page."""
    if query.link:
        return Reply({"url": url, "seconds": ADDRESS_LIFE})
    return Reply(None, 302, {"Location": url, "Cache-Control": "no-store"})
