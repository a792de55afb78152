"""Generate the names of the queues from the declared messages, for the triggers in declared.py and for Bicep."""

from __future__ import annotations

import re
from pathlib import Path

from shared.kernel.message import is_event
from shared.messages.declared import by_queue

ROOT = Path(__file__).resolve().parents[1]
PYTHON, BICEP = ROOT / "shared" / "messages" / "declared.py", ROOT / "infra" / "modules" / "storage.bicep"
NOTE = "// written by .ci/generate.py from the declared messages"


def pages() -> dict[Path, str]:
    """Return the text of both files with the present names. Queues of events come first."""
    queues = by_queue()
    events = [name for name, kinds in queues.items() if any(map(is_event, kinds))]
    others = "".join(f', "{name}"' for name in queues if name not in events)
    tuples = (f"EVENT_QUEUES = ({', '.join(map(quoted, events))})", f"QUEUES = (*EVENT_QUEUES{others})")
    python = PYTHON.read_text("utf-8")
    for line in tuples:
        python = re.sub(rf"^{line.split()[0]} = \(.*?\)", line, python, flags=re.MULTILINE)
    names = "".join(f"  '{name}'\n" for name in queues)
    bicep = re.sub(
        r"^var queues = \[.*?^\]", f"var queues = [ {NOTE}\n{names}]", BICEP.read_text("utf-8"), flags=re.M | re.S
    )
    return {PYTHON: python, BICEP: bicep}


def quoted(name: str) -> str:
    return f'"{name}"'
