"""The command fetch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from ..api import fetch as fetching
from ..api.client import retry_unreachable
from ..api.follow import PATIENCE_SECONDS
from ..api.model_files import bring, bring_attestations
from ..api.model_names import of_model
from ..api.run_names import run_name, suggesting
from ..errors import CliError
from ..files.model_signature import SIGNATURE
from ..results import Fetched, prints
from ..session import Session, command, user_path
from ..setup import signing_keys
from ..show.tables import file_count
from . import options
from .follow import end_with
from .progress_bar import bar

To = Annotated[
    Path | None, Option("--to", metavar="FOLDER", help="The destination. Default: a folder named like the run.")
]
Only = Annotated[
    list[str] | None,
    Option("--only", metavar="FOLDER", help="Only models, logs, metrics, outputs, or a file. Repeat it for more."),
]
Wait = Annotated[bool, Option("--wait", help="Wait until the run is archived.")]

POLL_SECONDS = 1.0


@command
@prints(Fetched)
def fetch(
    session: Session,
    name: options.RunOrModel,
    to: To = None,
    only: Only = None,
    wait: Wait = False,
) -> None:
    """Download a run's models, logs and metrics, or a model's version with its proof.

    Each file is checked against the manifest of the run (size and MD5, or the etag of a file without MD5) before it
    gets its final name. manifest.json lists the whole archive, also with --only. Run the same command again to
    download missing or damaged files. A failed run has logs and no model, which the exit status shows. A version
    (churn@production) comes with all files that its signature names, each checked by its SHA-256; the signature
    must be by a key that this computer trusts.

    Example: trainyard fetch mnist-0123456789abcdef --only models --to ./model

    Example: trainyard fetch churn@production --to ./churn
    """
    if version := of_model(session.api, name):
        _fetch_version(session, version.get(session.api), to, only or [])
        return
    run = run_name(session.api, name)
    with suggesting(session.api, name):
        _fetch_run(session, run, to, only, wait)


def _fetch_version(session: Session, version: dict[str, Any], to: Path | None, only: list[str]) -> None:
    folder = _folder(to or Path(f"{version['model']}-{version['number']}"))
    keys = signing_keys.trusted(session)
    with bar(session, "fetching", version["bytes"]) as told_bytes:
        files, new = bring(session.api, version, folder, only, keys, told_bytes)
    later = bring_attestations(session.api, version, folder)
    size = sum((folder / file.name).stat().st_size for file in files)
    result: Fetched = {
        "run": version["run"],
        "folder": str(folder.resolve()),
        "manifest": str(folder.resolve() / SIGNATURE),
        "files": [file.name for file in files],
        "bytes": size,
        "new": new,
    }
    model = f"{version['model']}/{version['number']}"
    words = f"{model}: {file_count(len(files))}, {size:,} bytes, in {folder}; {new:,} new, all match the signature"
    if later:
        kinds = ", ".join(sorted({each["kind"] for each in later}))
        words += f"; attestations ({kinds}) in {folder}.attestations"
    session.print_result(result, words)


def _fetch_run(session: Session, run: str, to: Path | None, only: list[str] | None, wait: bool) -> None:
    _await_archive(session, run, wait)
    folder = _folder(to or Path(run))
    manifest = fetching.Manifest.of(session.api, run)
    files = fetching.chosen(manifest.files, only or [])
    if only and not files:
        _print_missing(session, run, only, manifest.files)
    with bar(session, "fetching", sum(file.size for file in files)) as told_bytes:
        new = fetching.fetch(session.api, run, files, folder, told_bytes)
    manifest.keep(folder)
    size = sum(file.size for file in files)
    result: Fetched = {
        "run": run,
        "folder": str(folder.resolve()),
        "manifest": str(folder.resolve() / fetching.MANIFEST),
        "files": [file.name for file in files],
        "bytes": size,
        "new": len(new),
    }
    session.print_result(
        result, f"{file_count(len(files))}, {size:,} bytes, in {folder}; {len(new):,} new, all match the manifest"
    )
    ended = session.api.get("runs", run)
    if ended["state"] != "completed":
        session.remark(f"{run} is {ended['state']}: its files are not a finished model.", "yellow")
    end_with(ended)


def _folder(to: Path) -> Path:
    folder = user_path(to)
    if folder.exists() and not folder.is_dir():
        raise CliError(f"{folder} is a file; --to names a folder. The command creates the folder if it does not exist.")
    return folder


def _await_archive(session: Session, run: str, wait: bool) -> None:
    while True:
        patience = PATIENCE_SECONDS if wait else 0.0
        artifacts: dict[str, Any] = retry_unreachable(
            lambda: session.api.get("runs", run, "artifacts"), patience, session.outage
        )
        if artifacts["complete"]:
            return
        if not wait:
            raise CliError(f"{run} is not archived yet. Use --wait to wait for it.", "not_archived")
        time.sleep(POLL_SECONDS)


def _print_missing(session: Session, run: str, only: list[str], files: list[fetching.File]) -> None:
    state = session.api.get("runs", run)["state"]
    there = ", ".join(sorted({file.name.partition("/")[0] for file in files})) or "nothing"
    session.remark(f"{run} is {state} and has no {' or '.join(only)}. It has: {there}.", "red")
    end_with({"state": state})
    raise typer.Exit(3)
