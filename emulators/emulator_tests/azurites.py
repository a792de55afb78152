"""Azurite for tests that compare with it. Without Azurite these tests are skipped with the package to install."""

from __future__ import annotations

from typing import Any

import pytest

from emulators.testing import azurite


def started(*where: Any, **options: Any) -> azurite.Azurite:
    """Like `azurite.start`, but skips the test without Azurite."""
    try:
        return azurite.start(*where, **options)
    except azurite.NotHere as error:
        pytest.skip(str(error))
