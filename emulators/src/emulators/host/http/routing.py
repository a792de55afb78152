"""Route templates, as ASP.NET reads them: literals, {parameters}, {optional?}, {constrained:int}, {*catchAll}."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import unquote

T = TypeVar("T")
Check = Callable[[str], bool]

PARAMETER = re.compile(r"\{(?P<star>\*{0,2})(?P<name>\w+)(?P<constraints>(?::[^{}:?]+)*)(?P<optional>\?)?\}")
PATTERNS = {
    "alpha": r"[A-Za-z]*",
    "bool": r"(?i:true|false)",
    "int": r"[-+]?\d{1,10}",
    "long": r"[-+]?\d{1,19}",
    "guid": r"(?i:[({]?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}[)}]?)",
    "decimal": r"[-+]?\d*\.?\d+",
    "double": r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?",
    "float": r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?",
}
BOUNDS: dict[str, Callable[..., Check]] = {
    "min": lambda low: lambda text: _is_number(text) and int(text) >= low,
    "max": lambda high: lambda text: _is_number(text) and int(text) <= high,
    "range": lambda low, high: lambda text: _is_number(text) and low <= int(text) <= high,
    "minlength": lambda low: lambda text: len(text) >= low,
    "maxlength": lambda high: lambda text: len(text) <= high,
    "length": lambda low, high=None: lambda text: low <= len(text) <= (low if high is None else high),
}


@dataclass(frozen=True)
class Template:
    """A parsed route. `shape` is equal for two templates that differ in parameter names only."""

    text: str
    pattern: re.Pattern[str]
    checks: tuple[tuple[str, Check], ...]
    shape: str

    def match(self, path: str) -> dict[str, str] | None:
        """Return the parameters in a URL's raw path, decoded except for %2F, or None. Missing optional parameters
        are omitted."""
        found = self.pattern.fullmatch(unquote(path.replace("%2F", "%252F").replace("%2f", "%252f")))
        if not found:
            return None
        values = {name: text for name, text in found.groupdict().items() if text}
        return values if all(check(values[name]) for name, check in self.checks if name in values) else None


def parse(route: str, prefix: str = "") -> Template:
    """Read a route template below `prefix`. Raises ValueError with the unsupported part."""
    segments = [segment for segment in f"{prefix.strip('/')}/{route.strip('/')}".split("/") if segment]
    pattern, checks = "", list[tuple[str, Check]]()
    for index, segment in enumerate(segments):
        part = _segment(segment, last=index == len(segments) - 1)
        pattern += part.pattern
        checks += part.checks
    try:
        compiled = re.compile(pattern + "/?", re.IGNORECASE | re.DOTALL)
    except re.error as exc:  # the same name twice
        raise ValueError(f"route {route!r}: {exc}") from exc
    shape = re.sub(r"\{(\*{0,2})\w+", r"{\1", "/".join(segments)).lower()
    return Template("/".join(segments), compiled, tuple(checks), shape)


@dataclass(frozen=True)
class _Segment:
    pattern: str
    checks: list[tuple[str, Check]]


def _segment(segment: str, *, last: bool) -> _Segment:
    pieces = re.split(r"(\{[^{}]*\})", segment)
    parameters = [PARAMETER.fullmatch(piece) for piece in pieces[1::2]]
    literals = pieces[0::2]
    if None in parameters or any("{" in text or "}" in text for text in literals):
        raise ValueError(
            f"route segment {segment!r} is not supported: use {{name}}, {{name?}}, {{name:int}} or {{*name}}"
        )
    found = [parameter for parameter in parameters if parameter]
    if not found:
        return _Segment("/" + re.escape(segment), [])
    checks = [(p["name"], check) for p in found for check in _checks(p["constraints"])]
    special = [p for p in found if p["star"] or p["optional"]]
    if special and (not last or segment != special[0][0]):
        raise ValueError(
            f"route segment {segment!r}: an optional or catch-all parameter must be the whole last segment"
        )
    if special:
        rest = ".*" if special[0]["star"] else "[^/]+"
        return _Segment(f"(?:/(?P<{found[0]['name']}>{rest}))?", checks)
    names = [f"(?P<{p['name']}>[^/]+?)" for p in found]
    joined = "".join(re.escape(text) + name for text, name in zip(literals, [*names, ""], strict=True))
    return _Segment("/" + joined, checks)


def _checks(constraints: str) -> list[Check]:
    return [_check(text) for text in constraints.split(":") if text]


def _check(text: str) -> Check:
    name, _, rest = text.partition("(")
    if text in PATTERNS:
        pattern = re.compile(PATTERNS[text])
        return lambda value: pattern.fullmatch(value) is not None
    try:
        return BOUNDS[name.lower()](*(int(number) for number in rest.removesuffix(")").split(",")))
    except (KeyError, ValueError, TypeError):
        known = ", ".join(sorted([*PATTERNS, *BOUNDS]))
        raise ValueError(f"route constraint {text!r} is not supported; there are: {known}") from None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?\d+", text) is not None


@dataclass(frozen=True)
class Route(Generic[T]):
    """A route: template, methods (None: any), and target."""

    template: Template
    methods: frozenset[str] | None
    target: T

    def overlaps(self, other: Route[T]) -> bool:
        """Return whether a request could match both routes without a rule of preference."""
        if self.template.shape != other.template.shape:
            return False
        return not self.methods or not other.methods or bool(self.methods & other.methods)


class Router(Generic[T]):
    """Finds the first matching route of a request, in the given order. A catch-all hides later routes."""

    def __init__(self, routes: Iterable[Route[T]]) -> None:
        self._routes = list(routes)

    def find(self, method: str, path: str) -> tuple[T, dict[str, str]] | None:
        """Return the target and the route's parameters. The method is a constraint, so a route with another method
        does not match."""
        for route in self._routes:
            if (not route.methods or method in route.methods) and (params := route.template.match(path)) is not None:
                return route.target, params
        return None
