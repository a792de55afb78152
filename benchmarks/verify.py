"""How fast `verify` reads a signed model: GB/s of processor time and of wall time, compared with OpenSSF's own program.

$ python3 trainyard.py bench verify
$ python3 trainyard.py bench verify --mib 2048 --folder /mnt/disk

The benchmark signs a folder of random weights (one large file, and as many bytes in 16 smaller files), reads the folder
once so that the disk cache holds it, and then verifies it. A core's speed is bytes divided by processor seconds. --json
prints one object.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._options import options
from cli.files.model_signature import SIGNATURE, key_digest
from cli.files.signed_model import verify
from local.signing_key import own_key
from shared.adapters.keys.signing import signer_of
from shared.models.signature import signed

PIECE = 64 << 20


def main(argv: list[str]) -> int:
    parser = options(__doc__, "64 MiB")
    parser.add_argument("--mib", type=int, default=1024, help="size of the model (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where to write it (default: the system's temporary folder)")
    args = parser.parse_args(argv)
    if args.quick:
        args.mib = 64
    with tempfile.TemporaryDirectory(dir=args.folder) as home:
        told = measure(Path(home), args.mib << 20)
    if args.json:
        print(json.dumps(told))
    else:
        print(f"{told['bytes'] / 1e9:.2f} GB in {told['files']} files, {told['cores']} cores")
        for who in ("trainyard", "model_signing"):
            row = told[who]
            print(
                f"{who:14} {row['seconds']:6.2f} s  {row['gb_per_second']:.2f} GB/s"
                + (f"  {row['gb_per_core_second']:.2f} GB/s a core" if "gb_per_core_second" in row else "")
            )
    return 0


def measure(home: Path, size: int) -> dict[str, Any]:
    """Measure both programs on the same folder, each as the best of three; the other program's time includes its
    process start."""
    folder, signer = home / "model", signer_of(str(own_key(home)))
    write(folder / "models", size)
    digests = {p.relative_to(folder).as_posix(): digest(p) for p in folder.rglob("*") if p.is_file()}
    (folder / SIGNATURE).write_bytes(signed("bench/1", digests, signer))
    (home / "key.pem").write_bytes(signer.public_key())
    ours = min((timed(folder, signer.public_key()) for _ in range(3)), key=lambda row: row["seconds"])
    argv = [sys.executable, "-m", "model_signing", "verify", "key", str(folder), "--signature", str(folder / SIGNATURE)]
    theirs = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([*argv, "--public_key", str(home / "key.pem")], check=True, capture_output=True)
        theirs.append(time.perf_counter() - began)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    other = {"seconds": min(theirs), "gb_per_second": size / min(theirs) / 1e9}
    return {"bytes": size, "files": len(digests), "cores": cores, "trainyard": ours, "model_signing": other}


def timed(folder: Path, key: bytes) -> dict[str, float]:
    began, before = time.perf_counter(), time.process_time()
    done = verify(folder, {key_digest(key): key})
    seconds, busy = time.perf_counter() - began, time.process_time() - before
    assert done.problems == []
    return {
        "seconds": seconds,
        "gb_per_second": done.bytes / seconds / 1e9,
        "gb_per_core_second": done.bytes / busy / 1e9,
    }


def write(folder: Path, size: int) -> None:
    """Write half of the bytes into one file, and half into sixteen files."""
    folder.mkdir(parents=True)
    block = os.urandom(1 << 20)
    for name, part in [("large", size // 2), *((f"part-{n:02}", size // 32) for n in range(16))]:
        with (folder / f"{name}.safetensors").open("wb") as out:
            for _ in range(part >> 20):
                out.write(block)


def digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
