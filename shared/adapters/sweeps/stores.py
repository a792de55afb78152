"""Studies of sweeps, whose program is imported for the first sweep: most processes see no sweep."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from shared.sweeps.ports import STUDIES

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

    from shared.adapters.storage.account import StorageClients
    from shared.jobs.search import Sweep
    from shared.kernel.settings import Workspace
    from shared.sweeps.model import Trial
    from shared.sweeps.ports import Studies, Study


class LaterStudies:
    """See shared.sweeps.ports.Studies."""

    def __init__(self, tables: TableServiceClient) -> None:
        self._tables = tables

    def open(self, name: str, sweep: Sweep) -> Study:
        return self._studies.open(name, sweep)

    def trials(self, name: str, sweep: Sweep) -> list[Trial]:
        return self._studies.trials(name, sweep)

    @cached_property
    def _studies(self) -> Studies:
        from shared.adapters.sweeps.studies import JournalStudies
        from shared.adapters.sweeps.study_table import TableJournal

        return JournalStudies(lambda name: TableJournal(lambda: self._tables, name))


def stores(clients: StorageClients, _: Workspace) -> dict[str, Any]:
    """Return the stores of sweeps, by name."""
    return {STUDIES.name: LaterStudies(clients.table)}
