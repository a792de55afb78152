"""The certificates of the parts that serve HTTPS."""

from __future__ import annotations

import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from emulators import certs
from emulators.private import IS_WINDOWS

AT_ONCE = 6


def test_programs_that_start_at_once_have_one_pair(tmp_path: Path) -> None:
    """Of programs that start at once, the first creates the authority and the certificate. The others wait and read
    them."""
    start = threading.Barrier(AT_ONCE)

    def ensured(_: int) -> tuple[bytes, bytes]:
        start.wait()
        made = certs.ensure(tmp_path / "certs")
        return made.bundle.read_bytes(), made.server.read_bytes()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert len(set(pool.map(ensured, range(AT_ONCE)))) == 1


def test_half_a_pair_is_made_anew(tmp_path: Path) -> None:
    """A bundle without a certificate, or a certificate without a bundle, is created again. The key stays private."""
    made = certs.ensure(tmp_path)
    for half, other in ((made.bundle, made.server), (made.server, made.bundle)):
        before = other.read_bytes()
        half.unlink()
        certs.ensure(tmp_path)
        assert other.read_bytes() != before
    assert IS_WINDOWS or stat.S_IMODE(made.server.stat().st_mode) == 0o600
