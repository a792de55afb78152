"""`python -m emulator_tests.microsoft.table`: write into the README how many of Microsoft's tests pass, and why the
others fail."""

from __future__ import annotations

import sys
from collections import Counter

from emulator_tests.microsoft.judged import LIST, REASONS, counted, listed
from emulator_tests.microsoft.sdists import pinned
from emulator_tests.places import PROJECT

README = PROJECT / "README.md"
BEGIN, END = "<!-- made by emulator_tests/microsoft/table.py -->", "<!-- end -->"
WORDS = {
    "readme": "not there",
    "azure": "needs Azure itself",
    "shim": "can't be run here",
    "chance": "pass or fail by chance",
}


def table() -> str:
    """Return a row for each package: how many synchronous and asynchronous tests pass, and why the others fail."""
    head = ["Microsoft's tests of", "pass, sync", "pass, async", *(WORDS[reason] for reason in REASONS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    passed = every = 0
    for package in sorted(pinned()):
        cells = [package]
        for twins in (False, True):
            tests, fail = _of(package, twins)
            cells.append(f"{tests - fail} of {tests}")
            passed, every = passed + tests - fail, every + tests
        for reason in REASONS:
            whys = Counter(one.why for one in listed(package) if one.reason == reason)
            cells.append("; ".join(f"{why} ({count})" for why, count in whys.items()))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Together {passed} of {every} tests pass, {passed / every:.0%}."])


def _of(package: str, twins: bool) -> tuple[int, int]:
    """Return the numbers of all tests and of failing tests, synchronous or (`twins`) asynchronous."""
    tests = sum(count for module, count in counted(package).items() if _is_twin(module) is twins)
    return tests, sum(_is_twin(one.test) is twins for one in listed(package))


def _is_twin(test: str) -> bool:
    return test.partition("::")[0].endswith("_async.py")


def written(text: str) -> str:
    """Return the README with the current table."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(written(README.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{README} has what {LIST.name} says\n")
