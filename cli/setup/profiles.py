"""The choice of a command's Trainyard, and of the secret to send.

The order is: --url, --profile, TRAINYARD_URL, TRAINYARD_PROFILE, the running local cloud, the last `login`. A secret is
stored in the system's keyring if there is one, otherwise in a file that only its owner can read.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import typer

from ..api.client import START_ONE, Authenticate
from ..errors import CliError, extra
from . import file_trust

LOCAL = "local"
SERVICE = "trainyard"  # the name that the keyring shows
ANSWER_SECONDS = 0.5
_LOCAL_ONLY = ("connection_string", "azureml", "certs", "workspace_id")


@dataclass(frozen=True)
class Profile:
    """A Trainyard for commands to call.

    `secret` is the kind of secret that is sent with each request: "key" (a function key), "token" (a bearer token), or
    "" (none). With `scope`, azure-identity supplies a token for that scope instead. `drop` uploads to `account_url`, or
    through `connection_string`. Only the local cloud has a `connection_string`, and the `azureml`, `certs` and
    `workspace_id` with which its nodes are reached.
    """

    name: str
    url: str
    secret: str = ""
    scope: str = ""
    account_url: str = ""
    connection_string: str = field(default="", repr=False)
    azureml: str = ""
    certs: str = ""
    workspace_id: str = ""


class Secrets(Protocol):
    """A store of secrets by profile name."""

    where: str

    def get(self, name: str) -> str | None: ...
    def put(self, name: str, secret: str) -> None: ...
    def remove(self, name: str) -> None:
        """Remove the secret. Removing a missing secret does nothing."""


class KeyringSecrets:
    where = "the system's keyring"

    def get(self, name: str) -> str | None:
        import keyring

        return keyring.get_password(SERVICE, name)

    def put(self, name: str, secret: str) -> None:
        import keyring

        keyring.set_password(SERVICE, name, secret)

    def remove(self, name: str) -> None:
        import keyring

        if keyring.get_password(SERVICE, name) is not None:
            keyring.delete_password(SERVICE, name)


class FileSecrets:
    """Secrets in a JSON file with mode 0600."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.where = str(file)

    def get(self, name: str) -> str | None:
        secret = _read(self._file).get(name)
        return str(secret) if secret is not None else None

    def put(self, name: str, secret: str) -> None:
        _write(self._file, {**_read(self._file), name: secret})

    def remove(self, name: str) -> None:
        kept = {key: value for key, value in _read(self._file).items() if key != name}
        _write(self._file, kept)


def secrets(folder: Path) -> Secrets:
    """Return the system's keyring if the package keyring and a backend work here, otherwise a file in this folder."""
    try:
        import keyring
        from keyring.backends.fail import Keyring as NoKeyring
    except ImportError:
        return FileSecrets(folder / "secrets.json")
    if isinstance(keyring.get_keyring(), NoKeyring):
        return FileSecrets(folder / "secrets.json")
    return KeyringSecrets()


class Profiles:
    """The profiles stored by `login` in this folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "profiles.json"

    @cached_property
    def secrets(self) -> Secrets:
        """Return the store of secrets. It is opened only for a profile that has a secret, because finding the
        system's keyring takes a third of a second.
        """
        return secrets(self._folder)

    def all(self) -> dict[str, Profile]:
        return {name: Profile(name=name, **fields) for name, fields in _read(self._file).get("profiles", {}).items()}

    @property
    def current(self) -> str:
        """Return the name of the profile of the last login, or ''."""
        return str(_read(self._file).get("current", ""))

    def add(self, profile: Profile, secret: str) -> None:
        """Store a profile and the secret, over a profile with this name, and make the profile current."""
        rows = {name: _row(kept) for name, kept in self.all().items()}
        _write(self._file, {"current": profile.name, "profiles": {**rows, profile.name: _row(profile)}})
        if secret:
            self.secrets.put(profile.name, secret)
        else:
            self.secrets.remove(profile.name)

    def remove(self, name: str) -> None:
        """Remove a profile and the secret. Raises CliError for an unknown profile."""
        rows = {kept: _row(profile) for kept, profile in self.all().items() if kept != name}
        _pick(name, self.all())
        current = self.current if self.current != name else next(iter(rows), "")
        _write(self._file, {"current": current, "profiles": rows})
        self.secrets.remove(name)

    def authenticate(self, profile: Profile) -> Authenticate | None:
        """Return the function that adds the profile's stored secret to a request, or None if the profile has none."""
        return self.authentication(profile, (self.secrets.get(profile.name) or "") if profile.secret else "")

    def authentication(self, profile: Profile, secret: str) -> Authenticate | None:
        """Return the function that adds this secret to a request, or None for no secret. The profile need not be
        stored.
        """
        if profile.scope:
            return _entra(profile.scope)
        if not secret:
            return None
        is_key = profile.secret == "key"  # noqa: S105  # the kind of secret, not one
        return _header("x-functions-key", secret) if is_key else bearer(secret)


def bearer(token: str) -> Authenticate:
    """Return the function that adds a bearer token to a request. Raises CliError for a text that no header can have."""
    if not token.isascii() or not token.isprintable():
        raise CliError("The token has characters that no token has. Copy it again.")
    return _header("authorization", f"Bearer {token}")


def choose(url: str, name: str, env: Mapping[str, str], profiles: Profiles) -> Profile:
    """Return a command's profile, in the order of the module's docstring. Raises CliError without a profile."""
    if url:
        return _for_url(url, _believed(env), profiles)
    if (address := env.get("TRAINYARD_URL", "")) and not name:
        return _for_url(address, _believed(env), profiles)
    local = find_local(env)
    if name := name or env.get("TRAINYARD_PROFILE", ""):
        return _pick(name, {**profiles.all(), **({LOCAL: local} if local else {})})
    if local:
        return local
    if profiles.current:
        return _pick(profiles.current, profiles.all())
    raise CliError(f"No local cloud is running, and you are not logged in. {START_ONE}")


def _for_url(url: str, local: Profile | None, profiles: Profiles) -> Profile:
    """Return the known profile with this URL, including its secret, or a profile with only the URL."""
    candidates = [*profiles.all().values(), *([local] if local else [])]
    return next((p for p in candidates if p.url == url.rstrip("/")), Profile("", url.rstrip("/")))


def _pick(name: str, choices: Mapping[str, Profile]) -> Profile:
    if name in choices:
        return choices[name]
    raise CliError(
        f"The profile {name!r} does not exist. Profiles: {', '.join(sorted(choices)) or 'none'}. Add one: `login URL`."
    )


def find_local(env: Mapping[str, str]) -> Profile | None:
    """Return the running local cloud, or None. Its folder is TRAINYARD_CLOUD, or .trainyard/cloud in this folder or a
    parent folder.

    Raises Untrusted for a record that another user could have written.
    """
    for file in cloud_files(env):
        file_trust.check(file)
        record = _read(file)
        url = str(record.get("api", ""))
        if url and _listens(url):
            own = {key: str(record.get(key, "")) for key in _LOCAL_ONLY}
            return Profile(LOCAL, url, **own)
    return None


def _believed(env: Mapping[str, str]) -> Profile | None:
    """Return the running local cloud for a command with a given URL, or None. A record that can't be trusted counts
    as none.
    """
    try:
        return find_local(env)
    except file_trust.Untrusted:
        return None


def cloud_files(env: Mapping[str, str]) -> list[Path]:
    """Return the possible paths of a running local cloud's record, nearest folder first."""
    if folder := env.get("TRAINYARD_CLOUD"):
        return [Path(folder) / "cloud.json"]
    here = Path(env.get("TRAINYARD_CWD") or Path.cwd()).resolve()
    folders = [here, *here.parents, Path(__file__).resolve().parents[2]]
    return [folder / ".trainyard" / "cloud" / "cloud.json" for folder in folders]


def _listens(url: str) -> bool:
    """Return whether a server accepts connections at this URL. A killed cloud leaves its record behind."""
    try:
        parts = urlsplit(url)
        socket.create_connection((parts.hostname or "", parts.port or 80), ANSWER_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def config_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("TRAINYARD_CONFIG") or typer.get_app_dir("trainyard"))


def _header(name: str, value: str) -> Authenticate:
    def authenticate(request: httpx.Request) -> httpx.Request:
        request.headers[name] = value
        return request

    return authenticate


def _entra(scope: str) -> Authenticate:
    """Return the function that adds a bearer token of the signed-in identity (az login, managed identity, ...).
    azure-identity renews the token. Raises CliError if azure-identity is not installed.
    """
    try:
        from azure.identity import DefaultAzureCredential
    except ImportError as exc:
        raise CliError(f"Signing in with Entra ID needs azure-identity: {extra('drop')}.") from exc
    credential = DefaultAzureCredential()

    def authenticate(request: httpx.Request) -> httpx.Request:
        request.headers["authorization"] = f"Bearer {credential.get_token(scope).token}"
        return request

    return authenticate


def _row(profile: Profile) -> dict[str, str]:
    row: dict[str, str] = asdict(profile)
    return {key: value for key, value in row.items() if value and key not in ("name", *_LOCAL_ONLY)}


def _read(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or {} without an object."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(file: Path, value: object) -> None:
    """Replace the file in one step. Only the owner can read the file, from the first byte on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2)
    scratch.replace(file)
