"""Evidence that comes after a version was signed: an approval, a test report, a fairness check, a scan.

An attestation is an in-toto statement about the version's digest, in a DSSE envelope in a Sigstore bundle, with its own
signer. A person attests through the API: the app signs, and states who attested and whether the person had signed in. A
program, such as a scanner in CI, signs with its own key and sends the bundle with its public key. Attestations are
stored beside the proof, so the signed files stay unchanged. A route's model can demand attestations before its alias
moves (`require`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from shared.jobs.route import Routes
from shared.jobs.route_model import RouteModel
from shared.kernel.errors import Conflict, Impossible
from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blob, Place
from shared.models.model import Version
from shared.models.ports import ModelPorts
from shared.models.signature import STATEMENT, bundled, key_digest, payload_of
from shared.models.signing_keys import KnownKeys, known_keys, record_key

Json = dict[str, Any]
PREDICATE = "urn:trainyard:attestation:v1"
FOLDER = "attestations"
MOST = 100  # attestations of a version
MOST_BYTES = 256 << 10  # of one attestation
APPROVAL = "approval"  # counts only from a person other than the run's owner
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Attestation:
    """The statement of an attestation, and whether it counts.

    `signer` is the SHA-256 of the key that signed. `of_app`: the app signed for the person `by`, whose id is empty for
    a name without sign-in. `problem` is the reason why the signature does not count, '' if it counts.
    """

    file: str
    kind: str
    passed: bool
    says: str
    at: str  # ISO 8601, as the signer states it
    by: str
    by_id: str
    signer: str
    predicate: str
    of_app: bool
    problem: str = ""


def attest(ports: ModelPorts, version: Version, kind: str, passed: bool, says: str, by: Person) -> Attestation:
    """Sign and store a person's statement about a version."""
    now = ports.clock()
    record_key(ports.models, ports.signer, now)
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": str(version), "digest": {"sha256": version.digest}}],
        "predicateType": PREDICATE,
        "predicate": {
            "kind": kind,
            "result": "PASSED" if passed else "FAILED",
            "says": says,
            "attestedAt": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "attestedBy": by.name,
            "attestedById": by.id,
        },
    }
    bundle = json.loads(bundled(json.dumps(statement, indent=1).encode(), ports.signer))
    return _stored(ports, version, {"kind": kind, "publicKey": "", "bundle": bundle})


def add(ports: ModelPorts, version: Version, kind: str, bundle: Json, public_key: str) -> Attestation:
    """Store an attestation that a program signed, with the program's public key (PEM).

    Raises Impossible for a bundle that this key did not sign, or that is not about this version.
    """
    return _stored(ports, version, {"kind": kind, "publicKey": public_key, "bundle": bundle})


def attestations(ports: ModelPorts, version: Version) -> list[Attestation]:
    """Return the attestations of a version, the newest first, each with its signature checked now."""
    blobs = list(islice(ports.blobs.list(Place(OUTPUT_CONTAINER, f"{version.proof}/{FOLDER}/")), MOST))
    newest = sorted(blobs, key=lambda blob: blob.last_modified or _LONG_AGO, reverse=True)
    keys = known_keys(ports.models, ports.signer, ports.clock())

    def read(blob: Blob) -> Attestation:
        content = ports.blobs.read(OUTPUT_CONTAINER, blob.name, 2 * MOST_BYTES)
        return _read(blob.name.removeprefix(f"{version.proof}/"), json.loads(content), version, keys)

    return list(ports.each(read, newest))


def demand(ports: ModelPorts, version: Version, alias: str) -> None:
    """Raise Conflict, which names the missing attestations, if a route of this model demands attestations before
    the alias moves.
    """
    if gaps := list(missing(ports, version, alias)):
        raise Conflict(
            f"{version.model}@{alias} can't move to {version}: {' '.join(gaps)} `attest {version} KIND` adds one.",
            "attestation_missing",
        )


def required(routes: Routes, model: str) -> dict[str, list[str]]:
    """Return the kinds of attestations that the routes of a model demand, by the alias that they guard."""
    kinds: dict[str, list[str]] = {}
    for rule in _rules(routes, model):
        kinds.setdefault(rule.alias, []).extend(kind for kind in rule.require if kind not in kinds.get(rule.alias, ()))
    return {alias: each for alias, each in kinds.items() if each}


def missing(ports: ModelPorts, version: Version, alias: str) -> Iterator[str]:
    """Yield a sentence for each attestation that the alias's routes demand and that the version lacks."""
    rules = [rule for rule in _rules(ports.routes, version.model) if alias == rule.alias and rule.require]
    if not rules:
        return
    there = attestations(ports, version)
    owner = ports.runs.get(version.run).value.people.owner_id
    for rule in rules:
        for kind in rule.require:
            counting = [each for each in there if each.kind == kind and counts(each, rule, owner)]
            if not counting:
                yield f"The route demands the attestation {kind!r}, and the version has none that counts."
            elif not counting[0].passed:
                yield f"Its newest attestation {kind!r} says FAILED: {counting[0].says or 'without a reason'}."


def counts(attestation: Attestation, rule: RouteModel, owner_id: str) -> bool:
    """Return whether the rule accepts the signer: the app, for a person; or one of the rule's own signers of the kind.

    An approval by the owner of the run does not count.
    """
    if attestation.problem:
        return False
    if not attestation.of_app:
        return attestation.signer in rule.signers.get(attestation.kind, ())
    return not (attestation.kind == APPROVAL and owner_id and attestation.by_id == owner_id)


def _rules(routes: Routes, model: str) -> Iterator[RouteModel]:
    return (route.model for route in routes.values() if route.model and route.model.name == model)


def _stored(ports: ModelPorts, version: Version, kept: Json) -> Attestation:
    content = json.dumps(kept, indent=1).encode()
    if len(content) > MOST_BYTES:
        raise Impossible(f"The attestation has {len(content):,} bytes; at most {MOST_BYTES:,} are stored.", "too_large")
    there = list(islice(ports.blobs.list(Place(OUTPUT_CONTAINER, f"{version.proof}/{FOLDER}/")), MOST))
    if len(there) == MOST:
        raise Conflict(f"{version} has {MOST} attestations already.", "too_many")
    file = f"{FOLDER}/{kept['kind']}-{ports.new_token()}.json"
    made = _read(file, kept, version, known_keys(ports.models, ports.signer, ports.clock()))
    if made.problem:
        raise Impossible(f"The attestation is refused. {made.problem}", "bad_attestation")
    ports.blobs.write(OUTPUT_CONTAINER, f"{version.proof}/{file}", content, "application/json")
    return made


def _read(file: str, kept: Json, version: Version, keys: KnownKeys) -> Attestation:
    """Return the statement of a stored attestation, with the problem of its signature or of its subject."""
    pem = str(kept["publicKey"]).encode()
    try:
        hint, payload = payload_of(kept["bundle"], pem or keys.pem)
        signer = key_digest(pem) if pem else hint
        statement = json.loads(payload)
        about = [each["digest"].get("sha256") for each in statement["subject"]]
        predicate = statement["predicate"]
        kind = str(predicate.get("kind") or kept["kind"]) if not pem else str(kept["kind"])
        problem = "" if pem else keys.why_not(hint)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        words = str(exc) if type(exc) is ValueError else f"It is not an in-toto statement in a DSSE bundle: {exc!r}."
        return Attestation(file, str(kept["kind"]), False, "", "", "", "", "", "", not pem, words)
    if version.digest not in about:
        problem = f"It is about another subject than {version}, whose digest is sha256:{version.digest}."
    return Attestation(
        file=file,
        kind=kind,
        passed=_passed(predicate),
        says=str(predicate.get("says") or "")[:2000],
        at=str(predicate.get("attestedAt") or predicate.get("timeVerified") or "")[:40],
        by=str(predicate.get("attestedBy") or "")[:200],
        by_id=str(predicate.get("attestedById") or "")[:200] if not pem else "",
        signer=signer,
        predicate=str(statement.get("predicateType") or "")[:200],
        of_app=not pem,
        problem=problem,
    )


def _passed(predicate: Json) -> bool:
    """Return whether the check passed: `result` of in-toto's test result, or `verificationResult` of SLSA's
    summary.
    """
    return "PASSED" in (predicate.get("result"), predicate.get("verificationResult"))
