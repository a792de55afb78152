"""`python -m emulators.host --config FILE`, or `--app FOLDER --port PORT`: serve one Functions app until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from emulators.host import logs
from emulators.host.config import Config
from emulators.host.errors import Refused
from emulators.host.service import Host
from emulators.process import serve_until

log = logging.getLogger("host")


async def serve(config: Config) -> int:
    """Serve until stopped. Returns the exit status: 1 after a worker with too many deaths. Raises Refused before
    serving.
    """
    host = Host(config)
    await host.load()
    port = await host.start()
    names = [function.name for function in host.functions]
    log.info("serving %s on port %d: %s", config.app, port, ", ".join(names))
    await serve_until(host.given_up, url=f"http://{config.host}:{port}", functions=names)
    log.info("stopping")
    if abandoned := await host.stop():
        log.warning("%d invocations did not end in time", abandoned)
    return 1 if host.given_up.is_set() else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m emulators.host", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", type=Path, help="JSON file with the fields of emulators.host.config.Config")
    which.add_argument("--app", type=Path, help="folder of an app, which is served with the defaults")
    parser.add_argument("--port", type=int, default=7071, help="for --app (default: %(default)s)")
    arguments = parser.parse_args()
    logs.configure()
    for name in logs.QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        config = Config.of_app(arguments.app, arguments.port) if arguments.app else Config.read(arguments.config)
        return asyncio.run(serve(config))
    except Refused as exc:
        for reason in exc.reasons:
            log.error("refused: %s", reason)
        return 1


if __name__ == "__main__":
    sys.exit(main())
