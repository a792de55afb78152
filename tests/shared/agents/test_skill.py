"""The skill file: its form, and each of its calls, made as written on a fake workspace."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.world import World
from tests.shared.agents.desk import use

FILE = Path(__file__).resolve().parents[3] / "agents" / "trainyard" / "SKILL.md"
TEXT = FILE.read_text("utf-8")
CALLS = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)]
IDS = [f"{number} {each['name']}" for number, each in enumerate(CALLS)]
NO_MODEL = re.compile(r"not_archived|There is no model|There is no version|has no saved model|not completed|not_found")


def test_the_skill_has_the_form_of_skills() -> None:
    """The front matter names the skill after its folder, and says on one line when to use it."""
    found = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", TEXT)
    assert found is not None
    assert found[1] == FILE.parent.name
    assert 50 < len(found[2]) <= 1024
    assert {each["name"] for each in CALLS} == {
        *("find", "inspect", "compare", "logs", "plan", "submit", "cancel", "wait"),
    }


@pytest.mark.parametrize("call", CALLS, ids=IDS)
def test_each_call_works(world: World, call: dict[str, Any]) -> None:
    """Each call is answered once its made-up names are replaced with existing ones."""
    world.complete("1.bin")
    run = world.only_run().name
    other = use("submit", plan=use("plan", train={"template": "mnist", "data": "drops/mnist/a"})["plan"])["run"]
    names = {"run-0123456789abcdef": run, "run-fedcba9876543210": other}
    names["plan-0123456789abcdef"] = use("plan", train={"template": "mnist", "data": "drops/mnist/a"})["plan"]
    text = json.dumps(call["arguments"])
    for made_up, there in names.items():
        text = text.replace(made_up, there)
    answer = use(call["name"], **json.loads(text))
    if call["name"] == "inspect":  # it inspects a version, which needs a whole training: tests/e2e/test_agents.py
        assert NO_MODEL.search(answer["error"])
    else:
        assert "error" not in answer, answer
