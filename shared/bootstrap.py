"""What the triggers work with, made on the first call: no SDK is imported while the app is indexed."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from shared.jobs.routes_file import load
from shared.kernel.index_settings import TRAINERS, money_file, routes_file
from shared.money import money_file as money

if TYPE_CHECKING:
    from shared.adapters.tables.notice_table import TableNotices
    from shared.kernel.settings import Settings
    from shared.notices.deliver import Post
    from shared.removals.ports import Removals
    from shared.schedules.ports import Schedules
    from shared.sweeps.ports import Studies
    from shared.system import System


def check_routes() -> None:
    """Raise BadSetting for a broken routes file, when the app is indexed.

    The app does not start then, and its messages wait. Without this each would fail five times and be set aside.
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

    return replace(wiring.build(_settings()), audience=_notices())


@cache
def post() -> Post:
    """How notices are kept and sent, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.outgoing import sending
    from shared.notices.deliver import Post

    settings = _settings()
    sender = sending.NoticeSender(settings.mail, settings.notices_inside)
    return Post(_notices(), sender)


@cache
def _notices() -> TableNotices:
    from shared.adapters.storage import account
    from shared.adapters.tables import notice_table

    return notice_table.TableNotices(account.clients(_settings().storage).table)


@cache
def schedules() -> Schedules:
    """Where schedules are kept, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.tables import schedule_table

    return schedule_table.TableSchedules(account.clients(_settings().storage).table)


@cache
def studies() -> Studies:
    """Where sweeps keep what they learned, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.studies import JournalStudies
    from shared.adapters.tables.study_table import TableJournal

    tables = account.clients(_settings().storage).table
    return JournalStudies(lambda name: TableJournal(lambda: tables, name))


@cache
def removals() -> Removals:
    """Where removals are recorded, made on the first call from os.environ. Raises BadSetting."""
    from shared.adapters.storage import account
    from shared.adapters.tables import removal_table

    return removal_table.TableRemovals(account.clients(_settings().storage).table)
