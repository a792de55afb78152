"""`python -m emulator_tests.microsoft.table`: write into the README which of Microsoft's tests do not pass, and why."""

from __future__ import annotations

import sys
from collections import Counter

from emulator_tests.microsoft.judged import LIST, REASONS, listed
from emulator_tests.microsoft.sdists import pinned
from emulator_tests.places import PROJECT

README = PROJECT / "README.md"
BEGIN, END = "<!-- made by emulator_tests/microsoft/table.py -->", "<!-- end -->"
WORDS = {"readme": "not there", "azure": "needs Azure itself", "shim": "can't be run here"}


def table() -> str:
    """A row for each package: what does not pass, by reason, with the number of tests; a whole module counts as one."""
    lines = ["| Microsoft's tests of | " + " | ".join(WORDS[reason] for reason in REASONS) + " |", "|---|---|---|---|"]
    for package in sorted(pinned()):
        cells = [package]
        for reason in REASONS:
            modules = Counter(one.why for one in listed(package) if one.reason == reason and one.test.endswith(".py"))
            tests = Counter(one.why for one in listed(package) if one.reason == reason)
            cells.append("; ".join(_said(why, count - modules[why], modules[why]) for why, count in tests.items()))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _said(why: str, tests: int, modules: int) -> str:
    parts = [f"{tests}" if tests else "", f"{modules} whole module{'s' * (modules > 1)}" if modules else ""]
    return f"{why} ({' and '.join(filter(None, parts))})"


def written(text: str) -> str:
    """The README with the table of now."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    README.write_text(written(README.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{README} has what {LIST.name} says\n")
