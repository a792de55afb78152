"""The content of an environment as this machine builds it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from emulators.azureml.kernel.errors import BadRequest


class NotHere(BadRequest):
    """This machine can't build the environment. The message names the missing part."""


@dataclass(frozen=True)
class Recipe:
    """The content of an environment.

    `python` is a version, for example 3.10, or '' for the nodes' own. `or_python` are acceptable versions if this
    machine lacks `python`, and with '' the only acceptable ones. `notes` are written at the head of the job's log.
    `brought` are packages that nobody asked for, but that come along: without them the environment is still made.
    """

    requirements: tuple[str, ...] = ()
    python: str = ""
    variables: dict[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()
    or_python: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()

    def names(self, packages: Iterable[str]) -> bool:
        """Return whether the requirements include any of these packages."""
        asked = {re.split(r"[^\w.-]", text, maxsplit=1)[0].lower().replace("_", "-") for text in self.requirements}
        return bool(asked & set(packages))

    def digest(self, salt: str) -> str:
        """Return a hash of the content, which is the environment's name. `salt` is the interpreter's own version."""
        pythons = () if self.python else self.or_python
        content = json.dumps([salt, self.python, sorted(self.requirements), *filter(None, (self.brought, pythons))])
        return hashlib.sha256(content.encode()).hexdigest()[:24]
