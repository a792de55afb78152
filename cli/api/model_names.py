"""What a person calls a model's version: `churn@production`, `churn@4` or `churn/4`."""

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
    """A model and which of its versions: an alias or a number."""

    model: str
    which: str

    def get(self, api: Api) -> dict[str, Any]:
        """The version, as the API knows it."""
        version: dict[str, Any] = api.get("models", self.model, "versions", self.which)
        return version

    def __str__(self) -> str:
        return f"{self.model}@{self.which}"


def reference(text: str) -> Reference | None:
    """The reference that the text is, or None: then it may name a run or a drop."""
    match = REFERENCE.fullmatch(text)
    if not match or match["at"] in OF_RUNS:
        return None
    return Reference(match["model"], match["at"] or match["number"])


def wanted(text: str) -> Reference:
    """The same. Raises CliError where it is none."""
    if found := reference(text):
        return found
    raise CliError(f"{text!r} names no model's version; write MODEL@ALIAS or MODEL@NUMBER, such as churn@production.")


def of_model(api: Api, text: str) -> Reference | None:
    """The reference, if there is such a model: `mnist@best` and `mnist/1` may be a run and a drop."""
    found = reference(text)
    if found is None:
        return None
    try:
        api.get("models", found.model)
    except NotFound:
        return None
    return found
