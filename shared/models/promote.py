"""Promote a run to a version of a model, move an alias, undo a move, or release a version.

The proof is written first, into a folder of its own; then one write under the model's etag creates the version. A
process that loses the race deletes its folder and retries with the next number. A crash in between leaves a folder that
no version names.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from shared.kernel.clock import Clock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import Changed, Conflict, Impossible, TrainyardError
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs, Place
from shared.kernel.versioned import Stored
from shared.models import file_content
from shared.models.attestations import demand
from shared.models.bom import BOM, bom
from shared.models.card import CARD, card
from shared.models.decide import (
    ChangeRequest,
    OtherChampion,
    kept,
    pointed,
    pointed_from,
    signed_again,
    undone,
    with_version,
    without,
)
from shared.models.evidence import MODELS, Evidence, gather, model_digests
from shared.models.facts import AliasMoved
from shared.models.find import decision_of, model_named, version_named, version_of_run
from shared.models.model import Alias, Change, ChangeKind, Model, Version, check_alias, check_name
from shared.models.ports import ModelPorts, Models, Write
from shared.models.provenance import PROVENANCE, provenance
from shared.models.signature import SIGNATURE, key_digest, read_signature, root_digest, signed
from shared.models.signing_keys import record_key
from shared.runs.intake.warm_start import model_of
from shared.runs.model import Run, RunState
from shared.runs.ports import Runs
from shared.runs.results.archive import MANIFEST
from shared.runs.results.outputs import archive_folder

log = logging.getLogger(__name__)

PROOF_LIMIT = 64 << 20  # bytes of one document of a proof
SEEN = 50  # newest history lines, among which a line that was just written is found
JSON, MARKDOWN, BUNDLE = "application/json", "text/markdown", "application/vnd.dev.sigstore.bundle.v0.3+json"
Move = Callable[[Model], tuple[Model, list[Change]]]


@dataclass(frozen=True)
class Judged:
    """The decision of a challenge: the run, the target of the alias (None: none) and the number of lines of the
    history at the time of the judgment, and the metric's goal.
    """

    run: str
    alias: Alias | None
    changes: int = 0
    goals: dict[str, str] = field(default_factory=dict)


def promote_run(
    ports: ModelPorts,
    run: str,
    name: str,
    alias: str,
    asked: ChangeRequest,
    allow_code: bool = False,
    judged: Judged | None = None,
) -> Version:
    """Make the run's model the next version of the model, and point the alias, if given, at it.

    A run is one version of a model: a repeat returns that version and moves the alias. Raises Conflict for a run
    without a promotable model, and Impossible for files that run code when they are loaded, unless `allow_code` is
    true. After a challenge (`judged`), the alias moves only from where it stood then: otherwise raises OtherChampion.
    """
    check_name(name)
    if alias:
        check_alias(alias)
    run_record = _promotable(ports.runs, run)
    evidence = cache(lambda: _checked(ports.blobs, gather(ports, run_record), allow_code))

    def write(stored: Stored[Model] | None) -> Version:
        return version_of_run(ports.models, name, run) or _make(ports, stored, evidence(), name, asked, judged)

    version = compare_and_set(ports.clock, f"Model {name}", lambda: ports.models.get(name), write)
    _still_there(ports, version, asked)
    _register(ports, version, run_record)
    if alias:
        point(ports, name, version.number, alias, asked, judged)
    return ports.models.version(name, version.number) or version


def point(
    ports: ModelPorts, name: str, number: int, alias: str, asked: ChangeRequest, judged: Judged | None = None
) -> Model:
    """Point an alias at a version. Raises NotFound for a version that does not exist or was released, and Conflict for
    one without the attestations that a route of the model demands.

    A repeat does not move the alias, but repeats the reactions to the move, in case a crash after the write prevented
    them.
    """
    check_alias(alias)

    def move(model: Model) -> tuple[Model, list[Change]]:
        # after the model was read: a concurrent release changes the model's etag
        version = version_named(ports.models, name, number)
        if judged:
            _check_undecided(ports.models, model, alias, judged)
        if not (there := model.aliases.get(alias)) or there.number != number:
            demand(ports, version, alias)
        after, lines = (
            pointed_from(model, number, alias, judged.alias, asked) if judged else pointed(model, number, alias, asked)
        )
        return after, [replace(line, run=version.run) for line in lines]

    return _changed(ports, name, alias, move)


def keep(ports: ModelPorts, name: str, alias: str, judged: Judged, asked: ChangeRequest) -> Model:
    """Record that a run was judged, and the alias stayed. Raises OtherChampion if the alias moved meanwhile, or
    another decision on the run was made.
    """

    def write(model: Model) -> tuple[Model, list[Change]]:
        _check_undecided(ports.models, model, alias, judged)
        return kept(model, alias, judged.alias, judged.run, asked)

    return _changed(ports, name, alias, write)


def _check_undecided(models: Models, model: Model, alias: str, judged: Judged) -> None:
    """Raise OtherChampion if a person, or another delivery of the challenge, decided on the run since it was judged.

    Every decision changes the model's row, so the write that follows fails after a later decision.
    """
    if model.changes != judged.changes and decision_of(models, model.name, alias, judged.run):
        raise OtherChampion


def undo(ports: ModelPorts, name: str, alias: str, asked: ChangeRequest) -> Model:
    """Point an alias at the alias's previous version. A repeat goes one version further back."""
    return _changed(ports, name, alias, lambda model: undone(model, alias, asked))


def let_go(models: Models, clock: Clock, name: str, number: int, asked: ChangeRequest) -> Version:
    """Release a version: retention may then remove the run and the data. Raises Conflict while an alias points at the
    version.
    """

    def write(stored: Stored[Model]) -> Version:
        version = version_named(models, name, number)
        after, changes = without(stored.value, version, asked)
        released = replace(version, let_go_at=asked.at)
        _write(models, stored, Write(after, changes, released))
        return released

    return compare_and_set(clock, f"Model {name}", lambda: _stored(models, name), write)


def sign_again(ports: ModelPorts, name: str, number: int, asked: ChangeRequest) -> Version:
    """Sign a version with the current signing key, after every signed file was read and compared with its signature.

    A repeat signs once more. Raises Conflict if a file differs from the signed one.
    """
    version = version_named(ports.models, name, number)
    files = _as_signed(ports, version)
    record_key(ports.models, ports.signer, asked.at)
    content = signed(str(version), files, ports.signer)
    ports.blobs.write(OUTPUT_CONTAINER, f"{version.proof}/{SIGNATURE}", content, BUNDLE)

    def write(stored: Stored[Model]) -> Version:
        after, changes = signed_again(stored.value, version, asked)
        again = replace(version_named(ports.models, name, number), signer=key_digest(ports.signer.public_key()))
        _write(ports.models, stored, Write(after, changes, again))
        return again

    return compare_and_set(ports.clock, f"Model {name}", lambda: _stored(ports.models, name), write)


def _as_signed(ports: ModelPorts, version: Version) -> dict[str, str]:
    """Return the SHA-256 of every file of the version, read now. Raises Conflict if a file differs from the signed
    one.
    """
    files, _ = read_signature(ports.blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{SIGNATURE}", PROOF_LIMIT))
    run = ports.runs.get(version.run).value
    now = model_digests(ports.blobs, ports.each, run)
    for name in files:
        if not name.startswith(MODELS):
            folder = archive_folder(run) if name == MANIFEST else version.proof
            content = ports.blobs.read(OUTPUT_CONTAINER, f"{folder}/{name}", PROOF_LIMIT)
            now[name] = hashlib.sha256(content).hexdigest()
    if now != files or root_digest(now) != version.digest:
        names = sorted(name for name in now.keys() | files.keys() if now.get(name) != files.get(name))
        raise Conflict(f"{version} is not as it was signed: {', '.join(names[:5]) or SIGNATURE} differs.", "altered")
    return files


def _promotable(runs: Runs, name: str) -> Run:
    run = runs.get(name).value
    if run.progress.state is not RunState.COMPLETED:
        raise Conflict(f"Run {name} is {run.progress.state}; only a completed one has a model.", "no_model")
    if run.archive.at is None:
        raise Conflict(f"Run {name} is not archived yet. Try again in a moment.", "not_archived")
    if run.removed.at is not None:
        raise Conflict(f"The files of run {name} were removed at {run.removed.at:%Y-%m-%d %H:%M} UTC.", "removed")
    return run


def _checked(blobs: Blobs, evidence: Evidence, allow_code: bool) -> Evidence:
    """Raise Impossible if loading a file runs code."""
    folder = archive_folder(evidence.run)
    for file in evidence.files:
        if not allow_code and (why := file_content.why_unsafe(blobs, f"{folder}/{file.name}", file.size)):
            raise Impossible(
                f"{file.name} of run {evidence.run.name} may run code when it is loaded: {why}. Save weights as "
                "safetensors, or as a state_dict by torch.save; `allow_code`, of the request or of the route's model, "
                "accepts the file as it is.",
                "runs_code",
            )
    return evidence


def _make(
    ports: ModelPorts,
    stored: Stored[Model] | None,
    evidence: Evidence,
    name: str,
    asked: ChangeRequest,
    judged: Judged | None,
) -> Version:
    """Create the new version. Raises Changed if someone else changed the model first."""
    model = stored.value if stored else Model(name)
    version = _prove(ports, evidence, name, model.latest + 1, asked)
    after, changes = with_version(model, version.number, asked, judged.goals if judged else {})
    try:
        _write(ports.models, stored, Write(after, changes, version))
    except Changed:
        _remove_proof(ports.blobs, version)
        raise
    log.info("%s: promoted run %s", version, version.run)
    return version


def _prove(ports: ModelPorts, evidence: Evidence, name: str, number: int, asked: ChangeRequest) -> Version:
    """Write the proof and return the described version. Raises Conflict if the signing key was withdrawn."""
    record_key(ports.models, ports.signer, asked.at)
    statement = provenance(evidence, name, number, asked)
    materials = bom(evidence, name, number, asked)
    documents = {
        PROVENANCE: (json.dumps(statement, indent=1, default=str).encode(), JSON),
        BOM: (materials, JSON),
        CARD: (card(statement, json.loads(materials)).encode(), MARKDOWN),
    }
    digests = {file.name: file.sha256 for file in evidence.files}
    digests |= {file: hashlib.sha256(content).hexdigest() for file, (content, _) in documents.items()}
    documents[SIGNATURE] = (signed(f"{name}/{number}", digests, ports.signer), BUNDLE)
    run = evidence.run
    proof = f"{archive_folder(run)}/proof/{ports.new_token()}"
    for file, (content, kind) in documents.items():
        ports.blobs.write(OUTPUT_CONTAINER, f"{proof}/{file}", content, kind)
    return Version(
        model=name,
        number=number,
        run=run.name,
        at=asked.at,
        proof=proof,
        digest=root_digest(digests),
        signer=key_digest(ports.signer.public_key()),
        by=asked.by.name,
        by_id=asked.by.id,
        why=asked.why,
        bytes=sum(file.size for file in evidence.files),
        metrics=run.measured.of_model,
        said_by_trainer=tuple(run.measured.saved),
        drop=run.asked.drop,
        generation=run.asked.generation,
        from_run=run.asked.from_run,
        reads=run.asked.reads or ((run.asked.drop,) if run.asked.drop else ()),
    )


def _remove_proof(blobs: Blobs, version: Version) -> None:
    blobs.remove(OUTPUT_CONTAINER, [blob.name for blob in blobs.list(Place(OUTPUT_CONTAINER, f"{version.proof}/"))])


def _still_there(ports: ModelPorts, version: Version, asked: ChangeRequest) -> None:
    """Raise Conflict if the run was removed meanwhile, after releasing the version again. `remove_run` makes the same
    check.
    """
    if ports.runs.get(version.run).value.removed.at is None:
        return
    for alias, where in _stored(ports.models, version.model).value.aliases.items():
        if where.number == version.number:
            undo(ports, version.model, alias, asked)
    let_go(ports.models, ports.clock, version.model, version.number, asked)
    raise Conflict(f"Run {version.run} was removed while it was being promoted.", "removed")


def _register(ports: ModelPorts, version: Version, run: Run) -> None:
    """Register the version in Azure ML. After a failure the version stays valid, and the next promotion retries."""
    if version.asset:
        return
    try:
        path = model_of(ports, run.name)
        asset = ports.registry.register(version, path, f"Run {run.name} of {run.asked.experiment}")
    except TrainyardError as exc:
        log.warning("%s is not in Azure ML's registry yet: %s", version, exc)
        return
    ports.models.set_asset(version, asset)


def _changed(ports: ModelPorts, name: str, alias: str, move: Move) -> Model:
    def write(stored: Stored[Model]) -> tuple[Model, list[Change]]:
        after, lines = move(stored.value)
        if lines:
            _write(ports.models, stored, Write(after, lines))
        return after, lines or [line for line in ports.models.history(name, SEEN) if line.alias == alias][:1]

    after, lines = compare_and_set(ports.clock, f"Model {name}", lambda: _stored(ports.models, name), write)
    for line in lines:
        if line.what in (ChangeKind.ALIAS, ChangeKind.UNDO):
            ports.happened(AliasMoved(line))
    return after


def _write(models: Models, before: Stored[Model] | None, write: Write) -> None:
    """Write the change. A retry after its own write succeeds. Raises Changed after another writer's change."""
    try:
        models.write(before, write)
    except Changed:
        if not _is_made(models, write):
            raise


def _is_made(models: Models, write: Write) -> bool:
    if (version := write.version) is None:
        return write.changes[-1] in models.history(write.model.name, SEEN)
    stored = models.version(version.model, version.number)
    return stored is not None and _signs(stored) == _signs(version)


def _signs(version: Version) -> tuple[object, ...]:
    return version.proof, version.let_go_at, version.signer


def _stored(models: Models, name: str) -> Stored[Model]:
    return models.get(name) or Stored(model_named(models, name), "")  # the latter raises NotFound
