"""Statements about models: read from the trainer's folder and the route, and refused with the choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.jobs.card import FACTS, FILE, read_card
from shared.kernel.errors import BadSetting
from shared.kernel.index_settings import ROOT


def test_a_route_states_over_its_trainer(tmp_path: Path) -> None:
    """The route's statement overrides the trainer's. Spaces and line ends become one space."""
    (tmp_path / FILE).write_text(json.dumps({"task": "Digits.", "limits": "Ten classes."}))
    assert read_card(tmp_path, {"task": "Postal\n codes.", "author": "ada"}, "r") == {
        "task": "Postal codes.",
        "limits": "Ten classes.",
        "author": "ada",
    }
    assert read_card(None, None, "r") == {}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("text", "write a mapping with some of supplier"),
        ({"autor": "ada"}, "Did you mean 'author'"),
        ({"author": ""}, "1 to 2,000 characters"),
        ({"author": ["ada"]}, "1 to 2,000 characters"),
        ({"author": "a" * 2001}, "1 to 2,000 characters"),
    ],
)
def test_another_statement_is_refused(section: Any, words: str) -> None:
    """The error has the key, the value and the choices."""
    with pytest.raises(BadSetting, match="card") as raised:
        read_card(None, section, "routes.yaml: route 'churn'")
    assert words in str(raised.value)


def test_each_trainer_states_what_its_models_do() -> None:
    """Each trainer also states in which cases its models fail."""
    for job in sorted((ROOT / "trainers").glob("*/job.yaml")):
        stated = read_card(job.parent, None, "")
        assert {"task", "intended_use", "limits"} <= stated.keys() <= FACTS.keys(), job
