"""One certificate authority per machine for the parts that serve HTTPS, because Azure's clients require HTTPS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from emulators.private import write_private


@dataclass(frozen=True)
class Certs:
    """Paths of PEM files. `bundle` has the public roots and our authority, for REQUESTS_CA_BUNDLE."""

    bundle: Path
    server: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.server)
        return context


def ensure(folder: Path) -> Certs:
    """Return the certificates under `folder`, and create them on the first call. The authority's key is not kept.

    Programs that call this function at the same time get the same pair. If a program dies half-way, no bundle exists,
    and the next call creates both again.
    """
    certs = Certs(folder / "bundle.pem", folder / "server.pem")
    if not _made(certs):
        from filelock import FileLock

        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", mode=0o600):
            if not _made(certs):
                _make(certs)
    return certs


def _made(certs: Certs) -> bool:
    return certs.bundle.exists() and certs.server.exists()


def _make(certs: Certs) -> None:
    import certifi
    import trustme  # slow to import, and needed only by the first start

    authority = trustme.CA(organization_name="Azure emulators")
    server = authority.issue_cert("127.0.0.1", "localhost")
    certs.bundle.unlink(missing_ok=True)
    write_private(certs.server, server.private_key_and_cert_chain_pem.bytes().decode())
    scratch = certs.bundle.with_name(".bundle.pem")
    scratch.write_bytes(Path(certifi.where()).read_bytes() + authority.cert_pem.bytes())
    scratch.replace(certs.bundle)
