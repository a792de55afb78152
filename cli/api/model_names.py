"""References to a model's version on the command line: `churn@production`, `churn@4` or `churn/4`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import CliError, NotFound
from .client import Api

REFERENCE = re.compile(
    r"(?P<model>[a-z][a-z0-9-]{0,62})(?:@(?P<at>[a-z][a-z0-9-]{0,30}|[1-9][0-9]{0,8})|/(?P<number>[1-9][0-9]{0,8}))"
)
OF_RUNS = ("latest", "best")  # mnist@latest is a run


@dataclass(frozen=True)
class Reference:
    """A reference to one version of a model; `which` is an alias or a number."""

    model: str
    which: str

    def get(self, api: Api) -> dict[str, Any]:
        """Return the version from the API."""
        version: dict[str, Any] = api.get("models", self.model, "versions", self.which)
        return version

    def __str__(self) -> str:
        return f"{self.model}@{self.which}"


def reference(text: str) -> Reference | None:
    """Parse a reference to a version. Returns None for any other text, which may name a run or a drop."""
    match = REFERENCE.fullmatch(text)
    if not match or match["at"] in OF_RUNS:
        return None
    return Reference(match["model"], match["at"] or match["number"])


def wanted(text: str) -> Reference:
    """Parse a reference to a version. Raises CliError for any other text."""
    if found := reference(text):
        return found
    raise CliError(
        f"{text!r} is not a version of a model; write MODEL@ALIAS or MODEL@NUMBER, such as churn@production."
    )


def of_model(api: Api, text: str) -> Reference | None:
    """Return the reference if a model of this name exists, otherwise None: `mnist@best` and `mnist/1` may be a run
    and a drop."""
    found = reference(text)
    if found is None:
        return None
    try:
        api.get("models", found.model)
    except NotFound:
        return None
    return found
