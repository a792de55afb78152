"""One certificate authority per machine for the parts that Azure's clients insist on reaching over HTTPS."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import certifi
import trustme


@dataclass(frozen=True)
class Certs:
    """Paths of PEM files. `bundle` (the public roots and our authority) is what REQUESTS_CA_BUNDLE names."""

    bundle: Path
    server: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.server)
        return context


def ensure(folder: Path) -> Certs:
    """Return the certificates under `folder`, making them on the first call. The authority's key is not kept."""
    certs = Certs(folder / "bundle.pem", folder / "server.pem")
    if certs.bundle.exists() and certs.server.exists():
        return certs
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name="Trainyard local cloud")
    server = authority.issue_cert("127.0.0.1", "localhost")
    with os.fdopen(os.open(certs.server, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(server.private_key_and_cert_chain_pem.bytes())
    certs.bundle.write_bytes(Path(certifi.where()).read_bytes() + authority.cert_pem.bytes())
    return certs
