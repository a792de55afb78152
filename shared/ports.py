"""The ports for the reactions, the timers and the API: the ports of all nouns together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from shared.models.ports import ModelPorts
from shared.money.ports import MoneyPorts
from shared.notices.ports import NoticePorts
from shared.schedules.ports import SchedulePorts


class AllPorts(MoneyPorts, SchedulePorts, NoticePorts, ModelPorts, Protocol):
    """The ports of every folder, and the administrator's questions about the deployment."""

    @property
    def given_settings(self) -> Mapping[str, str]: ...
