"""Gather and hash the evidence of the making of a run's model, from the archive, the drop and the run's record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from shared.drops.ports import DropPorts
from shared.drops.versions import listing_of
from shared.jobs.card import Card
from shared.jobs.readers.variables import without_values
from shared.jobs.route import Routes
from shared.kernel.errors import Conflict, NotFound
from shared.kernel.parallel import Each
from shared.kernel.parsing import read_json
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Blobs, Place
from shared.models.hashing import MOST_DATA_BYTES, MOST_DATA_FILES, sha256_of
from shared.models.inputs import NamedData, named_data
from shared.models.ports import ModelPorts, Models
from shared.runs.features import data_facts
from shared.runs.find_run import find_run
from shared.runs.model import Run
from shared.runs.ports import Runs
from shared.runs.progress.workloads import workload
from shared.runs.results.archive import MANIFEST, MANIFEST_LIMIT, read_manifest
from shared.runs.results.node_facts import read_all_node_facts, read_node_facts
from shared.runs.results.outputs import archive_folder

MODELS = "models/"
MOST_MODEL_BYTES = 32 << 30  # the amount that can be hashed in the 230 seconds that Azure allows a request


@dataclass(frozen=True)
class ModelFile:
    """A file of the archive, by name."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Evidence:
    """The contents of a proof. `unhashed` explains missing SHA-256 hashes of the drop's files; '' if no hash is
    missing.

    `maker` is the run whose training made the model: the best trial of a sweep, otherwise the run itself.
    """

    run: Run
    files: tuple[ModelFile, ...]  # models/... and the manifest
    data: tuple[tuple[Blob, str], ...] = ()  # each blob of the drop, with its SHA-256
    unhashed: str = ""
    checked: dict[str, Any] = field(default_factory=dict)  # the features' facts about the data, such as its data card
    job: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)  # the trainer's record of its node: packages, processor
    # the same facts for every node or step, by its folder
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    inputs: tuple[NamedData, ...] = ()  # data that the job names beside the drop
    made_by: Run | None = None
    continued: tuple[str, ...] = ()  # the runs whose training this run continued, the latest first
    parent: str = ""  # the version, else the run, whose model the training started from
    parent_digest: str = ""
    workspace: str = ""
    stated: Card = field(default_factory=dict)  # people's statements about the models of the route

    @property
    def maker(self) -> Run:
        return self.made_by or self.run

    @property
    def weights(self) -> dict[str, str]:
        """Return the SHA-256 of each file of the model."""
        return {file.name: file.sha256 for file in self.files if file.name.startswith(MODELS)}


def gather(ports: ModelPorts, run: Run) -> Evidence:
    """Read and hash all evidence. Raises Conflict for an altered archive, NotFound without a model."""
    folder = archive_folder(run)
    content = ports.blobs.read(OUTPUT_CONTAINER, f"{folder}/{MANIFEST}", MANIFEST_LIMIT)
    rows = {str(row["name"]): row for row in read_json(content, MANIFEST)["files"]}
    manifest = ModelFile(MANIFEST, len(content), hashlib.sha256(content).hexdigest())
    data, unhashed = _data(ports, run)
    theirs = workload(run).archived_run(run)
    nodes = read_all_node_facts(ports.blobs, folder, rows)
    parent, parent_digest = _parent(ports.models, run)
    return Evidence(
        run=run,
        files=(*_model(ports.blobs, ports.each, folder, rows), manifest),
        data=data,
        unhashed=unhashed,
        checked=data_facts(run),
        job=ports.jobs.document(without_values(run.asked.request)),
        node=next(iter(nodes.values()), {}),
        nodes=nodes,
        inputs=named_data(ports, run),
        continued=_continued(ports.runs, run),
        made_by=ports.runs.get(theirs).value if theirs != run.name else None,
        parent=parent,
        parent_digest=parent_digest,
        workspace=ports.registry.workspace(),
        stated=_stated(ports.routes, run),
    )


def model_digests(blobs: Blobs, each: Each, run: Run) -> dict[str, str]:
    """Return the SHA-256 of each file of the run's model."""
    folder = archive_folder(run)
    return {file.name: file.sha256 for file in _model(blobs, each, folder, _rows(blobs, folder))}


def node_facts(blobs: Blobs, run: Run) -> dict[str, Any]:
    """Return the trainer's record of the node: processor and packages; {} without a record."""
    return read_node_facts(blobs, archive_folder(run), _rows(blobs, archive_folder(run)))


def _rows(blobs: Blobs, folder: str) -> dict[str, dict[str, Any]]:
    return {str(row["name"]): row for row in read_manifest(blobs, folder)["files"]}


def _model(blobs: Blobs, each: Each, folder: str, rows: dict[str, dict[str, Any]]) -> list[ModelFile]:
    model = [row for name, row in sorted(rows.items()) if name.startswith(MODELS)]
    if not model:
        raise NotFound("The run has no models/. `fetch` downloads its other files.")
    if (size := sum(int(row["size"]) for row in model)) > MOST_MODEL_BYTES:
        raise Conflict(f"The model has {size:,} bytes; at most {MOST_MODEL_BYTES:,} are signed.", "too_large")

    def hashed(row: dict[str, Any]) -> ModelFile:
        name, size = str(row["name"]), int(row["size"])
        digest = sha256_of(blobs, OUTPUT_CONTAINER, f"{folder}/{name}", size, str(row.get("md5") or ""))
        return ModelFile(name, size, digest)

    return list(each(hashed, model))


def _data(ports: DropPorts, run: Run) -> tuple[tuple[tuple[Blob, str], ...], str]:
    """Return the drop's blobs with their SHA-256, and why hashes are missing."""
    blobs = listing_of(ports, run)
    if blobs is None:
        return (), "No list of the drop's files was kept." if run.asked.drop else "The run was not started by a drop."
    size = sum(blob.size for blob in blobs)
    if len(blobs) > MOST_DATA_FILES or size > MOST_DATA_BYTES:
        return tuple((blob, "") for blob in blobs), f"{len(blobs):,} files of {size:,} bytes: too much to hash."

    def hashed(blob: Blob) -> str:
        there = ports.blobs.first(Place(DROPS_CONTAINER, blob.name))
        if there is None or there.name != blob.name or (blob.md5 or blob.etag) != (there.md5 or there.etag.strip('"')):
            raise Conflict(f"{blob.name} was deleted or replaced after the run was created.", "altered")
        return sha256_of(ports.blobs, DROPS_CONTAINER, blob.name, blob.size, blob.md5)

    try:
        digests = ports.each(hashed, blobs)
    except Conflict as exc:
        return tuple((blob, "") for blob in blobs), str(exc)
    return tuple(zip(blobs, digests, strict=True)), ""


def _stated(routes: Routes, run: Run) -> Card:
    route = routes.get(run.asked.route)
    return dict(route.card) if route else {}


def _parent(models: Models, run: Run) -> tuple[str, str]:
    """Return the version or run whose model this run started from, and that version's digest."""
    if not run.asked.from_run:
        return "", ""
    version = next((each for each in models.kept() if each.run == run.asked.from_run), None)
    return (str(version), version.digest) if version else (run.asked.from_run, "")


def _continued(runs: Runs, run: Run) -> tuple[str, ...]:
    """Return the chain of continued runs, the latest first."""
    names: list[str] = []
    found: Run | None = run
    while found and found.asked.continues and found.asked.continues not in names:
        names.append(found.asked.continues)
        found = find_run(runs, names[-1])
    return tuple(names)
