"""listed.yaml: how many of Azurite's tests each file has, and which of them do not pass, and why.

`python -m emulator_tests.azurite_suite.listed FILE` tells how a run differs from the list; FILE is what the run wrote
with `--json FILE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from emulator_tests.azurite_suite.results import FileResult

LIST = Path(__file__).with_name("listed.yaml")
REASONS = ("azure", "suite", "missing")


@dataclass(frozen=True)
class Listed:
    """The tests of one file, such as `blob/sas.test.ts`. `azurite`: how many pass against Azurite itself.

    `why` maps each reason, and each sentence about it, to the titles of the tests that do not pass:
    - azure: Azurite differs from Azure, which the emulator follows
    - suite: the test fails against Azurite, too
    - missing: the emulator lacks what the test needs
    """

    file: str
    tests: int
    azurite: int
    why: dict[str, dict[str, list[str]]]

    @property
    def passed(self) -> int:
        return self.tests - len(self.titles)

    @property
    def titles(self) -> list[str]:
        return [title for reason in REASONS for titles in self.why[reason].values() for title in titles]


def listed(path: Path = LIST) -> list[Listed]:
    """Return the files of the list in its order."""
    return [
        Listed(file, one["tests"], one["azurite"], {reason: one.get(reason, {}) for reason in REASONS})
        for file, one in yaml.safe_load(path.read_text("utf-8")).items()
    ]


def surprises(found: list[FileResult], expected: list[Listed]) -> Iterator[str]:
    """Yield a line for each difference between a run and the list. Files that did not run are not compared."""
    by_name = {one.file: one for one in expected}
    for result in found:
        own = by_name.get(result.name)
        if own is None:
            yield f"{result.name}: {LIST.name} lacks the file"
            continue
        if own.tests != result.ran:
            yield f"{result.name}: {result.ran} tests ran, and {LIST.name} counts {own.tests}"
        failed = {title for title, outcome in result.outcomes.items() if outcome not in ("", "skipped")}
        yield from (f"{result.name}: fails, but is not listed: {title}" for title in sorted(failed - {*own.titles}))
        yield from (f"{result.name}: passes, but is listed: {title}" for title in sorted({*own.titles} - failed))


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    run = json.loads(Path(argv[0]).read_text("utf-8"))
    lines = list(surprises([FileResult(name, outcomes) for name, outcomes in run.items()], listed()))
    sys.stdout.write("".join(f"{line}\n" for line in lines) or f"The run is as {LIST.name} says.\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
