"""Successive signing keys: old versions stay valid, a withdrawn key no longer counts, and a version can be
re-signed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cli.files.signed_model import verify
from shared.kernel.errors import Conflict, NotFound
from shared.models import api
from shared.models.model import ChangeKind
from shared.models.promote import promote_run, sign_again
from shared.models.signature import key_digest
from shared.models.signing_keys import known_keys, withdraw_key
from shared.models.why import chain
from shared.system import System
from tests.fakes.ports import FakeSigner
from tests.fakes.world import World, trainers_folder
from tests.shared.models.test_promoting import ANN, asked, fetched, trained


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def rotated(world: World) -> System:
    """Return the system after its administrator configured another key."""
    return replace(world.system, signer=FakeSigner())


def signature_link(system: System, name: str, number: int) -> tuple[str, str]:
    version = system.models.version(name, number)
    assert version
    return next((link.state, link.says) for link in chain(system, version) if link.link == "signature")


def test_a_version_of_an_earlier_key_stays_valid(world: World) -> None:
    """The list has both keys, each with its time; `why` says until when the earlier key signed."""
    first, second = (promote_run(world.system, trained(world, "a").name, "churn", "", asked(world)) for _ in range(2))
    assert first == second
    system = rotated(world)
    world.clock.advance(60)
    assert signature_link(system, "churn", 1)[0] == "good"
    newer = promote_run(system, trained(world, "b").name, "churn", "", asked(world))
    old, new = (api.get_model_key(system)["keys"])[::-1]
    assert (old["sha256"], new["sha256"]) == (first.signer, newer.signer)
    assert (old["until"], new["until"]) == (new["since"], None)
    state, says = signature_link(system, "churn", 1)
    assert (state, "which signed until" in says) == ("good", True)
    assert api.get_model_key(world.system)["sha256"] == first.signer, (
        "the first key signs again where it is named again"
    )


def test_a_key_that_signed_before_keys_were_recorded_counts_from_its_first_version(world: World) -> None:
    """An account of an earlier release has no record of its key."""
    version = promote_run(world.system, trained(world).name, "churn", "", asked(world))
    world.models.keys.clear()
    world.clock.advance(3600)
    assert known_keys(world.models, world.signer, world.clock()).keys[version.signer].since == version.at


def test_no_signature_of_a_withdrawn_key_counts(world: World, tmp_path: Path) -> None:
    """`why` fails and the key promotes nothing; a version that is signed again counts again, byte for byte."""
    version = promote_run(world.system, trained(world).name, "churn", "", asked(world))
    gone = withdraw_key(world.models, world.signer, version.signer, asked(world, "laptop stolen"))
    assert gone == withdraw_key(world.models, world.signer, version.signer, asked(world, "a repeat"))
    state, says = signature_link(world.system, "churn", 1)
    assert (state, "withdrawn" in says, "laptop stolen" in says) == ("bad", True, True)
    other = trained(world, "b").name
    with pytest.raises(Conflict, match="TRAINYARD_SIGNING_KEY"):
        promote_run(world.system, other, "churn", "", asked(world))
    system = rotated(world)
    again = sign_again(system, "churn", 1, asked(world, "stolen key"))
    assert (again.digest, again.signer) == (version.digest, key_digest(system.signer.public_key()))
    assert signature_link(system, "churn", 1)[0] == "good"
    newest = world.models.history("churn")[0]
    assert (newest.what, newest.by, newest.why) == (ChangeKind.SIGNED, ANN.name, "stolen key")
    keys = {again.signer: system.signer.public_key()}
    assert verify(fetched(world, again, tmp_path / "churn"), keys).problems == []


@pytest.mark.parametrize("file", ["proof", "model"])
def test_what_was_altered_is_not_signed_again(world: World, file: str) -> None:
    """A thief of the old key can't get altered weights signed with the new key."""
    run = trained(world)
    version = promote_run(world.system, run.name, "churn", "", asked(world))
    where = f"{version.proof}/bom.json" if file == "proof" else f"digits/{run.name}/models/model.safetensors"
    world.blobs.put("output", where, b"WEIGHTS" if file == "model" else b"{}")
    with pytest.raises(Conflict):
        sign_again(rotated(world), "churn", 1, asked(world))
    assert world.models.version("churn", 1) == version


def test_only_keys_of_the_deployment_are_withdrawn(world: World) -> None:
    """Any other key is not found."""
    with pytest.raises(NotFound, match="is not a key of this deployment"):
        withdraw_key(world.models, world.signer, "0" * 64, asked(world))
