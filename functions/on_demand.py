"""Imports that wait until one of the module's names is used, so that a cold start pays for what its function needs.

    with on_demand():
        from shared.api import queries

`queries` is there at once, and its code runs at the first `queries.…`, whichever thread that is in. Packages, and
modules that were imported before, are as ever. It is what importlib.util.LazyLoader does, which before 3.11.8 let a
second thread see a module half made. The classes have the methods of importlib.abc's, whose import alone is a 60th of
a cold start.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object

OURS = "shared."


@contextmanager
def on_demand() -> Iterator[None]:
    """Defer what is imported inside, of the folder shared/ alone."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder:
    def find_spec(self, fullname: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname.startswith(OURS) else None
        if spec and spec.loader and spec.submodule_search_locations is None:
            spec.loader = _Later(spec.loader)
        return spec


class _Later(Loader):
    """Runs a module's code once, when it is asked to for the first time."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()  # no circle of modules, no deadlock of their locks
        self._running = False

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Waiting

    def run(self, module: ModuleType) -> None:
        with self._lock:
            if self._running or module.__class__ is ModuleType:
                return
            self._running = True
            try:
                self._loader.exec_module(module)
                module.__class__ = ModuleType
            finally:
                self._running = False


class _Waiting(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__"):  # those are the import system's
            ModuleType.__getattribute__(self, "__spec__").loader.run(self)
        return ModuleType.__getattribute__(self, name)  # no super(): this is an ordinary module by now
