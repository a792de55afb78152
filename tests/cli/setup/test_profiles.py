"""The deployment that a command uses, and the place of its secret."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from cli.errors import CliError
from cli.setup.profiles import FileSecrets, KeyringSecrets, Profile, Profiles, choose


class Memory(KeyringBackend):
    """A keyring like a system's."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring has no types for it
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def no_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory() -> Iterator[Memory]:
    before, backend = keyring.get_keyring(), Memory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Start a local cloud that listens; return the environment that names it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        (tmp_path / "cloud.json").write_text(json.dumps({"api": url, "connection_string": "secret"}))
        yield {"TRAINYARD_CLOUD": str(tmp_path), "url": url}


def test_the_order(cloud: dict[str, str], tmp_path: Path, no_keyring: None) -> None:
    """The order of precedence is --url, --profile, TRAINYARD_URL, TRAINYARD_PROFILE, the local cloud, the last
    login."""
    profiles = Profiles(tmp_path / "config")
    profiles.add(Profile("prod", "https://prod/api", "key"), "k")
    profiles.add(Profile("test", "https://test/api"), "")
    env = {**cloud, "TRAINYARD_URL": "https://env/api", "TRAINYARD_PROFILE": "prod"}

    assert choose("https://given/api/", "prod", env, profiles).url == "https://given/api"
    assert choose("", "prod", env, profiles).url == "https://prod/api"
    assert choose("", "", env, profiles).url == "https://env/api"
    del env["TRAINYARD_URL"]
    assert choose("", "", env, profiles).url == "https://prod/api"
    del env["TRAINYARD_PROFILE"]
    assert choose("", "", env, profiles) == Profile("local", cloud["url"], connection_string="secret")
    assert choose("", "", {"TRAINYARD_CLOUD": "nowhere"}, profiles).name == "test"


def test_an_address_brings_its_secret(cloud: dict[str, str], tmp_path: Path, no_keyring: None) -> None:
    """--url with the address of a login or of the local cloud uses its secret."""
    profiles = Profiles(tmp_path / "config")
    profiles.add(Profile("prod", "https://prod/api", "key"), "k")

    assert choose("https://prod/api/", "", {}, profiles).secret == "key"
    assert choose(cloud["url"], "", cloud, profiles).connection_string == "secret"


def test_a_dead_cloud_is_not_believed(tmp_path: Path, no_keyring: None) -> None:
    """The stale record of a killed cloud, where nothing listens, is ignored; the error gives advice."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    (tmp_path / "cloud.json").write_text(json.dumps({"api": f"http://127.0.0.1:{port}/api"}))

    with pytest.raises(CliError, match=r"trainyard\.py up"):
        choose("", "", {"TRAINYARD_CLOUD": str(tmp_path)}, Profiles(tmp_path / "config"))


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps rights in lists")
def test_a_record_of_another_is_refused(cloud: dict[str, str], tmp_path: Path, no_keyring: None) -> None:
    """A cloud.json that others could write, or that another user owns, ends the command with advice; --url still
    works, without anything from that record. A parent folder like /tmp does no harm."""
    known = Profiles(tmp_path / "config")
    file = Path(cloud["TRAINYARD_CLOUD"]) / "cloud.json"
    tmp_path.chmod(0o1777)
    assert choose("", "", cloud, known).name == "local"
    file.chmod(0o666)
    with pytest.raises(CliError, match=r"cloud.json can be written by everyone.*chmod go-w"):
        choose("", "", cloud, known)
    address = json.loads(file.read_text())["api"]
    assert choose(address, "", cloud, known).connection_string == ""
    file.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(file, 4242, 4242)
        with pytest.raises(CliError, match=r"belongs to another user \(4242\)"):
            choose("", "", cloud, known)


def test_an_unknown_profile_lists_those_there_are(tmp_path: Path, no_keyring: None) -> None:
    """An unknown profile is refused with the names of the known profiles."""
    profiles = Profiles(tmp_path)
    profiles.add(Profile("prod", "https://prod/api"), "")

    with pytest.raises(CliError, match=r"'prd'.*Profiles: prod"):
        choose("", "prd", {"TRAINYARD_CLOUD": "nowhere"}, profiles)


def test_a_keyring_keeps_the_secret(tmp_path: Path, memory: Memory) -> None:
    """With a keyring the secret is in the keyring, in no file, and gone after logout."""
    profiles = Profiles(tmp_path)
    profiles.add(Profile("prod", "https://prod/api", "key"), "k-123")

    assert isinstance(profiles.secrets, KeyringSecrets)
    assert memory.kept == {("trainyard", "prod"): "k-123"}
    assert "k-123" not in "".join(file.read_text() for file in tmp_path.iterdir())
    profiles.remove("prod")
    assert memory.kept == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes; the folder is the user's own there")
def test_without_a_keyring_only_the_owner_reads_it(tmp_path: Path, no_keyring: None) -> None:
    """Without a keyring the secret is in a file with mode 0600, and gone after logout."""
    profiles = Profiles(tmp_path)
    profiles.add(Profile("prod", "https://prod/api", "key"), "k-123")

    assert isinstance(profiles.secrets, FileSecrets)
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert profiles.secrets.get("prod") == "k-123"
    profiles.remove("prod")
    assert profiles.secrets.get("prod") is None


def test_a_secret_does_not_show() -> None:
    """A profile's repr contains no connection string."""
    assert "abc123" not in repr(Profile("local", "http://x/api", connection_string="abc123"))
