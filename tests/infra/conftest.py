"""An azd environment for tests of its hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.azd import Azd


@pytest.fixture
def azd(tmp_path: Path) -> Azd:
    """A new environment, as `azd up` makes it with its first questions."""
    return Azd(tmp_path)
