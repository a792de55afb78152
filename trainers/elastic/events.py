"""A log of a run's events, one line each, for analysis. ELASTIC_EVENTS names the file."""

from __future__ import annotations

import json
import os
import time


def note(what: str, **facts: object) -> None:
    """Append an event with the time and this process, in one write, because several processes may share the file."""
    path = os.environ.get("ELASTIC_EVENTS")
    if not path:
        return
    line = json.dumps({"time": time.time(), "process": os.getpid(), "what": what, **facts}) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
