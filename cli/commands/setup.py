"""The commands login, logout, doctor, completion and open."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Annotated
from urllib.parse import urlsplit

import typer
from typer import Argument, Option

from ..api.client import Api
from ..errors import CliError
from ..results import Address, Completion, LoggedIn, LoggedOut, prints
from ..session import Session, command
from ..setup import doctor as examining
from ..setup import shell_completion as completing
from ..setup import tab_completion
from ..setup.profiles import LOCAL, FileSecrets, Profile
from ..terminal_text import Text
from . import options

Url = Annotated[str, Argument(metavar="URL", help="Address of the API, such as https://<app>.azurewebsites.net/api.")]
NewName = Annotated[str, Option("--name", metavar="NAME", help="Name of the profile. Default: the name of the host.")]
OldName = Annotated[str, Argument(metavar="NAME", help="Name of the profile. Default: the current one.")]
FunctionKey = Annotated[
    str,
    Option(
        "--key", metavar="KEY", help="Function key. Default: TRAINYARD_KEY; without it the command asks for the key."
    ),
]
Token = Annotated[str, Option("--token", metavar="TOKEN", help="A bearer token instead of a key.")]
Scope = Annotated[
    str,
    Option(
        "--scope",
        metavar="SCOPE",
        help="Sign in with Entra ID: the scope of the API, such as api://<client id>/.default. Needs the extra `drop`.",
    ),
]
OpenWhat = Annotated[
    str,
    Argument(metavar="RUN", help="A run. Default: the start page.", autocompletion=tab_completion.runs),
]
PrintOnly = Annotated[bool, Option("--print", help="Print the address without opening it.")]

Shell = Annotated[
    str, typer.Argument(metavar="bash|zsh|fish", help="The shell.", autocompletion=lambda: completing.SHELLS)
]


@command
@prints(LoggedIn)
def login(
    session: Session,
    address: Url,
    name: NewName = "",
    key: FunctionKey = "",
    token: Token = "",
    scope: Scope = "",
    account_url: options.AccountUrl = "",
) -> None:
    """Store a deployment and its key, and use it from now on.

    The key is stored in the keyring of the system if there is one (and the extra `keyring` is installed), otherwise
    in a file that only you can read.

    Example: trainyard login https://trainyard-abc.azurewebsites.net/api --name prod
    """
    url = address.rstrip("/")
    host = urlsplit(url).hostname or ""
    name = name or (host if host[-1:].isdigit() else host.partition(".")[0]) or url
    if name == LOCAL:
        raise typer.BadParameter("`local` is the local cloud; choose another --name.")
    key = key or os.environ.get("TRAINYARD_KEY", "")
    if not (key or token or scope) and sys.stdin.isatty():
        key = typer.prompt("Function key (empty for none)", default="", hide_input=True, show_default=False)
    profile = Profile(name, url, "" if scope else "token" if token else "key" if key else "", scope, account_url)
    with Api(url, session.profiles.authentication(profile, token or key)) as api:
        api.get("runs", limit=1)  # this request needs the key, unlike health
    session.profiles.add(profile, token or key)
    secrets = session.profiles.secrets
    if (key or token) and isinstance(secrets, FileSecrets):
        session.remark(
            f"This machine has no keyring, so the secret is in {secrets.where}, which only you can read.", "yellow"
        )
    session.print_result(LoggedIn(profile=name, url=url, secret=profile.secret), f"Logged in to {url} as {name!r}.")


@command
@prints(LoggedOut)
def logout(session: Session, name: OldName = "") -> None:
    """Forget a deployment and its key.

    Example: trainyard logout prod
    """
    name = name or session.profiles.current
    if not name:
        raise CliError("You are not logged in.")
    session.profiles.remove(name)
    session.print_result(LoggedOut(profile=name), f"Forgot {name!r}.")


@command
@prints(list[examining.Finding])
def doctor(session: Session) -> None:
    """Check this set-up, and say how to fix what is wrong.

    Example: trainyard doctor
    """
    findings = list(examining.examine(session, os.environ))
    session.print_result([finding.__dict__ for finding in findings], examining.picture(findings))
    if any(finding.verdict == examining.BROKEN for finding in findings):
        raise typer.Exit(1)


@command
@prints(Completion)
def completion(session: Session, shell: Shell) -> None:
    """Print the script with which bash, zsh or fish completes commands, options and names.

    Put eval "$(python3 trainyard.py completion bash)" into the start file of the shell; for fish,
    python3 trainyard.py completion fish | source. In a clone the script also defines the command `trainyard`.

    Example: trainyard completion bash
    """
    made = completing.script(shell, clone="TRAINYARD_CWD" in os.environ)
    if session.as_json:
        session.print_json(Completion(shell=shell, script=made))
    else:
        sys.stdout.write(made)


@command
@prints(Address)
def _open(session: Session, run: OpenWhat = "", show_only: PrintOnly = False) -> None:
    """Open the page in the browser: a run, or all of them.

    Example: trainyard open mnist-0123456789abcdef
    """
    if run:
        session.api.get("runs", run)
    address = f"{session.profile.url}/page#/run/{run}" if run else f"{session.profile.url}/page"
    if not show_only and not session.as_json and not webbrowser.open(address):
        session.remark("Could not open a browser. The address:", "yellow")
    session.print_result(Address(url=address), Text(address))
