"""When `drop` reports that content was trained before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.commands.drop import _Upload

OTHER, OWN = {"number": 1, "run": "r1"}, {"number": 2, "run": "r2"}


@pytest.mark.parametrize(
    ("before", "drop", "rows", "old"),
    [
        ({}, {"run": "r1", "generation": 1, "code": "unchanged"}, [OTHER], False),
        ({"generation": 1}, {"run": "r2", "generation": 2, "code": "unchanged"}, [OTHER, OWN], False),
        ({"generation": 1}, {"run": "r1", "generation": 1, "code": "unchanged"}, [OTHER], True),
        ({"generation": 2}, {"run": "r1", "generation": 3}, [OTHER, OWN, {"number": 3, "run": "r1"}], True),
    ],
)
def test_a_run_of_this_upload_is_no_earlier_one(
    before: dict[str, Any], drop: dict[str, Any], rows: list[dict[str, Any]], old: bool
) -> None:
    """A late event of an upload makes the verdict on its own generation `unchanged`; only a generation from before
    the upload counts as trained before."""
    session = SimpleNamespace(api=SimpleNamespace(get=lambda *_: rows))
    upload = _Upload(cast(Any, session), None, Path("folder"), "mnist", "a", None, True)
    upload.before = before
    assert upload._is_old(drop) is old
