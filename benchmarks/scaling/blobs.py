"""One drop of a million blobs: the time and the memory of the app's single pass over the listing.

`python -m benchmarks.scaling.blobs URL COUNT` makes one pass in a separate process and prints its time and memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.scaling.cloud import memory_mib
from emulators import process
from emulators.storage.keys import ACCOUNT, KEY
from shared.adapters.storage import account
from shared.adapters.storage.blobs import StorageBlobs
from shared.kernel.drop_key import DropKey
from shared.kernel.index_settings import ROOT
from shared.kernel.settings import Storage
from shared.kernel.storage import Blob, Place
from shared.runs.content import survey

FEW = 1000


def measure(home: Path, count: int) -> dict[str, Any]:
    argv = [sys.executable, "-m", "benchmarks.scaling.blob_pages"]
    part = process.start("pages", argv, log=home / "pages.log")
    try:
        few, many = (_in_process(str(part.info["url"]), number) for number in (FEW, count))
    finally:
        part.stop()
    return {"blobs": count, **many, "extra_mib": round(many["peak_mib"] - few["peak_mib"], 1)}


def _in_process(url: str, count: int) -> dict[str, Any]:
    argv = [sys.executable, "-m", "benchmarks.scaling.blobs", url, str(count)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=1800)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def one_pass(url: str, count: int) -> dict[str, Any]:
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
    text += "".join(f"{service}Endpoint={url}/{ACCOUNT};" for service in ("Blob", "Queue", "Table"))
    with closing(account.clients(Storage(connection_string=text)).blob) as client:
        listing = StorageBlobs(client).list(Place(f"b{count}", "noop/big/"))
        began, cpu = time.monotonic(), time.process_time()
        seen = survey(DropKey("noop", "big"), listing)
        seconds, used = time.monotonic() - began, time.process_time() - cpu
    peak = memory_mib(_own_pid(), "VmHWM")
    assert seen.blobs == count
    cpu = time.process_time()
    survey(DropKey("noop", "big"), _made(count))
    own = time.process_time() - cpu
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "of_it_ours": round(own, 1),
        "peak_mib": round(peak, 1),
    }


def _made(count: int) -> Iterator[Blob]:
    """Yield the same blobs without any listing."""
    for index in range(count):
        yield Blob(
            f"noop/big/part-{index // 10_000:03}/{index:08}.bin", f"0x8DE{index:012X}", index, "0" * 32, None, {}
        )


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


if __name__ == "__main__":
    print(json.dumps(one_pass(sys.argv[1], int(sys.argv[2]))))
