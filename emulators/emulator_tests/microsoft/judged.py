"""Run the tests of one of Microsoft's packages against our services, and compare with not_passed.yaml.

not_passed.yaml lists each failing test, synchronous or asynchronous, with one of four reasons. `readme`: our README
names the missing feature. `azure`: the test needs Azure itself. `shim`: the stand-in for Microsoft's tools can't
provide what the test needs. `chance`: the client's own timer decides the outcome, so the test may pass or fail.
counted.yaml has the number of tests in each module.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator_tests.microsoft.sdists import HERE, NotThere, tests_of
from emulator_tests.places import PROJECT, SOURCE

LIST = HERE / "not_passed.yaml"
COUNTED = HERE / "counted.yaml"
CHANCE = "chance"
REASONS = ("readme", "azure", "shim", CHANCE)
NOT_RUN = ("test_helpers.py", "test_helpers_async.py")  # no tests in them
GIGABYTES = ("test_largest_block_blob.py", "test_largest_block_blob_async.py")
WITH_EXTENSIONS = tuple(
    f"test_{name}.py" for what in ("content_validation", "streams") for name in (what, f"{what}_async")
)
PASSED = "passed"
NOT_THERE = "MICROSOFT'S TESTS CAN'T BE HAD"


@dataclass(frozen=True)
class Listed:
    """A test that is listed as failing."""

    test: str
    reason: str
    why: str


def listed(package: str) -> list[Listed]:
    """Return the listed tests of a package."""
    reasons: dict[str, dict[str, list[str]]] = yaml.safe_load(LIST.read_text("utf-8"))[package]
    return [
        Listed(test, reason, why)
        for reason, groups in reasons.items()
        for why, tests in groups.items()
        for test in tests
    ]


def counted(package: str) -> dict[str, int]:
    """Return the number of tests in each module of the package, without those of another service (Cosmos DB)."""
    found: dict[str, int] = yaml.safe_load(COUNTED.read_text("utf-8"))[package]
    return found


def modules(package: str) -> list[str]:
    """Return the modules to run, without tests of other services, tests of gigabytes, and tests that need
    azure-storage-extensions if it is missing."""
    names = sorted(path.name for path in tests_of(package).glob("test_*.py") if "cosmos" not in path.name)
    left_out = {*NOT_RUN, *GIGABYTES, *(() if has_extensions() else WITH_EXTENSIONS)}
    return [name for name in names if name not in left_out]


def has_extensions() -> bool:
    """Return whether azure-storage-extensions, which has CRC-64 in C, is installed."""
    try:
        return importlib.util.find_spec("azure.storage.extensions") is not None
    except ModuleNotFoundError:
        return False


def run(package: str, files: list[str], folder: Path) -> dict[str, str]:
    """Return the outcome of each test: `passed`, or the failure. `folder` is for the services' state and the
    report."""
    report = folder / "report.xml"
    plugins = ["-p", "emulator_tests.microsoft.live", "-p", "no:cacheprovider"]
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        *plugins,
        "-q",
        "--tb=line",
        "--assert=plain",
    ]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "EMULATED_STATE": str(folder),
        "PYTHONPATH": os.pathsep.join([str(HERE / "shim"), str(PROJECT), str(SOURCE)]),
    }
    done = subprocess.run(
        [*argv, f"--junitxml={report}", *files], cwd=tests_of(package), env=environment, capture_output=True, text=True
    )
    assert report.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    return {_name(case): _outcome(case) for case in ET.parse(report).iter("testcase")}


def _name(case: ET.Element) -> str:
    module, _, name = case.get("classname", "").partition(".")
    return "::".join(filter(None, [f"{module}.py", name.replace(".", "::"), case.get("name", "")]))


def _outcome(case: ET.Element) -> str:
    problem: Any = next(
        (found for tag in ("failure", "error", "skipped") if (found := case.find(tag)) is not None), None
    )
    return PASSED if problem is None else f"{problem.tag}: {problem.get('message', '')[:300]}"


def differences(package: str, outcomes: dict[str, str]) -> list[str]:
    """Return the differences between the outcomes and the list. Only the modules that ran are compared."""
    ran = {name.partition("::")[0] for name in outcomes}
    in_list = [one for one in listed(package) if one.test.partition("::")[0] in ran]
    expected = {one.test for one in in_list}
    by_chance = {one.test for one in in_list if one.reason == CHANCE}
    counts, ran_of = counted(package), Counter(name.partition("::")[0] for name in outcomes)
    fails = {name: outcome for name, outcome in outcomes.items() if outcome != PASSED}
    return [
        *(f"does not pass, and is not listed: {name}: {fails[name]}" for name in sorted(fails.keys() - expected)),
        *(
            f"passes, so take it off the list: {name}"
            for name in sorted((expected - by_chance) & (outcomes.keys() - fails.keys()))
        ),
        *(f"is listed, but there is no such test: {name}" for name in sorted(expected - outcomes.keys())),
        *(
            f"has {ran_of[name]} tests, not {counts.get(name)}: {name}"
            for name in ran
            if ran_of[name] != counts.get(name)
        ),
    ]


def judge(package: str, folder: Path, apart: bool = False) -> None:
    """Run a package's modules, and fail on any difference from the list. Skip if the package can't be downloaded.

    With `apart` each module has its own account, because some tests count an account's objects. A module that differs
    from the list runs again, because some of Microsoft's tests measure seconds. Only a test that differs both times
    fails.
    """
    try:
        chosen = modules(package)
    except NotThere as error:
        pytest.skip(f"{NOT_THERE} of {package}: {error}")
    found: list[str] = []
    for number, files in enumerate([[name] for name in chosen] if apart else [chosen]):
        found += _twice(package, files, folder / str(number))
    assert not found, "\n".join(found)


def _twice(package: str, files: list[str], folder: Path) -> list[str]:
    """Return the differences that remain after a second run of the differing modules."""
    outcomes = _in_new_folder(package, files, folder)
    again = [file for file in files if differences(package, _of_module(outcomes, file))]
    if not again:
        return []
    second = _in_new_folder(package, again, folder.with_name(f"{folder.name}-again"))
    fails = {one.test for one in listed(package)}
    as_listed = {name: outcome for name, outcome in second.items() if (outcome == PASSED) is (name not in fails)}
    return differences(package, outcomes | as_listed)


def _of_module(outcomes: dict[str, str], module: str) -> dict[str, str]:
    return {name: outcome for name, outcome in outcomes.items() if name.partition("::")[0] == module}


def _in_new_folder(package: str, files: list[str], folder: Path) -> dict[str, str]:
    folder.mkdir()
    return run(package, files, folder)
