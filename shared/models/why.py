"""Explain a version: check each link from the dropped data to the current weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from shared.drops.ports import DropPorts
from shared.drops.versions import listing_of
from shared.jobs.readers.place_text import place_text
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import NotFound, TrainyardError
from shared.kernel.parsing import read_json
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs, Place
from shared.models.attestations import attestations, missing, required
from shared.models.evidence import MODELS
from shared.models.find import aliases_of, chosen_by, model_named
from shared.models.hashing import MOST_DATA_FILES
from shared.models.inputs import listed, places
from shared.models.model import Version
from shared.models.ports import ModelPorts, Models
from shared.models.promote import PROOF_LIMIT
from shared.models.provenance import PROVENANCE
from shared.models.signature import SIGNATURE, read_signature
from shared.models.signing_keys import KnownKeys, known_keys
from shared.models.sources import packages
from shared.runs.content import SUCCESS_MARKER, drop_blobs
from shared.runs.model import Run
from shared.runs.ports import Runs
from shared.runs.results.archive import read_manifest
from shared.runs.results.outputs import archive_folder
from shared.runs.views.summary import most_telling_first

NAMED = 5
GOOD, BAD, UNKNOWN = "good", "bad", "unknown"


@dataclass(frozen=True)
class Link:
    """One link of the chain: a name, a state (good, bad, unknown), and a sentence."""

    link: str
    state: str
    says: str


def chain(ports: ModelPorts, version: Version) -> list[Link]:
    """Return the links from the alias to the data. Compares each blob's MD5 or etag, but reads only the proof's
    content.
    """
    run = ports.runs.get(version.run).value
    keys = known_keys(ports.models, ports.signer, ports.clock())
    signed, problem = _signed(keys, ports.blobs, version)
    proof = read_json(ports.blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{PROVENANCE}", PROOF_LIMIT), PROVENANCE)
    predicate = proof["predicate"]
    return [
        _name(ports.models, version),
        Link(
            "signature",
            BAD if problem else GOOD,
            problem or f"{len(signed)} files, signed by key {version.signer[:16]}{_until(keys, version.signer)}.",
        ),
        _weights(ports.blobs, run, signed),
        _run(run, chosen_by(model_named(ports.models, version.model))),
        _data(ports, run),
        _code(predicate),
        _environment(predicate),
        *_parent(ports.runs, version),
        *_attested(ports, version),
        *_required(ports, version),
        _cost(run),
    ]


def data_changes(ports: DropPorts, run: Run) -> str:
    """Return the differences between the drop's data and the run's recorded data; '' for equal data."""
    before = listing_of(ports, run)
    if before is None:
        return ""
    now = {
        blob.name: blob.md5 or blob.etag.strip('"')
        for blob in islice(drop_blobs(ports.blobs, DropKey.of(run.asked.drop)), MOST_DATA_FILES * 5)
    }
    then = {blob.name: blob.md5 or blob.etag for blob in before}
    marker = f"/{SUCCESS_MARKER}"
    names = (name for name in then.keys() | now.keys() if not name.endswith(marker))
    differing = sorted(name for name in names if then.get(name) != now.get(name))
    if not differing:
        return ""
    words = [
        f"{name} {'is gone' if name not in now else 'is new' if name not in then else 'changed'}" for name in differing
    ]
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more


def input_changes(ports: ModelPorts, version: Version, run: Run) -> str:
    """Return the differences between the job's data outside of the drop and the data in the proof; '' for equal
    data.
    """
    proof = read_json(ports.blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{PROVENANCE}", PROOF_LIMIT), PROVENANCE)
    rows = proof["predicate"]["buildDefinition"]["resolvedDependencies"]
    for _, where in places(run):
        begin = f"{place_text(where).rstrip('/')}#"
        then = {str(row["name"]): _content(row) for row in rows if str(row.get("uri", "")).startswith(begin)}
        if not then:
            continue  # an older proof, or data that could not be listed
        now = {blob.name: blob.md5 or blob.etag.strip('"') for blob in listed(ports, where)}
        if differing := sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name)):
            return ", ".join(differing[:NAMED])
    return ""


def _content(row: dict[str, Any]) -> str:
    return str(row["digest"].get("md5") or row["annotations"]["etag"])


def _name(models: Models, version: Version) -> Link:
    aliases = aliases_of(model_named(models, version.model), version.number)
    also = f", now {' and '.join(f'{version.model}@{alias}' for alias in aliases)}" if aliases else ""
    by = f" by {version.by}" if version.by else ""
    why = f": {version.why.rstrip('.')}" if version.why else ""
    return Link("name", GOOD, f"{version}{also}; promoted at {version.at:%Y-%m-%d %H:%M} UTC{by}{why}.")


def _until(keys: KnownKeys, sha256: str) -> str:
    ended = keys.keys[sha256].until
    return f", which signed until {ended:%Y-%m-%d %H:%M} UTC" if ended else ""


def _signed(keys: KnownKeys, blobs: Blobs, version: Version) -> tuple[dict[str, str], str]:
    """Return the signed files with their SHA-256, and any problem with the signature or a document of the proof."""
    try:
        content = blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{SIGNATURE}", PROOF_LIMIT)
        files, hint = read_signature(content)
        if why := keys.why_not(hint):
            return files, why
        if hint != version.signer:
            return files, f"It was signed by key {hint[:16]}, not by key {version.signer[:16]}, which was recorded."
        for name in (name for name in files if not name.startswith(MODELS) and name != "manifest.json"):
            document = blobs.read(OUTPUT_CONTAINER, f"{version.proof}/{name}", PROOF_LIMIT)
            if hashlib.sha256(document).hexdigest() != files[name]:
                return files, f"{name} does not match the signature."
    except (TrainyardError, ValueError, KeyError) as exc:
        return {}, f"It can't be read: {exc}"
    return files, ""


def _weights(blobs: Blobs, run: Run, signed: dict[str, str]) -> Link:
    """Check the archive against its manifest. Only `verify` reads the bytes."""
    if run.removed.at is not None:
        return Link("weights", BAD, f"Removed at {run.removed.at:%Y-%m-%d %H:%M} UTC.")
    folder = archive_folder(run)
    rows = {str(row["name"]): row for row in read_manifest(blobs, folder)["files"]}
    for name in (name for name in signed if name.startswith(MODELS)):
        row = rows.get(name)
        blob = blobs.first(Place(OUTPUT_CONTAINER, f"{folder}/{name}"))
        if blob is None or blob.name != f"{folder}/{name}":
            return Link("weights", BAD, f"{name} is missing in the archive.")
        if row is None or (blob.size, blob.etag.strip('"')) != (row["size"], str(row["etag"]).strip('"')):
            return Link("weights", BAD, f"{name} was overwritten after the run was archived.")
    count = sum(name.startswith(MODELS) for name in signed)
    return Link("weights", GOOD, f"{count} files in {OUTPUT_CONTAINER}/{folder}, as they were archived.")


def _run(run: Run, metric: str) -> Link:
    """Name the run with its first metrics: the metric by which versions are compared, then metrics of quality."""
    owner = f" for {run.people.owner}" if run.people.owner else ""
    values = run.measured.of_model
    metrics = ", ".join(f"{name} {values[name]:g}" for name in most_telling_first(values, metric)[:NAMED])
    words = " ".join(f"{name}={value}" for name, value in sorted(run.asked.parameters.items()))
    return Link(
        "run",
        GOOD,
        f"{run.name}{owner}, {run.asked.nodes} nodes of {run.asked.cluster}: "
        f"{words or 'no parameters'}; {metrics or 'no metrics'}.",
    )


def _data(ports: DropPorts, run: Run) -> Link:
    if not run.asked.drop:
        return Link(
            "data", UNKNOWN, f"No drop; the job read {', '.join(run.asked.reads) or 'nothing that was recorded'}."
        )
    what = f"{run.asked.drop}@{run.asked.generation}"
    if listing_of(ports, run) is None:
        return Link("data", UNKNOWN, f"{what}: no list of its files was kept.")
    changes = data_changes(ports, run)
    return Link("data", BAD if changes else GOOD, f"{what}: {changes or 'all files are there, unchanged'}.")


def _dependency(predicate: dict[str, Any], name: str) -> dict[str, Any]:
    rows = predicate["buildDefinition"]["resolvedDependencies"]
    named = (each for each in rows if each["name"] == name or str(each["name"]).startswith(f"{name} of step "))
    return next(named, {})


def _code(predicate: dict[str, Any]) -> Link:
    code = _dependency(predicate, "code")
    digest = code.get("digest", {})
    if commit := digest.get("gitCommit"):
        changed = ", with changes that were not committed" if code["annotations"]["changedSinceCommit"] else ""
        return Link("code", GOOD, f"git show {commit}{changed}; digest {str(digest.get('sha256', ''))[:16]}.")
    if digest:
        return Link(
            "code",
            GOOD,
            f"The trainers' code or an uploaded folder, digest {digest['sha256'][:16]}; no commit is known.",
        )
    return Link("code", UNKNOWN, "The job named its own code.")


def _environment(predicate: dict[str, Any]) -> Link:
    node = predicate["buildDefinition"]["internalParameters"]["node"]
    uri = str(_dependency(predicate, "environment").get("uri", ""))
    name = uri.partition("/environments/")[2] or uri
    if not (installed := packages(node)):
        return Link("environment", UNKNOWN, f"{name}; the job did not report its packages.")
    return Link(
        "environment", GOOD, f"{name}: Python {node.get('python')}, {len(installed)} packages; {node.get('processor')}."
    )


def _parent(runs: Runs, version: Version) -> Iterator[Link]:
    if version.from_run:
        try:
            parent = runs.get(version.from_run).value
        except NotFound:
            yield Link("parent", BAD, f"Run {version.from_run} is not recorded.")
            return
        gone = parent.removed.at is not None
        yield Link(
            "parent",
            BAD if gone else GOOD,
            f"It started from the model of run {parent.name}{', which was removed' if gone else ''}.",
        )


def _attested(ports: ModelPorts, version: Version) -> Iterator[Link]:
    for each in attestations(ports, version):
        by = each.by or (f"key {each.signer[:16]}" if each.signer else "nobody known")
        claim = " (a name without sign-in)" if each.of_app and not each.by_id else ""
        words = f"{'passed' if each.passed else 'failed'}, says {by}{claim} at {each.at or 'an unknown time'}"
        says = f": {each.says}" if each.says else ""
        state = BAD if each.problem or not each.passed else GOOD
        yield Link(each.kind, state, each.problem or f"{words}{says}.")


def _required(ports: ModelPorts, version: Version) -> Iterator[Link]:
    """Check each alias that demands attestations: the version must have them."""
    here = aliases_of(model_named(ports.models, version.model), version.number)
    for alias, kinds in required(ports.routes, version.model).items():
        gaps = list(missing(ports, version, alias))
        state = (BAD if alias in here else UNKNOWN) if gaps else GOOD
        says = " ".join(gaps) or "They are there."
        yield Link("required", state, f"{version.model}@{alias} demands {', '.join(kinds)}. {says}")


def _cost(run: Run) -> Link:
    cost = run.money.cost
    if cost is None:
        return Link("cost", UNKNOWN, "Nothing was charged.")
    return Link("cost", GOOD, f"${cost.dollars:.2f}, {cost.node_seconds:,.0f} node seconds.")
