"""`python -m emulator_tests.azurite_suite.table`: write into the README how many of Azurite's own tests pass."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from emulator_tests.azurite_suite.listed import LIST, REASONS, Listed, listed
from emulator_tests.places import PROJECT

README = PROJECT / "README.md"
BEGIN, END = "<!-- made by emulator_tests/azurite_suite/table.py -->", "<!-- end -->"
AZURITE = "3.37.0 (blobs) or 3.35.0"
WORDS = {
    "azure": "Azurite differs from Azure, which the emulator follows",
    "suite": "These tests fail against Azurite, too",
    "missing": "The emulator has none of these",
}


def table(files: list[Listed]) -> str:
    """Return a row for each file and each service, and why tests of each service do not pass."""
    lines = [f"| Azurite's tests of | pass | pass against Azurite {AZURITE} |", "|---|---|---|"]
    for service in dict.fromkeys(one.file.partition("/")[0] for one in files):
        own = [one for one in files if one.file.startswith(f"{service}/")]
        lines += [f"| {_name(one)} | {one.passed} of {one.tests} | {one.azurite} |" for one in own]
        passed, counted = sum(one.passed for one in own), sum(one.tests for one in own) - _of("azure", own).total()
        name = f"**{service}s**, without what Azurite does otherwise than Azure"
        lines.append(
            f"| {name} | {passed} of {counted}, {100 * passed // counted}% | {sum(one.azurite for one in own)} |"
        )
    for reason in REASONS:
        if whys := _of(reason, files):
            lines += ["", f"{WORDS[reason]}:", "", *(f"- {why} ({count})" for why, count in whys.items())]
    return "\n".join(lines)


def _of(reason: str, files: Iterable[Listed]) -> Counter[str]:
    """Return the sentences about a reason, each with the number of its tests."""
    return Counter(why for one in files for why, titles in one.why[reason].items() for _ in titles)


def _name(one: Listed) -> str:
    return one.file.removesuffix(".test.ts")


def written(text: str) -> str:
    """Return the README with the current table."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table(listed())}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(written(README.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{README} has what {LIST.name} says\n")
