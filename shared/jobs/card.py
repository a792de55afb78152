"""People's statements about the models of a route: author, task, intended use, limits, licences.

These facts can't be computed. A trainer states the facts about all its models (card.json in its folder), and a route
states the rest (`card:`). The model card names each fact that is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shared.kernel.errors import BadSetting
from shared.kernel.suggest import did_you_mean

FILE = "card.json"
MOST = 2000  # characters of a statement
FACTS = {
    "supplier": "the organisation that supplies the model",
    "author": "the person or team that made the model",
    "task": "what the model does, such as image classification",
    "intended_use": "for what, and by whom, the model is meant to be used",
    "limits": "what the model must not be used for, and where it fails",
    "licence": "the licence of the model, as an SPDX expression where possible",
    "data_origin": "where the training data come from, and how they were collected",
    "data_licence": "the licence or the terms of the training data",
}
Card = dict[str, str]


def read_card(trainer: Path | None, section: Any, where: str) -> Card:
    """Return the statements of a trainer's folder, overridden by those of a route. Raises BadSetting for another
    key.
    """
    file = trainer / FILE if trainer else None
    stated = _checked(_json(file), str(file)) if file and file.is_file() else {}
    return stated | (_checked(section, f"{where}: card") if section is not None else {})


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as exc:
        raise BadSetting(f"{file} is not JSON: {exc}.") from exc


def _checked(section: Any, where: str) -> Card:
    if not isinstance(section, dict):
        raise BadSetting(f"{where} is {section!r}; write a mapping with some of {', '.join(FACTS)}.")
    for key, value in section.items():
        if key not in FACTS:
            raise BadSetting(f"{where} has {key!r}.{did_you_mean(str(key), FACTS)} Choose from {', '.join(FACTS)}.")
        if not isinstance(value, str) or not 0 < len(value.strip()) <= MOST:
            raise BadSetting(f"{where}: {key} is {str(value)[:80]!r}; write a text of 1 to {MOST:,} characters.")
    return {key: " ".join(str(value).split()) for key, value in section.items()}
