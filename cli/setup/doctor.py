"""Checks of this machine's setup. The checks are independent, and each says how to fix what is wrong."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from ..errors import CliError, extra
from ..terminal_text import Text
from . import profiles

if TYPE_CHECKING:
    from ..session import Session

GOOD, ODD, BROKEN = "good", "odd", "broken"
MARKS = {GOOD: Text("✓", "green"), ODD: Text("!", "yellow"), BROKEN: Text("✗", "bold red")}
CLOCK_SECONDS = 300.0  # storage and Entra ID refuse signatures if the clock differs by more


@dataclass(frozen=True)
class Finding:
    """The result of one check. `mend` has the advice, and is empty for a good result."""

    what: str
    verdict: str
    found: str
    mend: str = ""


def examine(session: Session, env: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the findings, causes before consequences. Stops at the first failure that makes further checks useless."""
    yield Finding("Python", GOOD, f"{sys.version.split()[0]} at {sys.executable}")
    yield _packages()
    yield _secrets(session)
    yield from _stale_records(env)
    try:
        profile = session.profile
    except CliError as exc:
        yield Finding("deployment", BROKEN, "none", str(exc))
        return
    yield Finding("deployment", GOOD, f"{profile.url}" + (f" (profile {profile.name})" if profile.name else ""))
    if not profile.url.startswith("https://") and profile.name != profiles.LOCAL and profile.secret:
        yield Finding("encryption", ODD, "the key travels in plain http", "Log in again with an https:// address.")
    yield from _service(session)


def picture(findings: list[Finding]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        table.add_row(MARKS[finding.verdict], Text(finding.what), Text(finding.found))
        if finding.mend:
            table.add_row("", "", Text(finding.mend, "bold"))
    wrong = sum(finding.verdict != GOOD for finding in findings)
    verdict = Text("All is well." if not wrong else f"{wrong} to look at.", "green" if not wrong else "yellow")
    return Group(table, Text(), verdict)


def _packages() -> Finding:
    missing = [name for name in ("azure.storage.blob", "azure.identity") if not _is_installed(name)]
    if missing:
        return Finding(
            "uploading", ODD, f"`drop` does not work without {', '.join(missing)}", extra("drop").capitalize()
        )
    return Finding("uploading", GOOD, "azure-storage-blob and azure-identity are there")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def _secrets(session: Session) -> Finding:
    where = session.profiles.secrets
    if isinstance(where, profiles.FileSecrets) and any(p.secret for p in session.profiles.all().values()):
        return Finding("keys", ODD, f"in {where.where}", f"{extra('keyring').capitalize()}; then run `login` again")
    return Finding("keys", GOOD, f"kept in {where.where}")


def _stale_records(env: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each record of a killed local cloud without an answer, and for an untrusted record."""
    try:
        if profiles.find_local(env):
            return
    except CliError as exc:
        yield Finding("local cloud", BROKEN, "its record is not trusted", str(exc))
        return
    for file in dict.fromkeys(profiles.cloud_files(env)):
        if file.exists():
            mend = "Start it again: python3 trainyard.py up"
            yield Finding("local cloud", ODD, f"{file} exists, but nothing answers", mend)


def _service(session: Session) -> Iterator[Finding]:
    try:
        answer = session.api.send("GET", "health", accept=(503,))
        health = answer.json()
    except (CliError, ValueError) as exc:
        yield Finding("API", BROKEN, str(exc), "Check the address (it ends in /api), the network, and any proxy.")
        return
    yield Finding("API", GOOD, "answers")
    for name, check in health["checks"].items():
        mend = (
            ""
            if check["ok"]
            else "The deployment's settings or rights; an administrator fixes them (docs/settings.md)."
        )
        yield Finding(name, GOOD if check["ok"] else BROKEN, check["detail"] or "answers", mend)
    yield from _clock(answer.headers.get("date", ""))
    try:
        status = session.api.get("status")
    except CliError as exc:
        yield Finding("access", BROKEN, str(exc), f"trainyard login {session.profile.url}")
        return
    yield Finding("access", GOOD, "the API accepts your key or token")
    yield _poison({queue: counts["poison"] for queue, counts in status["queues"].items() if counts["poison"]})


def _clock(date: str) -> Iterator[Finding]:
    if date:
        off = time.time() - parsedate_to_datetime(date).timestamp()
        if abs(off) > CLOCK_SECONDS:
            yield Finding("clock", BROKEN, f"{off:+.0f} s from the server's", "Set this machine's clock.")


def _poison(queues: dict[str, int]) -> Finding:
    if not queues:
        return Finding("queues", GOOD, "no poison messages")
    counts = ", ".join(f"{count} in {queue}" for queue, count in queues.items())
    return Finding("queues", ODD, f"poison messages: {counts}", "`status` shows them; each was tried five times.")
