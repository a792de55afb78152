"""`python -m emulators.host --config FILE`: serve one Azure Functions app until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulators.host import logs
from emulators.host.config import Config
from emulators.host.errors import Refused
from emulators.host.service import Host, make_backend
from emulators.process import serve_until_stopped

log = logging.getLogger("host")


async def serve(config: Config) -> int:
    """Serve until stopped. Returns how many invocations had to be abandoned. Raises Refused before it serves."""
    host = Host(config, make_backend(config))
    await host.load()
    port = await host.start()
    names = [function.name for function in host.functions]
    log.info("serving %s on port %d: %s", config.app, port, ", ".join(names))
    await serve_until_stopped(url=f"http://{config.host}:{port}", functions=names)
    log.info("stopping")
    return await host.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m emulators.host", description=__doc__)
    parser.add_argument(
        "--config", type=Path, required=True, help="JSON file with the fields of emulators.host.config.Config"
    )
    arguments = parser.parse_args()
    logs.configure()
    try:
        config = Config.read(arguments.config)
        if config.backend == "runtime":
            logs.configure(_runtime_invocation())
        abandoned = asyncio.run(serve(config))
    except Refused as exc:
        for reason in exc.reasons:
            log.error("refused: %s", reason)
        return 1
    if abandoned:
        log.warning("%d invocations did not end in time", abandoned)
        logging.shutdown()
        os._exit(0)  # an ordinary exit would wait for their threads
    return 0


def _runtime_invocation() -> Callable[[], str | None]:
    try:
        runtime: Any = importlib.import_module("azure_functions_runtime")
    except ImportError:
        return lambda: None  # refused in a moment, with the reason
    known: Callable[[], str | None] = runtime.invocation_id_cv.get
    return known


if __name__ == "__main__":
    sys.exit(main())
