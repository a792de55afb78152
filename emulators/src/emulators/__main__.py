"""A storage account, Event Grid and an Azure ML workspace on this machine."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import TextIO

from emulators import up
from emulators.process import PartFailed

HOME = Path.home() / ".azure-emulators" / "state"
CHECK_SECONDS = 0.5
BANNER = """
The emulators are up ({seconds:.1f} s). Ctrl-C stops them; their state stays in {home}.

  azure ml    {azureml}
  event grid  {eventgrid}
  storage     {blob_url} (and queues and tables)
  logs        {home}/logs

In another terminal, for Python, MLflow or a notebook:

  eval "$(azure-emulators env{where})"
  python -c 'import json, os
from azure.ai.ml import MLClient
from azure.identity import DefaultAzureCredential
scope = [os.environ[f"AML_{{name}}"] for name in ("SUBSCRIPTION_ID", "RESOURCE_GROUP", "WORKSPACE")]
ml = MLClient(DefaultAzureCredential(), *scope, **json.loads(os.environ["AML_CLIENT_KWARGS"]))
print([cluster.name for cluster in ml.compute.list()])'
"""


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    home: Path = arguments.home.expanduser().resolve()
    try:
        return print_env(home) if arguments.command == "env" else stay(home, arguments)
    except PartFailed as error:
        say(f"The emulators did not start: {error}", sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="azure-emulators", description=__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("up", help="start all, and stay until Ctrl-C")
    env = commands.add_parser("env", help="print what a shell needs so that Microsoft's clients find them")
    for command in (begin, env):
        command.add_argument("--home", type=Path, default=HOME, help="folder of the state (default: %(default)s)")
    begin.add_argument("--subscription", default=up.SUBSCRIPTION, help="subscription id (default: %(default)s)")
    begin.add_argument("--resource-group", default="local", help="default: %(default)s")
    begin.add_argument("--workspace", default="local", help="default: %(default)s")
    begin.add_argument(
        "--cluster", type=cluster, action="append", metavar="NAME=NODES", help="default: cpu-cluster=4; may be repeated"
    )
    begin.add_argument(
        "--config", type=Path, help='JSON laid over the parts\' own: {"azureml": {...}, "eventgrid": {...}}'
    )
    begin.add_argument("--json", action="store_true", help="print one line of JSON when ready, instead of the banner")
    return made


def cluster(text: str) -> tuple[str, int]:
    name, _, most = text.partition("=")
    if not name or not most.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NODES, such as gpu-cluster=2")
    return name, int(most)


def stay(home: Path, arguments: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = up.Options(
        arguments.subscription,
        arguments.resource_group,
        arguments.workspace,
        dict(arguments.cluster or [("cpu-cluster", 4)]),
        json.loads(arguments.config.read_text()) if arguments.config else {},
        say=lambda line: say(line, sys.stderr),
    )
    try:
        with up.start(home, options) as running:
            say(json.dumps({"ready": True, "seconds": running.seconds, **running.record}) if arguments.json
                else banner(running, home))  # fmt: skip
            while not (failed := running.failed()):
                time.sleep(CHECK_SECONDS)
            say(f"{', '.join(failed)} has ended; see {home}/logs. All others are stopped.", sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0


def banner(running: up.Running, home: Path) -> str:
    where = "" if home == HOME else f" --home {shlex.quote(str(home))}"
    addresses = {"azureml": running.record["azureml"], "eventgrid": running.record["eventgrid"]}
    return BANNER.format(
        seconds=running.seconds, home=home, where=where, blob_url=running.parts["storage"].info["blob_url"], **addresses
    )


def print_env(home: Path) -> int:
    try:
        record = json.loads((home / up.RECORD).read_text())
    except FileNotFoundError:
        say(f"Nothing runs on {home}. Start it with: azure-emulators up", sys.stderr)
        return 1
    say("\n".join(f"export {key}={shlex.quote(value)}" for key, value in record["env"].items()))
    return 0


def say(line: str, out: TextIO | None = None) -> None:
    print(line, file=out or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
