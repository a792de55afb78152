"""What a person calls a run: its whole name, the beginning of it, `@latest`, `mnist@best:accuracy`, or its drop."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CliError, NotFound
from ..files.job_form import is_remote
from .client import Api

WHOLE = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{16}")  # nothing needs to be asked about it


def run_name(api: Api, text: str) -> str:
    """The run's whole name. Raises CliError with what may have been meant."""
    drop, run = _find(api, text)
    if not run:
        raise NotFound(f"Drop {drop} has made no run yet; `show {drop}` says why.")
    return run


@contextmanager
def suggesting(api: Api, text: str) -> Iterator[None]:
    """Let a whole name that names nothing say what may have been meant, as a beginning does."""
    try:
        yield
    except NotFound:
        if WHOLE.fullmatch(text):
            api.get("find", name=text)
        raise


def drop_or_run(api: Api, text: str) -> tuple[str, str]:
    """(drop, '') for the name of a drop, or ('', run)."""
    drop, run = _find(api, text)
    return (drop, "") if drop else ("", run)


def drop_name(api: Api, text: str) -> str:
    """The drop's whole name, `route/name`; of a run the drop that it was made from."""
    drop, run = _find(api, text)
    if not drop and not (drop := str(api.get("runs", run)["drop"])):
        raise NotFound(f"Run {run} was made from no drop.")
    return drop


def data_ref(api: Api, text: str) -> str:
    """The same with a generation behind it, `@2` or `@now`, as it was given; or a run's whole name."""
    name, at, which = text.rpartition("@")
    if at and (which == "now" or which.isdigit()):
        return f"{drop_name(api, name)}@{which}"
    drop, run = _find(api, text)
    return drop or run


def data_path(api: Api, text: str) -> str:
    """Data on the other side as the API knows them: `drops/<route>/<name>/...`, also where a run names its drop, or the
    drop's own name stands alone. What names no drop stays: it may be a datastore's path."""
    if "://" in text or is_remote(text):
        return text
    if "@" in text:
        return f"drops/{drop_name(api, text)}"
    parts = text.removeprefix("drops/").split("/", 2)
    if len(parts) < 2:
        return text
    named = "/".join(parts[:2])
    if not text.startswith("drops/"):
        return f"drops/{text}" if _is_drop(api, named) else text
    try:
        parts[:2] = [drop_name(api, named)]
    except NotFound:
        return text  # an upload that nobody saw yet; the API looks for the files themselves
    return "/".join(["drops", *parts])


def _is_drop(api: Api, name: str) -> bool:
    """Whether a drop has this very name."""
    try:
        return bool(api.get("find", name=name)["drop"] == name)
    except CliError:
        return False


def _find(api: Api, text: str) -> tuple[str, str]:
    if WHOLE.fullmatch(text):
        return "", text
    try:
        match = api.get("find", name=text)
    except NotFound as exc:
        if exc.code:
            raise
        name = text.removeprefix("drops/").strip("/")  # an older deployment, which knows whole names only
        return (name, "") if "/" in name else ("", name)
    return str(match["drop"]), str(match["run"])
