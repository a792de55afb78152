"""Jobs trust the authorities that this machine trusts, and the control plane's own."""

from __future__ import annotations

from pathlib import Path

from emulators.azureml.running.certificates import NAMES, of_jobs


def test_the_machines_authorities_are_added(tmp_path: Path) -> None:
    """One file has the public roots, the control plane's authority and the machine's authorities, each once. Every
    variable points to this file, and so does wget's configuration."""
    ours, proxy = tmp_path / "bundle.pem", tmp_path / "proxy.pem"
    ours.write_text("OURS\n")
    proxy.write_text("PROXY\n")
    (tmp_path / "own").write_text("tries = 2")
    machine = {
        "WGETRC": str(tmp_path / "own"),
        "SSL_CERT_FILE": str(proxy),
        "PIP_CERT": str(proxy),
        "CURL_CA_BUNDLE": "/not/there",
        "HOME": "/h",
    }
    found = of_jobs(tmp_path, ours, machine)
    assert Path(found.pop("WGETRC")).read_text() == f"tries = 2\nca_certificate = {tmp_path / 'authorities.pem'}\n"
    assert set(found) == set(NAMES)
    assert {Path(path).read_text() for path in found.values()} == {"OURS\nPROXY\n"}


def test_a_proxy_is_not_asked_for_the_control_plane(tmp_path: Path) -> None:
    """Jobs use the machine's proxies, except to reach this machine."""
    (tmp_path / "bundle.pem").write_text("OURS")
    found = of_jobs(tmp_path, tmp_path / "bundle.pem", {"HTTPS_PROXY": "http://proxy:3128", "no_proxy": "intern"})
    assert found["HTTPS_PROXY"] == "http://proxy:3128"
    assert found["NO_PROXY"] == found["no_proxy"] == "127.0.0.1,localhost,intern"
