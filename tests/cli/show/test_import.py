"""The output of `import` for a Batch AI document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_a_cluster_is_printed_and_secrets_of_addresses_are_not(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The resulting compute is printed, not an empty document; a signature in it is replaced, in --json too."""
    document = tmp_path / "cluster.json"
    document.write_text(json.dumps({"properties": {"vmSize": "STANDARD_NC6"}}))
    compute = {"type": "amlcompute", "size": "S", "note": "https://a.blob/x?sig=SECRET&v=1"}
    server.says("/api/imports", {"kind": "cluster", "compute": compute, "report": []})
    for form in ((), ("--json",)):
        assert run("import", str(document), "--url", server.url, *form) == 0
        out = capsys.readouterr().out
        assert "amlcompute" in out
        assert "SECRET" not in out
        assert "sig=...&v=1" in out
