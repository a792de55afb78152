"""The version of Python that a folder of code asks for.

`.python-version` names one version. The project files name a range: `requires-python` of pyproject.toml, Poetry's
`python`, and `python_requires` of setup.cfg and setup.py. A range that can't be read is no range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import CliError

USUAL = 11  # of Python 3, where the folder asks for none
MINORS = range(8, 15)
_NAMED = re.compile(r"^\s*(?:cpython[@-]?)?(\d+)\.(\d+)", re.MULTILINE)
_RANGE = re.compile(r"""^\s*(?:requires-python|python_requires|python)\s*=\s*["']?([^"'#\n]+)""", re.MULTILINE)
_BOUND = re.compile(r"(>=|<=|==|!=|~=|>|<|\^|~)?\s*(\d+)(?:\.(\d+|\*))?(?:\.(\d+|\*))?\s*")


def python_version(folder: Path) -> tuple[str, str]:
    """Return the version for the folder's jobs, for example 3.11, and the name of the file that asks for a version, ''
    for none. In a range, it is the version closest to 3.11. Raises CliError if no job can have such a version."""
    for name, asked in _asked(folder):
        allowed = [minor for minor in MINORS if _allows(asked, minor)]
        if not allowed:
            raise CliError(
                f"{name} asks for Python {asked}; a job can have Python 3.{MINORS[0]} to 3.{MINORS[-1]}. Name another "
                "version in a file .python-version of the folder, or use a conda file."
            )
        return f"3.{min(allowed, key=lambda minor: (abs(minor - USUAL), -minor))}", name
    return f"3.{USUAL}", ""


def _asked(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that ask for a version, with what they ask for."""
    for name in (".python-version", "pyproject.toml", "setup.cfg", "setup.py"):
        try:
            text = (folder / name).read_text("utf-8")
        except (OSError, ValueError):
            continue
        if name == ".python-version":
            if found := _NAMED.search(text):
                yield name, f"=={found[1]}.{found[2]}"
        elif (found := _RANGE.search(text)) and _is_range(found[1]):
            yield name, found[1].strip()


def _is_range(text: str) -> bool:
    return all(_BOUND.fullmatch(part.strip()) for part in re.split(r",|\|\|", text))


def _allows(asked: str, minor: int) -> bool:
    """Return whether a range allows the newest release of Python 3.`minor`, or any other."""
    return any(all(_meets(part.strip(), minor) for part in each.split(",")) for each in asked.split("||"))


def _meets(part: str, minor: int) -> bool:
    """Return whether a release of Python 3.`minor` meets one bound of a range."""
    found = _BOUND.fullmatch(part)
    assert found, "_is_range checked the text"
    operator, major, second, third = found[1] or "==", int(found[2]), found[3] or "*", found[4] or "*"
    here = (3,) if second == "*" else (3, minor)
    bound = (major,) if second == "*" else (major, int(second))
    if operator in ("==", "!="):
        return (here == bound) is (operator == "==") or (operator == "!=" and third != "*")
    if operator == "<":
        return here < bound or (here == bound and third not in ("*", "0"))
    if operator in ("~=", "~"):
        is_exact = third != "*" or operator == "~"
        return here == bound if is_exact else here[0] == bound[0] and here >= bound
    if operator == "^":
        return here[0] == bound[0] and here >= bound
    return here <= bound if operator == "<=" else here >= bound
