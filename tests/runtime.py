"""Microsoft's azure-functions-runtime for tests of the app: an environment with the runtime and the app's
requirements."""

from __future__ import annotations

import pytest

from emulators.testing import python313 as found_here
from emulators.testing.conformance import installed
from shared.kernel.index_settings import ROOT


@pytest.fixture(scope="session")
def python313() -> str:
    if (found := found_here.find()) is None:
        pytest.skip("azure-functions-runtime needs Python 3.13: there is no python3.13 on PATH and none from pyenv")
    return str(installed(found, ROOT / ".trainyard" / "venv313", ROOT / "requirements.txt"))
