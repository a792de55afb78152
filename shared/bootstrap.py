"""Build the process's System on the first call, because indexing the app must import no SDK."""

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
    from shared.system import System


def check_routes() -> None:
    """Raise BadSetting for a broken routes or money file, while the host indexes the app.

    The app then does not start, and its messages wait in their queues. Without this check each message would fail five
    times and become poison.
    """
    load(routes_file(os.environ), TRAINERS)
    money.load(money_file(os.environ))


def _settings() -> Settings:
    from shared.kernel.settings import Settings

    return Settings.from_env(os.environ)


@cache
def system() -> System:
    """Return the System of this process, built from os.environ on the first call. Raises BadSetting."""
    from shared import wiring

    return wiring.build(_settings())


def post() -> Post:
    """Return the store and the sender of notices."""
    return system().post


def schedules() -> Schedules:
    """Return the store of schedules."""
    return system().schedules


def removals() -> Removals:
    """Return the store of removals."""
    return system().removals
