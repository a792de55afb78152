"""Common fixtures of the emulators' tests. Started processes import the same source as the tests."""

from __future__ import annotations

import os
import sys

import hypothesis

from emulator_tests.places import SOURCE

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
# Tests start hundreds of Python processes. With this variable set, as in many container images, each process would
# compile Microsoft's packages again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Examples have no time limit, because the machine may be busy.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
