"""The page's modules as one, so that a browser asks once, and not once for each module that a module leads to.

The files stay plain modules: each becomes a function of its own in the joined one, after those that it imports. That
takes what page/ writes and what its libraries are: static imports of names or a default, `import()` by a literal path,
exports of declarations, of lists and of a default. What else is met raises ValueError, which the tests of the page see.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

_FROM = r"""from\s*["'](?P<path>[^"']+)["'];?"""
_IMPORT = re.compile(
    rf"""(?m)^import\s*(?:(?:(?P<default>\w+)|\{{(?P<names>[^}}]*)\}})\s*{_FROM}|["'](?P<bare>[^"']+)["'];?)"""
)
_PASSED_ON = re.compile(rf"(?m)^export\s*\{{(?P<names>[^}}]*)\}}\s*{_FROM}")
_LIST = re.compile(r"export\s*\{(?P<names>[^}]*)\};?")
_DEFAULT = re.compile(r"\bexport default ")
_DECLARED = re.compile(r"(?m)^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))")
_LAZY = re.compile(r"""\bimport\(\s*["'](?P<path>[^"']+)["']\s*\)""")
_LEFT = re.compile(r"""(?m)^(?:import|export)\b|\bimport\(""")
_MAP = re.compile(r"(?m)^//# sourceMappingURL=.*$")


def joined(sources: Mapping[str, str], start: str) -> str:
    """One module that does what the module `start` does with all that it leads to."""
    needed = _reachable(sources, start)
    order = TopologicalSorter({name: _static(name, sources[name]) for name in needed}).static_order()
    return "\n".join(["const modules = {};", *(_wrapped(name, sources[name]) for name in order), ""])


def _reachable(sources: Mapping[str, str], start: str) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        name = todo.pop()
        lazy = {_beside(name, match["path"]) for match in _LAZY.finditer(sources[name])}
        new = (_static(name, sources[name]) | lazy) - found
        found |= new
        todo += new
    return found


def _static(name: str, source: str) -> set[str]:
    """The modules that have to run before this one."""
    imported = {match["path"] or match["bare"] for match in _IMPORT.finditer(source)}
    return {_beside(name, path) for path in imported | {match["path"] for match in _PASSED_ON.finditer(source)}}


def _beside(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _wrapped(name: str, source: str) -> str:
    """The module as a call that puts what it exports into `modules`."""
    given: list[str] = []

    def here(path: str) -> str:
        return f'modules["{_beside(name, path)}"]'

    def imported(match: re.Match[str]) -> str:
        if match["bare"]:
            return ""
        names = f"default: {match['default']}" if match["default"] else _renamed(match["names"], ": ")
        return f"const {{ {names} }} = {here(match['path'])};"

    def passed_on(match: re.Match[str]) -> str:
        given.extend(f"{new}: {here(match['path'])}.{old}" for old, new in _pairs(match["names"]))
        return ""

    def listed(match: re.Match[str]) -> str:
        given.extend(f"{new}: {old}" for old, new in _pairs(match["names"]))
        return ""

    text = _PASSED_ON.sub(passed_on, _IMPORT.sub(imported, _MAP.sub("", source)))
    given.extend(match["name"] for match in _DECLARED.finditer(text))
    text = _LIST.sub(listed, _DECLARED.sub("", text))
    text, defaults = _DEFAULT.subn("const itsDefault = ", text)
    given.extend(["default: itsDefault"] * defaults)
    text = _LAZY.sub(lambda match: f"Promise.resolve({here(match['path'])})", text)
    if left := _LEFT.search(text):
        raise ValueError(
            f"{name} has {text[left.start() : left.start() + 60]!r}, which functions/modules.py can't join."
        )
    return f'modules["{name}"] = (() => {{ // {name}\n{text}\nreturn {{ {", ".join(given)} }};\n}})();'


def _pairs(names: str) -> list[tuple[str, str]]:
    """(name inside, name outside) of each part of `{a, b as c}`."""
    parts = [part.split(" as ") for part in names.split(",") if part.strip()]
    return [(part[0].strip(), part[-1].strip()) for part in parts]


def _renamed(names: str, sign: str) -> str:
    return ", ".join(f"{old}{sign}{new}" for old, new in _pairs(names))
