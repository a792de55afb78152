"""The outcomes of Azurite's tests, and their table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileResult:
    """`outcomes` maps each test's title to '' for a pass, 'skipped', or the error. `name` is relative to tests/."""

    name: str
    outcomes: dict[str, str]

    @property
    def service(self) -> str:
        return self.name.partition("/")[0]

    @property
    def ran(self) -> int:
        return sum(outcome != "skipped" for outcome in self.outcomes.values())

    @property
    def passed(self) -> int:
        return sum(not outcome for outcome in self.outcomes.values())


def line(one: FileResult) -> str:
    return f"{one.passed:4} of {one.ran:3}  {one.name}"


def table(found: list[FileResult]) -> str:
    """Return a line for each file and each service, followed by the tests that did not pass, with their errors."""
    lines = [line(one) for one in found]
    for service in dict.fromkeys(one.service for one in found):
        own = [one for one in found if one.service == service]
        lines.append(f"{sum(one.passed for one in own):4} of {sum(one.ran for one in own):3}  all of {service}")
    failed = [
        f"{one.name}: {title}\n    {outcome.splitlines()[0]}"
        for one in found
        for title, outcome in one.outcomes.items()
        if outcome not in ("", "skipped")
    ]
    return "\n".join([*lines, "", *failed])
