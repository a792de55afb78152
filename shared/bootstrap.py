"""What the triggers work with, made on the first call: no SDK is imported while the app is indexed."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from shared.jobs.routes_file import load
from shared.kernel.index_settings import TRAINERS, money_file, routes_file
from shared.money import money_file as money

if TYPE_CHECKING:
    from shared.kernel.settings import Settings
    from shared.notices.ports import Post
    from shared.removals.ports import Removals
    from shared.schedules.ports import Schedules
    from shared.sweeps.ports import Studies
    from shared.system import System


def check_routes() -> None:
    """Raise BadSetting for a broken routes file, when the app is indexed.

    The app does not start then, and its messages wait. Without this check each would fail five times and become poison.
    """
    load(routes_file(os.environ), TRAINERS)
    money.load(money_file(os.environ))


def _settings() -> Settings:
    from shared.kernel.settings import Settings

    return Settings.from_env(os.environ)


@cache
def system() -> System:
    """The system of this process, made on the first call from os.environ. Raises BadSetting."""
    from shared import wiring

    return wiring.build(_settings())


def post() -> Post:
    """How notices are kept and sent."""
    return system().post


def schedules() -> Schedules:
    """Where schedules are kept."""
    return system().schedules


def studies() -> Studies:
    """Where sweeps keep what they learned."""
    return system().studies


def removals() -> Removals:
    """Where removals are recorded."""
    return system().removals
