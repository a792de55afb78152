"""Azurite for comparing tests: without Azurite they are skipped, with the package to install."""

from __future__ import annotations

from typing import Any

import pytest

from emulators.testing import azurite


def started(*where: Any, **options: Any) -> azurite.Azurite:
    """As `azurite.start`."""
    try:
        return azurite.start(*where, **options)
    except azurite.NotHere as error:
        pytest.skip(str(error))
