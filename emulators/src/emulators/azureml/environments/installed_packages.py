"""Hard-links the packages of a Python on this machine into another environment, which takes as little time as
installing nothing.

A link has its own name, so removing or replacing it in the other environment does not change the original file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, distributions
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from emulators.process import IS_WINDOWS

SCRIPTS = "Scripts" if IS_WINDOWS else "bin"
_FACTS = """
import json, platform, sysconfig
print(json.dumps({"site": sysconfig.get_path("purelib"), "version": platform.python_version()}))
"""


@dataclass(frozen=True)
class Installed:
    """The installed packages of one environment. `version` is the Python version, for example 3.11.7."""

    site: Path
    version: str

    @classmethod
    def of(cls, python: Path) -> Installed:
        """Query the interpreter. Raises OSError or CalledProcessError for a broken interpreter."""
        told = subprocess.run([str(python), "-c", _FACTS], capture_output=True, text=True, check=True, timeout=60)
        facts = json.loads(told.stdout)
        return cls(Path(facts["site"]), facts["version"])

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])

    def satisfying(self, requirements: Iterable[str]) -> tuple[dict[str, Distribution], list[str]]:
        """Return the installed packages for these requirements, with all dependencies, and the requirements without
        an installed package."""
        found: dict[str, Distribution] = {}
        missing = []
        for text in requirements:
            try:
                needed = self._closure(Requirement(text))
            except ValueError:  # unreadable requirement, marker or version; uv reports the error
                needed = None
            if needed is None:
                missing.append(text)
            else:
                found |= needed
        return found, missing

    @cached_property
    def _packages(self) -> dict[str, Distribution]:
        return {canonicalize_name(found.metadata["Name"]): found for found in distributions(path=[str(self.site)])}

    def _closure(self, wanted: Requirement) -> dict[str, Distribution] | None:
        """Return the distributions for this requirement and its dependencies, or None if one is missing or has
        another version."""
        found: dict[str, Distribution] = {}
        waiting = [(wanted, frozenset[str]())]
        seen: set[tuple[str, frozenset[str]]] = set()
        while waiting:
            requirement, extras = waiting.pop()
            if not self._applies(requirement, extras):
                continue
            name, asked = canonicalize_name(requirement.name), frozenset(requirement.extras)
            package = self._packages.get(name)
            if package is None or requirement.url or not requirement.specifier.contains(package.version, True):
                return None
            found[name] = package
            if (name, asked) not in seen:
                seen.add((name, asked))
                waiting += [(Requirement(text), asked) for text in package.requires or ()]
        return found

    def _applies(self, requirement: Requirement, extras: frozenset[str]) -> bool:
        here = {"python_version": self.minor, "python_full_version": self.version}
        marker = requirement.marker
        return marker is None or any(marker.evaluate({**here, "extra": extra}) for extra in (extras or {""}))

    def link(self, packages: Iterable[Distribution], site: Path) -> None:
        """Link the files and scripts of these packages into another environment's site-packages."""
        made: set[Path] = set()
        for package in packages:
            for source, target in self._files(package, site):
                if target.parent not in made:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    made.add(target.parent)
                _link(source, target)

    def _files(self, package: Distribution, site: Path) -> Iterator[tuple[Path, Path]]:
        """Yield the source and target of each file and of its compiled code. Files outside both environments are
        left out."""
        prefix = self.site.parents[2] if not IS_WINDOWS else self.site.parents[1]
        for path in package.files or ():
            name = str(path)
            if name.startswith(".."):
                source = Path(os.path.normpath(self.site / name))
                if IS_WINDOWS or not source.is_relative_to(prefix):
                    continue
                yield source, site.parents[2] / source.relative_to(prefix)
                continue
            yield self.site / name, site / name
            if name.endswith(".py"):
                compiled = cache_from_source(name)
                yield self.site / compiled, site / compiled


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return  # two packages share a file, or compiled code is also listed
    except FileNotFoundError:
        return  # code that is not compiled yet
    except OSError:  # another file system
        shutil.copy2(source, target)
