"""Common fixtures of the emulators' tests. Started processes import the same source as the tests."""

from __future__ import annotations

import os
import sys

import hypothesis

from emulator_tests.places import SOURCE

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
# Tests start hundreds of Python processes. With this set, as in many images for containers, each would compile the
# packages of Microsoft anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# No example fails because it took long: the machine may be busy.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
