"""`python -m emulators.storage --config FILE.json`: serve the blobs, queues and tables of an account until stopped."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from pathlib import Path

from emulators.process import serve_until_stopped
from emulators.storage.config import Config, parse
from emulators.storage.serving import serving


async def serve(config: Config) -> None:
    async with serving(config) as urls:
        await serve_until_stopped(**urls)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulators.storage", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the services' configuration, a JSON file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(serve(parse(json.loads(arguments.config.read_text()))))


if __name__ == "__main__":
    main()
