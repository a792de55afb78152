"""What a person calls a run: its whole name, the beginning of it, `@latest`, `mnist@best:accuracy`, or its drop."""

from __future__ import annotations

import re

from .client import Api
from .errors import NotFound

WHOLE = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{16}")  # nothing needs to be asked about it


def run_name(api: Api, text: str) -> str:
    """The run's whole name. Raises CliError with what may have been meant."""
    drop, run = _find(api, text)
    if not run:
        raise NotFound(f"Drop {drop} has made no run yet; `show {drop}` says why.")
    return run


def drop_or_run(api: Api, text: str) -> tuple[str, str]:
    """(drop, '') for the name of a drop, or ('', run)."""
    drop, run = _find(api, text)
    return (drop, "") if drop else ("", run)


def _find(api: Api, text: str) -> tuple[str, str]:
    if WHOLE.fullmatch(text):
        return "", text
    try:
        found = api.get("find", name=text)
    except NotFound as exc:
        if exc.code:
            raise
        name = text.removeprefix("drops/").strip("/")  # an older deployment, which knows whole names only
        return (name, "") if "/" in name else ("", name)
    return str(found["drop"]), str(found["run"])
