"""Adopt a Batch AI document as a job: find the files of its mounts, and build the equivalent job.

The files of a mount are searched in this order: the place given in the request; a folder in the drop with the mount's
path or name; a datastore with the name of the share or container; and finally batchai/ in the workspace's own storage,
to which migrating users copy their files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from shared.jobs.batchai.beside import beside_a_drop, beside_a_request
from shared.jobs.batchai.given import BatchAI
from shared.jobs.batchai.job import BatchJob, Beside, read_job
from shared.jobs.batchai.mounts import Mount
from shared.jobs.batchai.translate import TEMPLATE, MountSource, shortened, translate
from shared.jobs.data import read_data
from shared.jobs.location import DROPS_STORE, OUTPUT_STORE, Location
from shared.jobs.ports import Around, Stores, Written
from shared.jobs.spec import Layer
from shared.kernel.errors import BadInput, Impossible, NotFound
from shared.kernel.names import path_problem
from shared.kernel.storage import Place

_SECRET = re.compile(r"(?:password|account_?key|sas_?token)$", re.IGNORECASE)
FOLDER = "batchai"  # folder in the workspace's own datastore
_OURS = (DROPS_STORE, OUTPUT_STORE, "workspaceartifactstore", "workspaceworkingdirectory", "workspacefilestore")


@dataclass(frozen=True)
class Order:
    """A job.json and its context.

    `mounts` maps a mount's path or name to its files; `folder` is the document's drop.
    """

    document: Mapping[str, Any]
    beside: Beside = field(default_factory=Beside)
    mounts: Mapping[str, str] = field(default_factory=dict)
    folder: Place | None = None
    longest_seconds: float = float("inf")


def of_drop(document: Mapping[str, Any], around: Around, account: str) -> Written:
    """The job of a drop's job.json. Raises BrokenJobFile for an unreadable file beside job.json."""
    stores, folder = around.stores, around.folder
    beside = beside_a_drop(stores.blobs, folder, document, account) if folder else Beside(account=account)
    order = Order(document, beside, folder=folder, longest_seconds=around.limits.timeout_seconds)
    return adopt(stores, order)


def of_request(document: Mapping[str, Any], given: BatchAI | None, around: Around, account: str) -> Written:
    """The job of a request's job.json. Raises Impossible with all problems, or if a strict request loses anything."""
    given = given or BatchAI()
    beside = beside_a_request(given, account)
    order = Order(document, beside, given.mounts, longest_seconds=around.limits.timeout_seconds)
    written = adopt(around.stores, order)
    if written.problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in written.problems), "bad_batchai")
    if given.strict and any(finding["lossy"] for finding in written.findings or ()):
        raise Impossible(f"`strict` is set. {written.summary}", "lossy")
    return written


def adopt(stores: Stores, order: Order) -> Written:
    """The equivalent job. Never raises because of the document's content; problems are reported."""
    job = read_job(order.document, order.beside)
    if order.folder and (secret := list(secrets_in(order.document))):
        job.report.lost(
            secret[0], f"A secret ({', '.join(secret)[:200]}), which is now in the drop's job file.",
            "Everybody who may read the drop can read it. No run and no archive contains it.",
            "Remove the file from the drop (drop another without it), and renew the secret.",
        )  # fmt: skip
    shortened(job, order.longest_seconds)
    sources = {use.mount: _source(stores, order, use.mount, job) for use in job.uses}
    made = translate(job, sources, order.beside.environment, order.beside.files)
    absent = tuple(
        f"{mount.variable} is empty: copy its files to {source.path}, or name where they are (--mount "
        f"{mount.path}=PATH)."
        for mount, source in made.missing
    )
    # The template has the code with the launcher, and a description for people who see the job in Azure ML.
    template = replace(TEMPLATE, description=job.report.summary())
    findings = [asdict(finding) for finding in job.report.findings]
    return Written(Layer(made.job), template, tuple(job.report.problems), absent, job.report.summary(), findings)


def secrets_in(content: Any, path: str = "") -> Iterator[str]:
    """The paths of values whose keys suggest a secret, except for placeholders."""
    pairs = content.items() if isinstance(content, Mapping) else enumerate(content) if isinstance(content, list) else ()
    for key, value in pairs:
        here = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}".lstrip(".")
        secret = _SECRET.search(str(key)) or (key == "value" and ".secrets[" in f".{path}")
        if secret and isinstance(value, str) and value and not value.startswith("<"):
            yield here
        yield from secrets_in(value, here)


def _source(stores: Stores, order: Order, mount: Mount, job: BatchJob) -> MountSource:
    names = list(dict.fromkeys(name for name in (mount.path, mount.name) if name and not path_problem(name)))
    for name in names:
        if name in order.mounts:
            return _named(stores, order.mounts[name], name, job)
    for name in names if order.folder else ():
        assert order.folder is not None
        below = f"{order.folder.prefix}{name}/"
        if stores.blobs.first(Place(order.folder.container, below)):
            return MountSource(Location(DROPS_STORE, below), True)
    own = mount.name or mount.path
    if own not in _OURS and re.fullmatch(r"\w{1,255}", own, re.ASCII):
        source = _source_at(stores, Location(own, ""))
        if source.there is not False:
            return source
    return _named(stores, f"{OUTPUT_STORE}/{FOLDER}/{own}", own[:80], job)


def _named(stores: Stores, path: str, name: str, job: BatchJob) -> MountSource:
    try:
        place = read_data(path).path
        return _source_at(stores, replace(place, path=f"{place.path.rstrip('/')}/"))
    except Impossible as exc:
        job.report.refuse(f"mounts.{name}", str(exc))
        return MountSource("")


def _source_at(stores: Stores, path: Location) -> MountSource:
    """The source at this path, and whether the source has files.

    A missing datastore has no files. A datastore in another account can't be checked.
    """
    try:
        place = stores.jobs.place(path)
    except NotFound:
        return MountSource(path, False)
    except BadInput:
        return MountSource(path, None)
    return MountSource(path, stores.blobs.first(place) is not None)
