"""The options of every command (--url, --profile and --json), the session made from these options, and the registration
of commands.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer
import typer.core
from rich.console import RenderableType

from .api.api_outage import OutageMessages
from .api.client import Api
from .api.run_names import run_name, suggesting
from .setup.profiles import Profile, Profiles, bearer, choose, config_folder
from .terminal_text import Console, Text

P = ParamSpec("P")
RUN = "run"  # the argument of a command that accepts any name of a run
PIPE_WIDTH = 120  # characters of a line, without a terminal that gives its width

Url = Annotated[
    str, typer.Option("--url", metavar="URL", help="Address of the API, such as https://<app>.azurewebsites.net/api.")
]
ProfileName = Annotated[str, typer.Option("--profile", metavar="NAME", help="A profile of `login`, or `local`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
COMMON = {"url": Url, "profile": ProfileName, "as_json": Json}

HELP = {"max_content_width": PIPE_WIDTH}  # wide enough for a whole line of each command
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=HELP)
groups: dict[str, typer.Typer] = {}
for _name, _help in {
    "data": "See the versions of a drop's data.",
    "schedule": "Start runs at set times, or when new files arrive.",
    "notify": "Send notices of events to a webhook, Slack, Teams or mail.",
    "grant": "Let another program submit runs within a budget, a scope and a time limit.",
    "admin": "Administer a deployment. Needs rights on its Azure resources.",
}.items():
    groups[_name] = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=HELP
    )
    app.add_typer(groups[_name], name=_name, help=_help)


def _version(is_requested: bool) -> None:
    if is_requested:
        sys.stdout.write(f"trainyard {version()}\n")
        raise typer.Exit


def version() -> str:
    """Return the version of the installed command, or the version in pyproject.toml in a clone."""
    try:
        return metadata.version("trainyard")
    except metadata.PackageNotFoundError:
        text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text("utf-8")
        return str(tomllib.loads(text)["project"]["version"])


@app.callback()
def trainyard(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")] = False,
) -> None:
    """Trainyard: drop data into blob storage, get a trained model back.

    Commands speak to the local cloud if it is up, else to the deployment that you last logged in to.
    """


@dataclass
class Session:
    """One command's access to the API and to the terminal. Results go to standard output, everything else to
    standard error."""

    url: str
    profile_name: str
    as_json: bool
    out: Console = field(default_factory=lambda: _console(stderr=False))
    err: Console = field(default_factory=lambda: _console(stderr=True))

    @property
    def program(self) -> str:
        """Return the way in which the user calls this program, for hints."""
        return program()

    @cached_property
    def profiles(self) -> Profiles:
        return Profiles(config_folder(os.environ))

    @cached_property
    def profile(self) -> Profile:
        return choose(self.url, self.profile_name, os.environ, self.profiles)

    @cached_property
    def api(self) -> Api:
        if token := os.environ.get("TRAINYARD_TOKEN", ""):  # the token of a grant
            return Api(f"{self.profile.url.rstrip('/')}/granted", bearer(token))
        return Api(self.profile.url, self.profiles.authenticate(self.profile))

    @cached_property
    def outage(self) -> OutageMessages:
        return OutageMessages(lambda words: self.remark(words, "yellow"))

    def print_result(self, value: object, picture: RenderableType) -> None:
        """Print the command's result: the value as JSON with --json, otherwise the picture."""
        if self.as_json:
            self.print_json(value)
        else:
            self.out.print(picture, soft_wrap=isinstance(picture, str | Text))

    def print_json(self, value: object) -> None:
        sys.stdout.write(json.dumps(value, indent=2) + "\n")

    def print_json_line(self, value: object) -> None:
        """Print one of several JSON objects, on one line."""
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    def remark(self, text: str, style: str = "") -> None:
        """Print a remark to standard error."""
        self.err.print(text, style=style, soft_wrap=True)


def command(function: Callable[Concatenate[Session, P], None]) -> Callable[Concatenate[Session, P], None]:
    """Register a command with the function's name. The function's first parameter is the session, which is made
    from the common options."""
    return _registered(function, app)


def command_of(
    group: str, kind: type[typer.core.TyperCommand] | None = None
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Register a command of a group, such as `trainyard admin`. The command's name is the part of the function's
    name after the last `_`."""
    return lambda function: _registered(function, groups[group], kind)


def command_as(
    kind: type[typer.core.TyperCommand],
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Register a command with a separate command class."""
    return lambda function: _registered(function, app, kind)


def _registered(
    function: Callable[Concatenate[Session, P], None],
    group: typer.Typer,
    kind: type[typer.core.TyperCommand] | None = None,
) -> Callable[Concatenate[Session, P], None]:
    @functools.wraps(function)
    def run(*args: Any, url: str, profile: str, as_json: bool, **kwargs: Any) -> None:
        session = Session(url, profile, as_json)
        if not kwargs.get(RUN):
            function(session, *args, **kwargs)
            return
        with suggesting(session.api, kwargs[RUN]):
            function(session, *args, **kwargs | {RUN: run_name(session.api, kwargs[RUN])})

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name == "as_json" else "", annotation=kind
        )
        for name, kind in COMMON.items()
    ]
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__doc__ = inspect.cleandoc(function.__doc__ or "").replace(
        "\nExample: trainyard ",
        f"\n\b\nExample: {program()} ",  # \b: never wrapped
    )
    run.__annotations__ = {p.name: p.annotation for p in [*own, *shared]}
    group.command(function.__name__.rpartition("_")[2] or function.__name__.strip("_"), cls=kind)(run)
    return function


def program() -> str:
    """Return the way in which the user calls this program. trainyard.py sets TRAINYARD_CWD; the installed command
    does not."""
    return "python3 trainyard.py" if "TRAINYARD_CWD" in os.environ else "trainyard"


def user_path(path: Path) -> Path:
    """Return the path relative to the user's folder. trainyard.py runs commands in the repository, and passes the
    user's folder in TRAINYARD_CWD."""
    return Path(os.environ.get("TRAINYARD_CWD", ".")) / path.expanduser()


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, trims=not (sys.stderr if stderr else sys.stdout).isatty())
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console
