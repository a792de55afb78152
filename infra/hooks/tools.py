"""What the hooks share: the Azure CLI, azd's environment, and errors that say what to do. Standard library only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

INFRA = Path(__file__).resolve().parent.parent
PAUSE_SECONDS = float(os.environ.get("TRAINYARD_PAUSE_SECONDS", "5"))  # tests have less patience

# Azure Storage without a data role. The code is the service's (Azure/azure-sdk-for-python#28284), the sentence is the
# Azure CLI's (Azure/azure-cli#20170). AuthorizationFailure is a 403 too, but of network rules: no role would help.
DENIED = (
    "AuthorizationPermissionMismatch",
    "You do not have the required permissions needed to perform this operation",
)
# The code is Resource Manager's (ResourceNotFound, ResourceGroupNotFound, ...; see
# https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors) or Microsoft
# Graph's (Request_ResourceNotFound), without which `az ad` prints the sentence (Azure/azure-cli#28009). `az rest` puts
# the HTTP reason before the answer.
MISSING = ("NotFound", "Not Found(", "does not exist or one of its queried reference-property objects are not present")


class HookFailed(Exception):
    """A hook can't go on. The message says why, and what to do."""


def az(*arguments: str) -> Any:
    """Run the Azure CLI and return what it answers. Raises HookFailed with its own words."""
    done = subprocess.run([program("az"), *arguments, "--output", "json"], capture_output=True, text=True)
    if done.returncode:
        raise HookFailed(f"az {' '.join(arguments[:3])} failed: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout) if done.stdout.strip() else None


def az_here(*arguments: str) -> Any:
    """The same in azd's subscription, which need not be the one that the Azure CLI takes by itself."""
    return az(*arguments, "--subscription", setting("AZURE_SUBSCRIPTION_ID"))


def rest(method: str, url: str, body: Any = None) -> Any:
    """One request with the caller's own login. `url` is absolute, or begins with /subscriptions."""
    place, _, query = url.partition("?")
    asked = ["rest", "--method", method, "--url", place]
    if query:  # apart, since az.cmd would take an & for the end of the command
        # Decoded, since az encodes them: a nextLink's $skiptoken comes encoded, and twice encoded it is another token.
        asked += ["--uri-parameters", *(f"{name}={value}" for name, value in parse_qsl(query, keep_blank_values=True))]
    if body is None:
        return az(*asked)
    with tempfile.TemporaryDirectory() as folder:  # a file, since shells disagree about quotes
        file = Path(folder, "body.json")
        file.write_text(json.dumps(body))
        return az(*asked, "--body", f"@{file}")


def listed(url: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    while url:
        page = rest("get", url)
        found += page["value"]
        url = page.get("nextLink") or ""
    return found


def remember(name: str, value: str) -> None:
    """Put a value into azd's environment, from where main.parameters.json takes it. Not for secrets: it is a file."""
    subprocess.run([program("azd"), "env", "set", name, value], check=True)
    os.environ[name] = value


def setting(name: str, default: str | None = None) -> str:
    value = os.environ.get(name) or default
    if value is None:
        raise HookFailed(f"{name} is not set. azd up asks for it; or set it with azd env set {name} VALUE.")
    return value


def program(name: str) -> str:
    found = shutil.which(name)  # finds az.cmd on Windows too
    if not found:
        raise HookFailed(f"There is no {name} on the PATH. Install it: https://aka.ms/{name}")
    return found


def wait_until(done: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise HookFailed(f"Gave up waiting for {what} after {seconds:.0f} s. Run the same azd command again.")
        time.sleep(PAUSE_SECONDS)


def patiently(call: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Call until what was made a moment ago is found: Entra ID tells all its servers in some seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except HookFailed as exc:
            if not missing(exc) or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def deployer() -> tuple[str, str]:
    """Object id and type of whoever is signed in with the Azure CLI.

    azd knows it too, as AZURE_PRINCIPAL_ID, but puts it into parameters alone, not into the environment of hooks
    (Azure/azure-dev, bicep_provider.go: "not stored to .env by default").
    """
    user = az("account", "show")["user"]
    if user["type"] == "user":
        return str(az("ad", "signed-in-user", "show")["id"]), "User"
    return str(az("ad", "sp", "show", "--id", user["name"])["id"]), "ServicePrincipal"


def denied(exc: HookFailed) -> bool:
    """Return whether Azure Storage refused the request because a role is missing or not yet in force."""
    return any(words in str(exc) for words in DENIED)


def missing(exc: HookFailed) -> bool:
    """Return whether Azure says that something is not there."""
    return any(words in str(exc) for words in MISSING)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(hook: Callable[[], None]) -> None:
    """Run a hook as a program: exit status 1 and one clear message if it fails."""
    try:
        hook()
    except HookFailed as exc:
        sys.stderr.write(f"\n{exc}\n")
        sys.exit(1)
