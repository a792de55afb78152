"""Archive copies: 1,000 small blobs, the same blobs again when all exist, and one blob of 1 GiB. Target: flat memory.

    python3 trainyard.py bench archive_copy [--quick] [--json]

The storage service (here Azurite) makes the copies, at the request of a separate process. The memory of that process is
measured before the first copy and at its peak.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from azure.storage.blob import BlobBlock

from benchmarks._options import options
from emulators.testing import azurite
from shared.adapters.storage import account
from shared.adapters.storage.blobs import StorageBlobs
from shared.kernel.index_settings import ROOT
from shared.kernel.settings import Storage
from shared.kernel.storage import Copy, Place

SMALL_BYTES, BLOCK_BYTES = 4096, 32 << 20
FULL, QUICK = (1000, 32), (100, 2)  # small blobs, and blocks of the large one


def main(argv: list[str]) -> None:
    if argv[:1] == ["--copy"]:
        print(json.dumps(copy(os.environ["CONNECTION"], argv[1])))
        return
    asked = options(__doc__, f"{QUICK[0]} small blobs, and one of {QUICK[1] * BLOCK_BYTES >> 20} MiB").parse_args(argv)
    small, blocks = QUICK if asked.quick else FULL
    few, again = f"{small:,} blobs of 4 KiB", "the same again, all there"
    cases = ((few, "small"), (again, "small"), (f"one blob of {blocks * BLOCK_BYTES >> 20:,} MiB", "large"))
    with tempfile.TemporaryDirectory() as home, azurite.start(Path(home)) as account:
        upload(account.connection_string, small, blocks)
        results = [{"case": name, **in_own_process(account.connection_string, folder)} for name, folder in cases]
    print(json.dumps({"archive_copy": results}) if asked.json else table(results))


def upload(connection: str, small: int, blocks: int) -> None:
    clients = account.clients(Storage(connection_string=connection))
    blobs, data = StorageBlobs(clients.blob), os.urandom(SMALL_BYTES)
    names = [f"small/{i // 100}/{i:04}.bin" for i in range(small)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: blobs.write("source", name, data, "application/octet-stream"), names))
    large, block = clients.blob.get_blob_client("source", "large/model.pt"), os.urandom(BLOCK_BYTES)
    ids = [f"{i:04}" for i in range(blocks)]
    for block_id in ids:
        large.stage_block(block_id, block)
    large.commit_block_list([BlobBlock(block_id) for block_id in ids])


def in_own_process(connection: str, folder: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "benchmarks.archive_copy", "--copy", folder]
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, "CONNECTION": connection}, capture_output=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def copy(connection: str, folder: str) -> dict[str, Any]:
    """Copy the folder and return the measurements."""
    blobs = StorageBlobs(account.clients(Storage(connection_string=connection)).blob)
    blobs.check()
    before, began = peak_mib(), time.perf_counter()
    sources = blobs.list(Place("source", f"{folder}/"))
    copies = (Copy(blob, "source", "output", f"digits/run/{blob.name}") for blob in sources)
    sizes = [made.size for made in blobs.copy(copies)]
    seconds = time.perf_counter() - began
    return {
        "blobs": len(sizes),
        "seconds": round(seconds, 3),
        "blobs_per_second": round(len(sizes) / seconds, 1),
        "mib_per_second": round(sum(sizes) / 2**20 / seconds, 1),
        "mib_before": round(before, 1),
        "mib_peak": round(peak_mib(), 1),
    }


def peak_mib() -> float:
    """Return this process's peak memory in MiB."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 1024
    import resource  # not available on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS gives bytes


def table(results: list[dict[str, Any]]) -> str:
    head = f"{'':28}{'seconds':>9}{'blobs/s':>9}{'MiB/s':>10}{'MiB before':>12}{'MiB peak':>10}"
    rows = [
        f"{r['case']:28}{r['seconds']:>9}{r['blobs_per_second']:>9}{r['mib_per_second']:>10}{r['mib_before']:>12}{r['mib_peak']:>10}"
        for r in results
    ]
    return "\n".join([head, *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
