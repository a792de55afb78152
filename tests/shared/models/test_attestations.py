"""Attestations: later evidence with its own signers, and aliases that move only with that evidence."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.jobs.route_model import RouteModel, read_model
from shared.kernel.errors import BadSetting, Conflict, Impossible
from shared.kernel.person import Person
from shared.models.attestations import PREDICATE, Attestation, add, attest, attestations
from shared.models.model import Version
from shared.models.promote import point, promote_run, undo
from shared.models.signature import bundled, key_digest
from shared.models.signing_keys import withdraw_key
from shared.models.why import chain
from shared.system import System
from tests.fakes.parts import changed
from tests.fakes.ports import FakeSigner
from tests.fakes.world import World, trainers_folder
from tests.shared.models.test_promoting import ANN, asked, trained

BOB = Person("bob", "id-bob")
SCANNER = FakeSigner()
SCAN_KEY = key_digest(SCANNER.public_key())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def with_rule(world: World, **rule: Any) -> System:
    """Return the system with this rule for the model churn in its route."""
    name, route = next(iter(world.system.routes.items()))
    return replace(world.system, routes={name: replace(route, model=RouteModel("churn", **rule))})


def bundle(version: Version, signer: FakeSigner = SCANNER, **predicate: Any) -> dict[str, Any]:
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "any", "digest": {"sha256": version.digest}}],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {"result": "PASSED", **predicate},
    }
    made: dict[str, Any] = json.loads(bundled(json.dumps(statement).encode(), signer))
    return made


def scanned(system: System, version: Version, signer: FakeSigner = SCANNER, **predicate: Any) -> Attestation:
    return add(system, version, "scan", bundle(version, signer, **predicate), signer.public_key().decode())


def test_a_person_and_a_program_attest_and_why_lists_both(world: World) -> None:
    """The app signs for the person, the program signs for itself; `why` reads both and verifies their signatures."""
    version = promote_run(world.system, trained(world).name, "churn", "", asked(world))
    mine = attest(world.system, version, "approval", True, "reviewed", ANN)
    theirs = scanned(world.system, version, result="FAILED", says="2 findings")
    assert sorted(attestations(world.system, version), key=lambda each: each.kind) == [mine, theirs]
    assert (mine.by, mine.by_id, mine.of_app, mine.predicate) == ("ann", "id-ann", True, PREDICATE)
    assert (theirs.signer, theirs.of_app, theirs.passed, theirs.problem) == (SCAN_KEY, False, False, "")
    links = {link.link: (link.state, link.says) for link in chain(world.system, version)}
    assert links["approval"][0] == "good"
    assert "reviewed" in links["approval"][1]
    assert links["scan"] == ("bad", f"failed, says key {SCAN_KEY[:16]} at an unknown time: 2 findings.")


def test_an_alias_moves_only_with_what_its_route_demands(world: World) -> None:
    """A missing attestation, a failed one, one by the run's owner, and one with an unknown key do not count."""
    run = trained(world)
    system = with_rule(world, require=("approval", "scan"), signers={"scan": (SCAN_KEY,)})
    world.runs.update(world.runs.get(run.name), changed(run, owner_id=ANN.id))
    version = promote_run(system, run.name, "churn", "staging", asked(world))

    def refused() -> str:
        with pytest.raises(Conflict) as raised:
            point(system, "churn", 1, "production", asked(world))
        return str(raised.value)

    assert "'approval'" in refused()
    assert "'scan'" in refused()
    (demanded,) = [link for link in chain(system, version) if link.link == "required"]
    assert (demanded.state, "demands approval, scan" in demanded.says) == ("unknown", True)
    assert "the attestation 'scan', and the version has none that counts" in demanded.says
    attest(system, version, "approval", True, "my own work", ANN)
    assert "'approval', and the version has none that counts" in refused()
    world.clock.advance(1)
    attest(system, version, "approval", True, "", BOB)
    assert "'approval'" not in refused()
    scanned(system, version, FakeSigner())
    attest(system, version, "scan", True, "", BOB)
    world.clock.advance(1)
    scanned(system, version, result="FAILED", says="1 finding")
    assert "says FAILED: 1 finding" in refused()
    world.clock.advance(1)
    scanned(system, version)
    assert point(system, "churn", 1, "production", asked(world)).aliases["production"].number == 1
    demanded = chain(system, version)[-2]
    assert (demanded.link, demanded.state) == ("required", "good")
    assert undo(system, "churn", "production", asked(world)).aliases.keys() == {"staging"}


def test_an_attestation_of_a_withdrawn_key_counts_no_more(world: World) -> None:
    """An attestation signed with a withdrawn key does not count, like a version signed with that key."""
    system = with_rule(world, require=("approval",))
    version = promote_run(system, trained(world).name, "churn", "", asked(world))
    attest(system, version, "approval", True, "", BOB)
    withdraw_key(world.models, world.signer, version.signer, asked(world))
    (read,) = attestations(system, version)
    assert "was withdrawn" in read.problem
    with pytest.raises(Conflict, match="none that counts"):
        point(system, "churn", 1, "production", asked(world))


@pytest.mark.parametrize("fault", ["other version", "other key", "changed", "no bundle", "no key", "large"])
def test_a_bundle_that_does_not_speak_for_its_key_is_refused(world: World, fault: str) -> None:
    """The refusal has the reason; nothing is stored."""
    version = promote_run(world.system, trained(world).name, "churn", "", asked(world))
    sent, key = bundle(version), SCANNER.public_key().decode()
    if fault == "other version":
        sent = bundle(replace(version, digest="0" * 64))
    if fault == "other key":
        key = FakeSigner().public_key().decode()
    if fault == "changed":
        sent["dsseEnvelope"]["payload"] = base64.b64encode(b'{"subject": []}').decode()
    if fault == "no bundle":
        sent = {"dsseEnvelope": []}
    if fault == "no key":
        key = "-----BEGIN PUBLIC KEY-----"
    if fault == "large":
        sent["more"] = "x" * (1 << 20)
    with pytest.raises(Impossible):
        add(world.system, version, "scan", sent, key)
    assert attestations(world.system, version) == []


def test_an_attestation_that_was_altered_in_the_storage_is_named(world: World) -> None:
    """Write access to the container is not enough to forge the app's statement."""
    version = promote_run(world.system, trained(world).name, "churn", "", asked(world))
    made = attest(world.system, version, "approval", False, "not yet", BOB)
    file = f"{version.proof}/{made.file}"
    kept = json.loads(world.blobs.read("output", file, 1 << 20))
    envelope = kept["bundle"]["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"]).replace(b"FAILED", b"PASSED")
    envelope["payload"] = base64.b64encode(payload).decode()
    world.blobs.put("output", file, json.dumps(kept).encode())
    (read,) = attestations(world.system, version)
    assert (read.passed, read.problem) == (False, "The key did not sign this content.")


@pytest.mark.parametrize(
    "section",
    [
        {"name": "churn", "require": "approval"},
        {"name": "churn", "require": ["Approval"]},
        {"name": "churn", "signers": {"scan": ["a" * 64]}},
        {"name": "churn", "require": ["scan"], "signers": {"scan": ["short"]}},
        {"name": "churn", "require": ["scan"], "signers": ["a" * 64]},
    ],
)
def test_a_wrong_rule_is_refused(section: dict[str, Any]) -> None:
    """The error shows the right form."""
    with pytest.raises(BadSetting, match="model"):
        read_model(section, "routes.churn", {})


def test_a_rule_is_read() -> None:
    """The rule is written as in the routes file."""
    section = {"name": "churn", "require": ["approval", "scan"], "signers": {"scan": [SCAN_KEY]}}
    rule = read_model(section, "routes.churn", {})
    assert rule
    assert (rule.require, rule.signers) == (("approval", "scan"), {"scan": (SCAN_KEY,)})
