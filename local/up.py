"""`python3 trainyard.py up`: run the local cloud until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from cli.setup.file_trust import Untrusted
from emulators.process import PartFailed
from local import cloud, record

CHECK_SECONDS = 0.5
_stopping = threading.Event()  # since the first Ctrl-C
BANNER = """
The local cloud is up ({seconds:.1f} s). Ctrl-C stops it; its state stays in {home}.{found_by}

  page        {api}/page
  storage     {blob_url}
  azure ml    {azureml}
  event grid  {eventgrid}
  logs        {home}/logs

Drop a folder into it, and stay until the model is there:

    python3 trainyard.py drop my-folder mnist/my-drop --follow

`mnist` is a route of routes.yaml: it names the trainer and its defaults. To have a folder with digits:
`{python} local/digits.py my-folder`. Any program can drop it; with that Python:

    import json, pathlib
    from azure.storage.blob import ContainerClient

    cloud = json.loads(pathlib.Path("{home}/cloud.json").read_text())
    drops = ContainerClient.from_connection_string(cloud["connection_string"], "drops")
    folder = pathlib.Path("my-folder")
    for file in (path for path in folder.rglob("*") if path.is_file()):
        drops.upload_blob(f"mnist/my-drop/{{file.relative_to(folder).as_posix()}}", file.read_bytes(), overwrite=True)
    drops.upload_blob("mnist/my-drop/_SUCCESS", b"", overwrite=True)  # says that the drop is complete

`python3 trainyard.py status` shows what is there and what it waits for. The storage account's connection string, with
its key, is in {home}/cloud.json.
"""
FOUND_BY = "\nOther commands find it where TRAINYARD_CLOUD={home} is set."


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 trainyard.py up", description=__doc__)
    parser.add_argument(
        "--home", type=Path, default=record.home_of(os.environ), help="folder of the state; default %(default)s"
    )
    home = parser.parse_args(argv).home.resolve()
    stop_on_signals()
    try:
        return stay(home)
    except cloud.AlreadyRunning as exc:
        between = f"Another process is starting or stopping it on {home}."
        say(f"{exc} {where(exc.record, home) if exc.record else between}")
    except PartFailed as exc:
        say(wrong_files() or f"The local cloud has stopped: {exc}")
    except Untrusted as exc:
        say(str(exc))
    except PermissionError as exc:
        say(f"The local cloud needs a folder of its own: {exc}")
    except KeyboardInterrupt:
        say("The local cloud is stopped. Nothing is left running.")
        return 0
    return 1


def stay(home: Path) -> int:
    """Start the cloud and supervise it. Ends with KeyboardInterrupt or PartFailed, after everything has stopped."""
    began = time.monotonic()
    with cloud.Cloud.start(home, cloud.Options(say=lambda line: say(f"  {line}"), arm_limits=True)) as running:
        say(banner(running.record, home, time.monotonic() - began))
        while True:
            time.sleep(CHECK_SECONDS)
            running.heal()


def wrong_files() -> str:
    """Return the mistake in the routes or the money file, in a sentence; '' if both are right.

    A separate process reads the files, as the app does, because the local cloud imports nothing of the app.
    """
    script = "from shared.bootstrap import check_routes; check_routes()"
    done = subprocess.run([sys.executable, "-c", script], cwd=record.REPOSITORY, capture_output=True, text=True)
    _, found, sentence = done.stderr.rpartition("BadSetting: ")
    return f"{sentence.strip()} The local cloud has stopped." if found else ""


def banner(found: record.Record, home: Path, seconds: float) -> str:
    return BANNER.format(
        seconds=seconds,
        found_by="" if home == record.home_of(os.environ) else FOUND_BY.format(home=home),
        home=home.as_posix(),  # a backslash would be an escape in the Python lines
        python=sys.executable,
        api=found.api,
        blob_url=found.blob_url,
        azureml=found.azureml,
        eventgrid=found.eventgrid,
    )


def where(found: record.Record, home: Path) -> str:
    option = "" if home == record.home_of(os.environ) else f" --home {home}"
    return (
        f"It is up since {found.started_at}: API {found.api}, storage {found.blob_url}.\n"
        f"Look at it with `python3 trainyard.py status`; stop it with `python3 trainyard.py down{option}`."
    )


def stop_on_signals() -> None:
    """Make Ctrl-C and SIGTERM end the program through KeyboardInterrupt, to stop everything in order.

    The message appears at once, because stopping takes some seconds; another Ctrl-C in the meantime changes nothing.
    """

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: _say_now("Still stopping; nothing is left running at the end."))
        _say_now("Stopping: its jobs, then its parts ...")
        _stopping.set()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


@contextlib.contextmanager
def one_interrupt() -> Iterator[None]:
    """Turn every error from a signal into KeyboardInterrupt. For example, a C module with an interrupted import raises
    ImportError.
    """
    try:
        yield
    except Exception as exc:
        if _stopping.is_set():
            raise KeyboardInterrupt from exc
        raise


def _say_now(words: str) -> None:
    os.write(sys.stderr.fileno(), f"\n{words}\n".encode())  # a handler may run in the middle of another write


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
