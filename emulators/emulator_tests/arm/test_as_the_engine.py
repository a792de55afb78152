"""The values of Microsoft's own engine for 98 expressions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator_tests.places import SPECS
from emulators.arm.deploy import deploy
from emulators.arm.functions import PURE
from emulators.arm.syntax import BicepError

BICEP = SPECS / "bicep"
ABSENT = "Microsoft's specifications are not here; they hold what its engine works out"
SUBSCRIPTION, TENANT = "00000000-0000-0000-0000-000000000000", "99999999-9999-9999-9999-999999999999"


def spec(name: str) -> Any:
    file = BICEP / name
    if not file.exists():
        pytest.skip(ABSENT)
    return json.loads(file.read_text("utf-8"))


def test_every_expression_has_the_engines_value(tmp_path: Path) -> None:
    """Each of the 98 expressions has the value and the type from the real engine."""
    wrong = []
    for case in spec("functions.json"):
        (tmp_path / "main.bicep").write_text(f"var value = {case['bicep']}\noutput value object = value\n")
        try:
            value = deploy(tmp_path / "main.bicep", {}, subscription=SUBSCRIPTION, tenant=TENANT).outputs["value"]
        except BicepError as exc:
            value = f"refused: {exc}"
        if json.dumps(value, sort_keys=True) != json.dumps(case["value"], sort_keys=True):
            wrong.append((case["bicep"], value, case["value"]))
    assert wrong == []


@pytest.mark.parametrize("name", ["newGuid", "reference", "listKeys", "utcNow", "pickZones", "loadTextContent"])
def test_what_is_not_there_says_so_by_name(name: str, tmp_path: Path) -> None:
    """An unsupported function is refused with its name, file and line. No value is guessed."""
    assert name not in PURE
    (tmp_path / "main.bicep").write_text(f"var value = {name}('a')\noutput value string = value\n")
    with pytest.raises(BicepError, match=rf"main\.bicep:1: the function {name} is not taken here"):
        deploy(tmp_path / "main.bicep", {})


def test_values_that_a_function_cant_take_are_refused(tmp_path: Path) -> None:
    """A function refuses invalid values with a message that has the values, the file and the line."""
    (tmp_path / "main.bicep").write_text("var a = 1\nvar value = substring('abc', 2, 5)\noutput value string = value\n")
    with pytest.raises(BicepError, match=r"main\.bicep:2: the function substring can't take these values"):
        deploy(tmp_path / "main.bicep", {})
