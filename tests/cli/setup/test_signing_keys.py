"""The `keys` command: the deployment's keys that this computer trusts, and what a fetch refuses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.models.signature import key_digest, signed
from tests.fakes.ports import FakeSigner

OLD, NEW = FakeSigner(), FakeSigner()
CONTENT = b"weights"


def row(signer: FakeSigner, **more: str) -> dict[str, str]:
    pem = signer.public_key()
    return {"sha256": key_digest(pem), "pem": pem.decode(), "since": "2026-01-02T03:04:05Z", "until": ""} | {
        "withdrawn_at": "",
        "why": "",
        **more,
    }


def keys_are(server: Any, *rows: dict[str, str]) -> None:
    server.says("/api/model-key", {"pem": rows[0]["pem"], "sha256": rows[0]["sha256"], "keys": list(rows)})


def version_is(server: Any, signer: FakeSigner) -> None:
    """Answer churn/4 with one file, signed by this key."""
    where = "/api/models/churn/versions"
    server.says("/api/models/churn", {"model": "churn"})
    server.says(f"{where}/4", {"model": "churn", "number": 4, "run": "r", "bytes": len(CONTENT)})
    server.says(f"{where}/4/attestations", [])
    for name, content in {
        "models/w": CONTENT,
        "model.sig": signed("churn/4", {"models/w": hashlib.sha256(CONTENT).hexdigest()}, signer),
    }.items():
        server.says(f"{where}/4/files/{name}", b"", 302, location=f"{server.root}/output/e/r/{name}")
        server.says(f"/output/e/r/{name}", content, etag='"1"')


def test_the_trusted_keys_are_saved_for_an_auditor(server: Any, run: Callable[..., int], tmp_path: Path) -> None:
    """keys --save writes only the trusted keys; `verify --key` and the auditor's script read that file."""
    keys_are(server, row(OLD))
    file = tmp_path / "keys.pem"
    assert run("keys", "--url", server.url) == 0
    keys_are(server, row(NEW), row(OLD, until="2026-02-03T04:05:06Z"))
    assert run("keys", "--save", str(file), "--url", server.url) == 0
    assert file.read_bytes() == OLD.public_key()


def test_a_new_key_is_trusted_only_after_it_was_said_so(
    server: Any, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first keys are pinned with a warning; a fetch signed by a later key is refused until that key is trusted."""
    keys_are(server, row(OLD))
    version_is(server, OLD)
    url = ("--url", server.url)
    assert run("fetch", "churn@4", "--to", str(tmp_path / "a"), *url) == 0
    assert f"trusts the key {row(OLD)['sha256']}" in capsys.readouterr().err
    keys_are(server, row(NEW), row(OLD, until="2026-02-03T04:05:06Z"))
    version_is(server, NEW)
    assert run("fetch", "churn@4", "--to", str(tmp_path / "b"), *url) == 1
    told = capsys.readouterr().err
    assert "Nothing was downloaded: model.sig of churn/4 was signed by someone else" in told
    assert "`keys` shows" in told
    assert not (tmp_path / "b").exists()
    assert run("keys", "--json", *url) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["sha256"], each["trusted"]) for each in listed] == [
        (row(NEW)["sha256"], False),
        (row(OLD)["sha256"], True),
    ]
    assert run("keys", "--trust", row(NEW)["sha256"], *url) == 0
    assert run("fetch", "churn@4", "--to", str(tmp_path / "b"), *url) == 0
    assert run("verify", "churn@4", str(tmp_path / "a"), *url) == 0, "the earlier key's versions stay valid"
    assert run("keys", "--forget", row(OLD)["sha256"], *url) == 0
    assert run("verify", "churn@4", str(tmp_path / "a"), *url) == 1


def test_a_withdrawn_key_is_noticed_where_it_was_trusted(
    server: Any, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """verify asks the deployment; without an answer, verify prints that it did not check."""
    keys_are(server, row(OLD))
    version_is(server, OLD)
    url = ("--url", server.url)
    assert run("fetch", "churn@4", "--to", str(tmp_path / "a"), *url) == 0
    keys_are(server, row(NEW), row(OLD, withdrawn_at="2026-03-04T05:06:07Z", why="laptop stolen"))
    assert run("verify", "churn@4", str(tmp_path / "a"), *url) == 1
    assert "withdrawn at 2026-03-04T05:06:07Z: laptop stolen" in capsys.readouterr().out
    server.answers.clear()
    assert run("verify", "churn@4", str(tmp_path / "a"), *url) == 0
    assert "whether the key was withdrawn was not checked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--trust", "0" * 64), "has no key 0000"),
        (("--forget", "0" * 64), "does not trust key 0000"),
        (("--trust", "a", "--forget", "b"), "give one of --trust, --forget and --withdraw"),
    ],
)
def test_a_wrong_key_is_named(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    """The error lists the known keys."""
    keys_are(server, row(OLD))
    assert run("keys", *words, "--url", server.url) != 0
    assert says in capsys.readouterr().err
