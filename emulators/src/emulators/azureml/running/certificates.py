"""The certificate authorities that a job trusts: the public roots, this machine's own, and the control plane's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# The variables for Python's ssl, requests, pip, curl, uv and git.
NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
WGET = "WGETRC"  # wget has no variable for authorities, only for its configuration file
# How this machine, and so its jobs, reach the web.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
HERE = "127.0.0.1,localhost"  # the control plane is reached without a proxy


def of_jobs(folder: Path, ours: Path, machine: Mapping[str, str], added: bytes = b"") -> dict[str, str]:
    """Return the variables with which a job reaches everything that this machine reaches, and the control plane.

    `ours` has the public roots and the control plane's authority. The machine's own authorities, such as that of a
    proxy that reads TLS, and `added` are appended to them in a file under `folder`.
    """
    named = {Path(machine[name]).resolve() for name in NAMES if machine.get(name)} - {ours.resolve()}
    own = sorted(path for path in named if path.is_file())
    bundle = folder / "authorities.pem"
    parts = [*(path.read_bytes() for path in (ours, *own)), added]
    bundle.write_bytes(b"\n".join(part.strip() for part in parts if part) + b"\n")
    found = dict.fromkeys(NAMES, str(bundle.resolve())) | {WGET: _of_wget(folder, bundle, machine)}
    proxies = {name: machine[name] for name in PROXIES if machine.get(name)}
    if not proxies:
        return found
    around = ",".join(filter(None, (HERE, machine.get("NO_PROXY") or machine.get("no_proxy"))))
    return {**found, **proxies, "NO_PROXY": around, "no_proxy": around}


def _of_wget(folder: Path, bundle: Path, machine: Mapping[str, str]) -> str:
    """Return wget's configuration: the machine's own, and the authorities."""
    own, made = Path(machine.get(WGET) or Path.home() / ".wgetrc"), folder / "wgetrc"
    said = own.read_text("utf-8") if own.is_file() else ""
    made.write_text(f"{said}\nca_certificate = {bundle.resolve()}\n", "utf-8")
    return str(made.resolve())
