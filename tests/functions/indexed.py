"""The app's functions, as Azure indexes them. A process can index an app only once."""

from __future__ import annotations

from functools import cache
from typing import Any

from function_app import app


@cache
def functions() -> list[Any]:
    return list(app.get_functions())
