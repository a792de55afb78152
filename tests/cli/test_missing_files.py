"""Missing files on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    "words",
    [
        "submit nowhere.yml",
        "submit . --command true --env nowhere.txt",
        "submit mnist --data ./nowhere",
        "import nowhere.json",
        "verify m/1 . --key nowhere.pem",
        "clusters plan --file nowhere.yaml",
    ],
)
def test_a_missing_file_exits_3(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """Whatever the file is for, the message names it and the status means `not found`."""
    assert run(*words.split(), "--url", server.url) == 3
    assert "nowhere" in capsys.readouterr().err
