"""Ways to name a run on the command line: the full name, a prefix, `@latest`, `mnist@best:accuracy`, or the run's
drop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CliError, NotFound
from ..files.job_form import is_remote
from .client import Api

WHOLE = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{16}")  # a full name needs no request


def run_name(api: Api, text: str) -> str:
    """Return the run's full name. Raises CliError, with suggestions, if the text names no run."""
    drop, run = _find(api, text)
    if not run:
        raise NotFound(f"Drop {drop} has not started a run yet; `show {drop}` says why.")
    return run


@contextmanager
def suggesting(api: Api, text: str) -> Iterator[None]:
    """Add suggestions to the error for an unknown full name, as for an unknown prefix."""
    try:
        yield
    except NotFound:
        if WHOLE.fullmatch(text):
            api.get("find", name=text)
        raise


def drop_or_run(api: Api, text: str) -> tuple[str, str]:
    """Return (drop, '') if the text names a drop, otherwise ('', run)."""
    drop, run = _find(api, text)
    return (drop, "") if drop else ("", run)


def drop_name(api: Api, text: str) -> str:
    """Return the drop's full name, `route/name`. For a run, return the drop that the run was made from."""
    drop, run = _find(api, text)
    if not drop and not (drop := str(api.get("runs", run)["drop"])):
        raise NotFound(f"Run {run} was not started by a drop.")
    return drop


def data_ref(api: Api, text: str) -> str:
    """Return the drop's full name followed by the generation, `@2` or `@now`, if one was given, or a run's full
    name."""
    name, at, which = text.rpartition("@")
    if at and (which == "now" or which.isdigit()):
        return f"{drop_name(api, name)}@{which}"
    drop, run = _find(api, text)
    return drop or run


def data_path(api: Api, text: str) -> str:
    """Return the path of data in the cloud, in the API's form `drops/<route>/<name>/...`. The text may name a run
    of the drop, or give the drop's name without `drops/`. Text that names no drop is returned unchanged, because
    it may be a datastore's path."""
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
        return text  # an upload that is not known yet; the API searches for the files themselves
    return "/".join(["drops", *parts])


def _is_drop(api: Api, name: str) -> bool:
    """Return whether a drop has exactly this name."""
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
        name = text.removeprefix("drops/").strip("/")  # an older deployment knows only whole names
        return (name, "") if "/" in name else ("", name)
    return str(match["drop"]), str(match["run"])
