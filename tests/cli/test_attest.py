"""attest: the request for a person and for a program, and the attestations that a fetch brings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.setup.test_signing_keys import OLD, keys_are, row, version_is

ROW = {
    "file": "attestations/approval-0123abcd.json", "kind": "approval", "passed": True, "says": "reviewed", "by": "ann",
    "by_id": "", "at": "2026-01-02T03:04:05Z", "signer": "a" * 64, "predicate": "p", "of_app": True, "problem": "",
}  # fmt: skip
WHERE = "/api/models/churn/versions/4"


def test_a_fetch_brings_the_attestations_beside_the_folder(
    server: Any, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside the folder the attestations would be unsigned files; verify still succeeds."""
    keys_are(server, row(OLD))
    version_is(server, OLD)
    server.says(f"{WHERE}/attestations", [ROW])
    server.says(f"{WHERE}/files/{ROW['file']}", b"", 302, location=f"{server.root}/output/e/r/proof/t/{ROW['file']}")
    server.says(f"/output/e/r/proof/t/{ROW['file']}", b"{}")
    assert run("fetch", "churn@4", "--to", str(tmp_path / "m"), "--url", server.url) == 0
    assert "attestations (approval) in" in capsys.readouterr().out
    assert (tmp_path / "m.attestations" / "approval-0123abcd.json").read_bytes() == b"{}"
    assert run("verify", "churn@4", str(tmp_path / "m"), "--url", server.url) == 0


@pytest.mark.parametrize("name", ["attestations/../../../x.json", "models/w", "attestations/a/b-1.json"])
def test_a_name_that_is_none_of_an_attestation_is_refused(
    server: Any, run: Callable[..., int], tmp_path: Path, name: str
) -> None:
    """An invalid name is refused, so that no deployment writes elsewhere."""
    keys_are(server, row(OLD))
    version_is(server, OLD)
    server.says(f"{WHERE}/attestations", [{**ROW, "file": name}])
    assert run("fetch", "churn@4", "--to", str(tmp_path / "m"), "--url", server.url) == 1
    assert not (tmp_path / "m.attestations").exists()


def test_the_list_says_who_and_whether_it_counts(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A name without sign-in is marked; an invalid signature has its reason."""
    server.says(f"{WHERE}/attestations", [ROW, {**ROW, "problem": "The key did not sign this content."}])
    assert run("attest", "churn/4", "--url", server.url) == 0
    told = capsys.readouterr().out
    assert "ann (not signed in)" in told
    assert "does not count" in told
    assert "The key did not sign this content." in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--bundle", "b.json"), "give --bundle and --key together"),
        (("--bundle", "b.json", "--key", "k.pem"), "b.json can't be read"),
        (("--bundle", "text", "--key", "text"), "is not JSON"),
    ],
)
def test_a_wrong_bundle_is_refused_before_anything_is_sent(
    server: Any,
    run: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    """The error names the file."""
    (tmp_path / "text").write_text("text")
    assert run("attest", "churn/4", "scan", *words, "--url", server.url) != 0
    assert says in capsys.readouterr().err.replace("\n", " ")
    assert server.asked == []


def test_what_is_sent_names_the_result(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is printed."""
    server.says(f"{WHERE}/attestations", {**ROW, "passed": False}, 201)
    assert run("attest", "churn/4", "approval", "--failed", "--why", "no", "--json", "--url", server.url) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is False
