"""The functions of the app, as Azure indexes them. An app can be asked for them once in a process."""

from __future__ import annotations

from functools import cache
from typing import Any

from function_app import app


@cache
def functions() -> list[Any]:
    return list(app.get_functions())
