"""The list of failing tests is consistent."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version

import pytest
import yaml

from emulator_tests.microsoft.judged import COUNTED, LIST, REASONS, listed
from emulator_tests.microsoft.sdists import pinned
from emulator_tests.microsoft.table import README, written


@pytest.mark.parametrize("package", sorted(pinned()))
def test_the_tests_are_those_of_the_package_that_is_installed(package: str) -> None:
    """The pinned tests have the version of the installed package, because older tests say nothing about a newer
    package."""
    assert version(package) == pinned()[package]


def test_each_test_that_does_not_pass_has_one_of_the_reasons() -> None:
    """Each failing test is listed once, with a known reason."""
    found = yaml.safe_load(LIST.read_text("utf-8"))
    assert sorted(found) == sorted(pinned())
    for reasons in found.values():
        assert set(reasons) <= set(REASONS)
        tests = [test for groups in reasons.values() for names in groups.values() for test in names]
        assert len(tests) == len(set(tests))


@pytest.mark.parametrize("package", sorted(pinned()))
def test_each_module_is_counted(package: str) -> None:
    """Each listed test belongs to a counted module, and no module has more listed tests than tests."""
    counts: dict[str, int] = yaml.safe_load(COUNTED.read_text("utf-8"))[package]
    fail = Counter(one.test.partition("::")[0] for one in listed(package))
    assert {module: count for module, count in fail.items() if count > counts.get(module, 0)} == {}


def test_the_readme_says_what_the_list_says() -> None:
    """The README's table matches the list. `python -m emulator_tests.microsoft.table` updates it."""
    text = README.read_text("utf-8")
    assert written(text) == text
