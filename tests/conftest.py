"""What every test finds: Azurite where trainyard.py put it."""

import os
from pathlib import Path

os.environ.setdefault("EMULATORS_NODE_HOME", str(Path(__file__).resolve().parent.parent / ".trainyard" / "node"))
