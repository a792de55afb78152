"""Start another Functions host than the emulated one, for example Microsoft's Core Tools, and wait until it runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import requests

from emulators import process

START_SECONDS = 180.0


def start(command: str, app: Path, log: Path, settings: Mapping[str, str]) -> process.Part:
    """Start a host with `command` in the app's folder, and return the host. `{port}` in the command stands for the
    port.

    The host inherits this process's environment without PYTHONPATH, whose folders would come before the app's own.
    Raises PartFailed, with the end of its log, if the host ends before it runs.
    """
    port = process.free_port()
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # The host's worker must run the app with this environment's packages.
    worker = {"languageWorkers__python__defaultExecutablePath": sys.executable}
    tools = {"FUNCTIONS_WORKER_RUNTIME": "python", "FUNCTIONS_CORE_TOOLS_TELEMETRY_OPTOUT": "1"}
    with log.open("w") as out:
        argv = shlex.split(command.format(port=port))
        env = {**inherited, **tools, **worker, **settings}
        started = subprocess.Popen(argv, cwd=app, env=env, stdout=out, stderr=subprocess.STDOUT, text=True)
    url = f"http://127.0.0.1:{port}"

    def runs() -> bool:
        if started.poll() is not None:
            raise process.PartFailed(f"the host ended: {log.read_text()[-2000:]}")
        try:
            return bool(requests.get(f"{url}/admin/host/status", timeout=5).json()["state"] == "Running")
        except (requests.RequestException, ValueError, KeyError):
            return False

    part = process.Part("host", started, log, {"url": url})
    try:
        process.wait_for(runs, START_SECONDS, f"the host; see {log}")
    except BaseException:
        part.stop()
        raise
    return part
