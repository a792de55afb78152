"""`python -m local.vendor`: the page's libraries, from npm into page/vendor, as page/vendor/lock.json pins them.

Each package is checked against its integrity (SHA-512 of what npm serves), each file that is made of it against its
SHA-256. The only change to a file is what makes it a module that a browser loads without an import map. The files are
in the repository, so that a plain clone serves the page without npm; `check` holds them against the lock, and
`trainyard.py package` calls it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "page" / "vendor"
LOCK, LICENCES = "lock.json", "LICENCES.txt"


class VendorFault(Exception):
    """A library is not what the lock says. The message names the file or package, and what to do."""


def check(folder: Path = FOLDER) -> None:
    """Raise VendorFault unless the folder holds the files of the lock, with their checksums, and their licences."""
    wanted = {name: file["sha256"] for package in _lock(folder).values() for name, file in package["files"].items()}
    wanted[LICENCES] = hashlib.sha256(_licences(_lock(folder)).encode()).hexdigest()
    for name, digest in wanted.items():
        file = folder / name
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            raise VendorFault(f"{file} is not the file that {LOCK} pins. Run: python -m local.vendor")


def fetch(folder: Path = FOLDER) -> None:
    """Get every package from npm, check it, and write its files anew. Raises VendorFault before a wrong one is used."""
    lock = _lock(folder)
    with tempfile.TemporaryDirectory() as home:
        for name, package in lock.items():
            archive = _pack(f"{name}@{package['version']}", package["integrity"], Path(home))
            for target, file in package["files"].items():
                (folder / target).write_bytes(_file(archive, file))
    (folder / LICENCES).write_text(_licences(lock), "utf-8")
    check(folder)


def _lock(folder: Path) -> dict[str, Any]:
    lock: dict[str, Any] = json.loads((folder / LOCK).read_text("utf-8"))
    return lock


def _pack(spec: str, integrity: str, home: Path) -> Path:
    argv = ["npm", "pack", spec, "--silent", "--ignore-scripts", "--pack-destination", str(home)]
    name = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=True).stdout.strip()
    digest = base64.b64encode(hashlib.sha512((home / name).read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise VendorFault(f"npm served another {spec} than the lock pins: sha512-{digest}. Do not use it.")
    return home / name


def _file(archive: Path, file: dict[str, Any]) -> bytes:
    with tarfile.open(archive) as tar:
        member = tar.extractfile(f"package/{file['from']}")
        assert member is not None, file["from"]
        text = member.read().decode("utf-8")
    for old, new in file.get("replace", {}).items():
        text = text.replace(old, new)
    return f"{text}{file.get('append', '')}".encode()


def _licences(lock: dict[str, Any]) -> str:
    parts = [f"{name} {package['version']}\n\n{package['licence'].strip()}\n" for name, package in lock.items()]
    return f"\n{'-' * 80}\n\n".join(parts)


if __name__ == "__main__":
    fetch()
    sys.stdout.write(f"{FOLDER} holds what {LOCK} pins.\n")
