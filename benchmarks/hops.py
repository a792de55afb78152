"""Hops of a drop, from zero: how many functions start, one after the other, until its job is accepted and archived.

    python3 trainyard.py bench hops [--quick] [--json]

Flex Consumption gives each queue's function instances of its own, which begin when its queue has a message. Here a host
of the local cloud serves HTTP alone, and we play the platform: a host for a function's group starts at its first
message. Target: one to the accepted job, two to the archive; beside them, what nobody waits for.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient

from benchmarks._options import options
from benchmarks.scaling.cloud import Plan, ScaleCloud, running
from emulators import process
from functions.queues import function_of
from shared.kernel import places
from shared.kernel.storage import Queues
from shared.messages.declared import QUEUES
from shared.runs.model import RunState
from shared.runs.ports import RunFilter

FLEX = {"WEBSITE_SKU": "FlexConsumption", "FUNCTIONS_TARGET_GROUP": "http"}
PATIENCE = 180.0


@dataclass
class Platform:
    """Starts a host for each group that has a message, and keeps it."""

    cloud: ScaleCloud
    queues: Queues
    hosts: dict[str, process.Part] = field(default_factory=dict)

    def look(self) -> None:
        for queue in QUEUES:
            if function_of(queue) not in self.hosts and self.queues.peek(queue, 1):
                self._start(function_of(queue))

    def _start(self, function: str) -> None:
        host = self.cloud._parts["host"]
        config = self.cloud.home / "configs" / f"host-{function}.json"
        config.write_text(json.dumps({**host.config, "port": 0}))
        argv = [sys.executable, "-m", "emulators.host", "--config", str(config)]
        env = {**host.env, "FUNCTIONS_TARGET_GROUP": f"function:{function}"}
        log = self.cloud.home / "logs" / f"host-{function}.log"
        self.hosts[function] = process.start(function, argv, log=log, env=env)

    def stop(self) -> None:
        for host in self.hosts.values():
            host.stop()


def measure(home: Path) -> dict[str, Any]:
    with running(home, Plan(life={"queued_seconds": 0.0, "running_seconds": 2.0}, app_env=FLEX)) as cloud:
        platform = Platform(cloud, cloud.system().queues)
        try:
            return _one_drop(cloud, platform)
        finally:
            platform.stop()


def _one_drop(cloud: ScaleCloud, platform: Platform) -> dict[str, Any]:
    with ContainerClient.from_connection_string(cloud.connection_string, places.DROPS_CONTAINER) as container:
        container.upload_blob("noop/first/1.bin", b"1")
        began = time.monotonic()
        container.upload_blob("noop/first/_SUCCESS", b"")
    runs, found = cloud.system().runs, dict[str, Any]()
    while "archived" not in found and time.monotonic() - began < PATIENCE:
        platform.look()
        run = next(iter(runs.page(RunFilter(), 1).runs), None)
        seen = {"accepted": run and run.progress.state is not RunState.RECEIVED, "archived": run and run.archive.at}
        for step in (step for step, is_so in seen.items() if is_so and step not in found):
            found[step] = {"seconds": round(time.monotonic() - began, 1), "functions": list(platform.hosts)}
        time.sleep(0.2)
    return found


def main(argv: list[str]) -> None:
    asked = options(__doc__, "the same").parse_args(argv)
    with tempfile.TemporaryDirectory() as home:
        result = measure(Path(home))
    if asked.json:
        print(json.dumps(result))
        return
    for step, told in result.items():
        print(f"{step:9} after {told['seconds']} s; started: {', '.join(told['functions'])}")


if __name__ == "__main__":
    main(sys.argv[1:])
